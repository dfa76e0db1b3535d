"""`longboat run`: a prompt, its answer, an exit code."""

from typing import IO, TYPE_CHECKING

import click

from longboat.cli import shell_completion
from longboat.cli.main import Failure, forget_stdout
from longboat.cli.options import cwd_option, events_option, own_name
from longboat.errors import BadInput, NotFound

if TYPE_CHECKING:
    from longboat.cli.connection import Connection
    from longboat.wire.requests import Effort, Submit


def _model_name(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    if given is not None and not all(given.partition("/")):
        raise click.BadParameter(f"{given!r} is not of the form PROVIDER/MODEL. (`longboat models` shows them.)")
    return given


def _own_id(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    from longboat.wire.ids import check_own_id

    try:
        return check_own_id(given, field="run_id") if given is not None else None
    except BadInput as wrong:
        raise click.BadParameter(wrong.message) from None


@click.command(short_help="Send a prompt, stream the answer.")
@click.argument("prompt", nargs=-1)
@click.option("-s", "--session", metavar="ID", shell_complete=shell_completion.sessions, help="Go on in this session.")
@click.option("-c", "--continue", "last", is_flag=True, help="Go on in the session that was used last here.")
@click.option(
    "-m",
    "--model",
    metavar="PROVIDER/MODEL",
    callback=_model_name,
    shell_complete=shell_completion.models,
    help="Use this model for this prompt.",
)
@click.option(
    "-a",
    "--attach",
    "files",
    type=click.Path(exists=True, dir_okay=False, readable=True),
    multiple=True,
    metavar="FILE",
    help="Send this file along: a text, a picture or a PDF. (Several: -a A -a B)",
)
@click.option("--effort", type=click.Choice(["low", "medium", "high"]), help="How much the model is to think.")
@click.option(
    "--schema",
    type=click.File("rb"),
    metavar="FILE",
    help="The answer is JSON that fits this JSON Schema, and is printed alone; exit code 1 if it does not fit.",
)
@click.option(
    "--delivery",
    type=click.Choice(["steer", "queue"]),
    help="If the session is busy: steer what runs now, or queue behind it.  [default: queue]",
)
@events_option
@click.option("--yolo", is_flag=True, help="Allow this run everything that no rule denies, without asking.")
@click.option("--wait-for-answers", is_flag=True, help="Where nobody can be asked, wait until somebody answers.")
@click.option("--detach", is_flag=True, help="Do not wait: print the run's id and leave.")
@click.option(
    "--run-id",
    metavar="ID",
    callback=_own_id,
    help="Choose the run's id. The same again is the same run: safe to repeat.",
)
@click.option(
    "--send-env/--no-send-env",
    default=None,
    help="Run commands in the environment of this shell, or in the server's.  [default: this shell's, except over TCP]",
)
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
    files: tuple[str, ...],
    effort: "Effort | None",
    schema: IO[bytes] | None,
    delivery: str | None,
    style: str,
    yolo: bool,
    wait_for_answers: bool,
    detach: bool,
    run_id: str | None,
    send_env: bool | None,
    give_up_after: float,
    cwd: str,
) -> None:
    """Send PROMPT to the agent and stream its answer. A server is started in the background if none runs.

    What is piped in follows the prompt; without one, it is the prompt. A file on standard input is read only if the
    prompt ends with "-", so that a loop over a file keeps its list. A pipe on which nothing comes for 3 s is left
    alone; with "-" at the end it is waited for, and </dev/null says that there is nothing to wait for. Ctrl-C cancels
    the run; closing the terminal does not.

    What the agent asks is put to you, at a terminal. In a script there is nobody to ask: then the run is canceled and
    the exit code is 1, unless you give --yolo or --wait-for-answers.

    Exit code: 0 answered, 1 failed, 2 called wrongly, 130 canceled.

    \b
    longboat run "Why does the build fail?"
    longboat run -c "Then fix it."
    git diff | longboat run "Review this."
    longboat run "What does this mean?" - < error.log
    longboat run -a screenshot.png "What is wrong here?"
    longboat run /review src/                 your own .agents/commands/review.md
    longboat run --yolo "Fix the failing test."
    longboat run --schema answer.json "Which files have no tests?"
    longboat run --detach "Tidy up the tests."
    """
    if session is not None and last:
        raise click.UsageError("Give -s or -c, not both.")
    from longboat.cli.background import ensure_server
    from longboat.cli.console import notice
    from longboat.cli.model_notice import check_ready, notices_about_model
    from longboat.cli.prompt import read_attachments, read_prompt, read_schema
    from longboat.cli.shell_env import env_for
    from longboat.client.prompting import detach as hand_in
    from longboat.wire.ids import new_id
    from longboat.wire.models import Delivery
    from longboat.wire.requests import Approve, Submit

    form, attachments = read_schema(schema) if schema is not None else None, read_attachments(files)
    text = read_prompt(prompt)
    connection = ensure_server(cwd)
    env = env_for(connection.address, send_env)
    workspace_id = connection.join(cwd, client_id=own_name(), env=env).id
    session_id = _session(connection, workspace_id, given=session, last=last, run_id=run_id)
    # A command in a file may name a model of its own.
    if not session_id and not text.startswith("/") and not _is_known(connection, workspace_id, run_id):
        check_ready(connection, workspace_id, model)
    for told in notices_about_model(connection, workspace_id, cwd, model):
        notice(told)
    submit = Submit(
        session_id=session_id,
        prompt=text,
        run_id=run_id or new_id(),
        delivery=Delivery(delivery) if delivery else None,
        attachments=attachments,
        model=model,
        approve=Approve.ALL if yolo else Approve.ASK,
        effort=effort,
        schema=form,
        client_id=own_name(),
    )
    if detach:
        click.echo(connection.play(hand_in(workspace_id, submit)).run_id)
    else:
        ctx.exit(_wait(workspace_id, submit, style, give_up_after, wait_for_answers=wait_for_answers))


def _wait(workspace_id: str, submit: "Submit", style: str, give_up_after_s: float, *, wait_for_answers: bool) -> int:
    from longboat.cli.display import display_of
    from longboat.cli.waiting import submit_and_wait

    display = display_of(style, at_once=submit.schema is not None)
    try:
        return submit_and_wait(
            workspace_id, submit, display, give_up_after_s=give_up_after_s, wait_for_answers=wait_for_answers
        )
    except BrokenPipeError:
        raise
    except OSError as error:
        forget_stdout()
        why = f"Cannot write the answer: {error.strerror or error}."
        raise Failure(why, f"The run goes on: longboat watch {submit.run_id} shows it.") from error


def _session(connection: "Connection", workspace_id: str, *, given: str | None, last: bool, run_id: str | None) -> str:
    """The session that was asked for; nothing where it is a new one, or that of the run: whoever hands in finds out."""
    from longboat.cli.connection import last_session
    from longboat.cli.console import notice
    from longboat.cli.ids import session_meant

    if given is not None:
        return session_meant(connection, workspace_id, given).id
    if not last or _is_known(connection, workspace_id, run_id):
        return ""
    found = last_session(connection, workspace_id)
    if found is None:
        notice("There is no session in this directory yet: a new one is started.")
    return found or ""


def _is_known(connection: "Connection", workspace_id: str, run_id: str | None) -> bool:
    from longboat.client import calls

    if run_id is None:
        return False
    try:
        connection.send(calls.get_run(workspace_id, run_id))
    except NotFound:
        return False
    return True
