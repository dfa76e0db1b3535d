"""`longboat run`: a prompt, its answer, an exit code."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from longboat.cli.main import Failure, forget_stdout
from longboat.cli.options import cwd_option, events_option
from longboat.errors import LongboatError, NotFound, ServerUnreachable

if TYPE_CHECKING:
    from longboat.cli.connection import Connection
    from longboat.wire.requests import Submit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    id: str
    made: bool
    """For this prompt alone."""


@click.command(short_help="Send a prompt, stream the answer.")
@click.argument("prompt", nargs=-1)
@click.option("-s", "--session", metavar="ID", help="Go on in this session.")
@click.option("-c", "--continue", "last", is_flag=True, help="Go on in the session that was used last here.")
@click.option("-m", "--model", metavar="PROVIDER/MODEL", help="Use this model for this prompt.")
@click.option(
    "--delivery",
    type=click.Choice(["steer", "queue"]),
    help="If the session is busy: steer what runs now, or queue behind it.  [default: queue]",
)
@events_option
@click.option("--detach", is_flag=True, help="Do not wait: print the run's id and leave.")
@click.option("--run-id", metavar="ID", help="Choose the run's id. The same again is the same run: safe to repeat.")
@click.option("--give-up-after", type=click.FloatRange(0), default=60, metavar="SECONDS", hidden=True)
@cwd_option
@click.pass_context
def run(
    ctx: click.Context,
    *,
    prompt: tuple[str, ...],
    session: str | None,
    last: bool,
    model: str | None,
    delivery: str | None,
    style: str,
    detach: bool,
    run_id: str | None,
    give_up_after: float,
    cwd: str,
) -> None:
    """Send PROMPT to the agent and stream its answer. A server is started in the background if none runs.

    What is piped in follows the prompt; without one, or with "-", it is the prompt. (If whoever starts this keeps a
    pipe open without writing to it: add </dev/null.) Ctrl-C cancels the run; closing the terminal does not.

    Exit code: 0 answered, 1 failed, 2 called wrongly, 130 canceled.

    \b
    longboat run "Why is the sky blue?"
    longboat run -c "And at sunset?"
    git diff | longboat run "Review this."
    longboat run --detach "Write a long story."
    """
    if session is not None and last:
        raise click.UsageError("Give -s or -c, not both.")
    from longboat.cli.background import ensure_server
    from longboat.cli.prompt import read_prompt
    from longboat.client import calls
    from longboat.wire.ids import check_own_id, new_id
    from longboat.wire.models import Delivery
    from longboat.wire.requests import Submit

    text = read_prompt(prompt)
    if run_id is not None:
        check_own_id(run_id, field="run_id")
    connection = ensure_server(cwd)
    workspace_id = connection.join(cwd).id
    if model is None:
        _tell_of_passed_over(connection, workspace_id, cwd)
    place = _session(connection, workspace_id, given=session, last=last, run_id=run_id)
    submit = Submit(
        session_id=place.id,
        prompt=text,
        run_id=run_id or new_id(),
        delivery=Delivery(delivery) if delivery else None,
        model=model,
    )
    with _taken_back_if_refused(connection, workspace_id, place):
        if detach:
            click.echo(connection.send(calls.submit(workspace_id, submit)).run_id)
        else:
            ctx.exit(_wait(workspace_id, submit, style, give_up_after))


def _wait(workspace_id: str, submit: "Submit", style: str, give_up_after_s: float) -> int:
    from longboat.cli.display import display_of
    from longboat.cli.waiting import submit_and_wait

    display = display_of(style)
    try:
        code = submit_and_wait(workspace_id, submit, display, give_up_after_s=give_up_after_s)
    except BrokenPipeError:
        raise
    except OSError as error:
        forget_stdout()
        why = f"Cannot write the answer: {error.strerror or error}."
        raise Failure(why, f"The run goes on: longboat watch {submit.run_id} shows it.") from error
    if code == 0 and sys.stdout.isatty():
        display.say(f'session {submit.session_id}; go on with: longboat run -c "…"')
    return code


def _session(
    connection: "Connection", workspace_id: str, *, given: str | None, last: bool, run_id: str | None
) -> _Session:
    from longboat.cli.ids import session_meant
    from longboat.client import calls

    if given is not None:
        return _Session(id=session_meant(connection, workspace_id, given).id, made=False)
    if run_id is not None:
        with suppress(NotFound):
            return _Session(id=connection.send(calls.get_run(workspace_id, run_id)).session_id, made=False)
    if last:
        # The one somebody prompted last, which need not be the one that was created last.
        if runs := connection.send(calls.runs(workspace_id, limit=1)).items:
            return _Session(id=runs[0].session_id, made=False)
        if sessions := connection.send(calls.sessions(workspace_id, limit=1)).items:
            return _Session(id=sessions[0].id, made=False)
    return _Session(id=connection.send(calls.create_session(workspace_id)).id, made=True)


@contextmanager
def _taken_back_if_refused(connection: "Connection", workspace_id: str, session: _Session) -> Iterator[None]:
    """Delete the session that was made for a prompt which was refused. One with a run in it is never touched."""
    from longboat.client import calls

    try:
        yield
    except ServerUnreachable:
        raise  # for all we know it was accepted
    except LongboatError:
        with suppress(LongboatError):
            if session.made and not connection.send(calls.runs(workspace_id, session_id=session.id, limit=1)).items:
                connection.send(calls.delete_session(workspace_id, session.id))
        raise


def _tell_of_passed_over(connection: "Connection", workspace_id: str, cwd: str) -> None:
    """The first provider in longboat.json answers; if it cannot, another does. That is no secret."""
    from longboat.cli.console import notice
    from longboat.cli.environment import config_of
    from longboat.client import calls

    config = config_of(cwd) if connection.address.url is None else None
    if config is None or not config.providers or config.models.large is not None:
        return
    agent = connection.send(calls.agent(workspace_id))
    if agent.provider not in (None, next(iter(config.providers))):
        first = next(iter(config.providers))
        notice(f"{first} of longboat.json is not ready: {agent.provider}/{agent.model} answers. (Why: longboat models)")
