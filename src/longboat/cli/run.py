"""`longboat run`: send a prompt, show the answer, exit with a code."""

from typing import IO, TYPE_CHECKING, TypedDict, Unpack

import click

from longboat.cli import shell_completion
from longboat.cli.main import Failure, forget_stdout
from longboat.cli.options import cwd_option, events_option, own_name
from longboat.errors import BadInput, NotFound

if TYPE_CHECKING:
    from longboat.cli.connection import Connection
    from longboat.wire.models import Workspace
    from longboat.wire.requests import Effort, Submit


class _PromptOptions(TypedDict):
    """What the options say about the prompt itself."""

    prompt: tuple[str, ...]
    model: str | None
    files: tuple[str, ...]
    effort: "Effort | None"
    schema: IO[bytes] | None
    delivery: str | None
    yolo: bool
    plan: bool
    wait_for_answers: bool
    run_id: str | None


def _model_name(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    if given is not None and not all(given.partition("/")):
        raise click.BadParameter(f"{given!r} is not of the form PROVIDER/MODEL. (`longboat models` lists the models.)")
    return given


def _own_id(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    from longboat.wire.ids import check_own_id

    try:
        return check_own_id(given, field="run_id") if given is not None else None
    except BadInput as wrong:
        raise click.BadParameter(wrong.message) from None


@click.command(short_help="Send a prompt and stream the answer.")
@click.argument("prompt", nargs=-1)
@click.option("-s", "--session", metavar="ID", shell_complete=shell_completion.sessions, help="Continue this session.")
@click.option("-c", "--continue", "last", is_flag=True, help="Continue the last session used in this directory.")
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
    help="Attach a file: text, image or PDF. Can be repeated.",
)
@click.option("--effort", type=click.Choice(["low", "medium", "high"]), help="Reasoning effort.")
@click.option(
    "--schema",
    type=click.File("rb"),
    metavar="FILE",
    help="Print only a JSON answer that matches this JSON Schema; exit code 1 if there is none.",
)
@click.option(
    "--delivery",
    type=click.Choice(["steer", "queue"]),
    help="If the session is busy: steer the running turn, or queue behind it.  [default: queue]",
)
@events_option
@click.option("--yolo", is_flag=True, help="Approve all: allow everything that no rule denies, without asking.")
@click.option(
    "--plan", is_flag=True, help="Plan first: change nothing until someone approves the plan, which becomes the todos."
)
@click.option("--wait-for-answers", is_flag=True, help="Without a terminal, wait for answers from other clients.")
@click.option("--detach", is_flag=True, help="Print the run's id and exit without waiting.")
@click.option(
    "--run-id",
    metavar="ID",
    callback=_own_id,
    help="Set the run's id. Repeating the command with the same id does not send the prompt twice.",
)
@click.option(
    "--send-env/--no-send-env",
    default=None,
    help="Run commands in this shell's environment, or in the server's.  [default: this shell's, except over TCP]",
)
@click.option("--give-up-after", type=click.FloatRange(0), default=60, metavar="SECONDS", hidden=True)
@cwd_option
@click.pass_context
def run(
    ctx: click.Context,
    *,
    session: str | None,
    last: bool,
    style: str,
    detach: bool,
    send_env: bool | None,
    give_up_after: float,
    cwd: str,
    **wanted: Unpack[_PromptOptions],
) -> None:
    """Send PROMPT to the agent and stream its answer. Starts a server in the background if none is running.

    Piped input is appended to the prompt, or is the prompt if you give none. Longboat waits 3 s for it; end the prompt
    with "-" to wait for as long as it takes, or redirect from /dev/null if there is none. A file on standard input is
    read only if the prompt ends with "-", so that you can call Longboat in a loop that reads a file.

    Ctrl-C cancels the run, as does SIGTERM, which `timeout` and CI systems send. Closing the terminal does not.

    At a terminal, you answer the agent's questions and permission requests. Without one, Longboat cancels the run
    with exit code 1 as soon as it needs approval, unless you use --yolo or --wait-for-answers. The agent then decides
    for itself instead of asking questions, and a turn that reaches a limit ends with exit code 1 (`limits` in
    longboat.json).

    With --plan, the agent first reads and asks, then proposes a plan. You approve it, or say what to change. If no
    one can answer, the run ends with the plan as its answer and changes nothing.

    Exit code: 0 answered, 1 failed, 2 usage error, 130 canceled.

    \b
    longboat run "Why does the build fail?"
    longboat run -c "Then fix it."
    git diff | longboat run "Review this."
    longboat run "What does this mean?" - < error.log
    longboat run -a screenshot.png "What is wrong here?"
    longboat run /review src/                 runs your .agents/commands/review.md
    longboat run --yolo "Fix the failing test."
    longboat run --plan "Replace the HTTP library."
    longboat run --schema answer.json "Which files have no tests?"
    longboat run --detach "Tidy up the tests."
    """
    if session is not None and last:
        raise click.UsageError("Use -s or -c, not both.")
    import msgspec

    from longboat.cli.background import ensure_server
    from longboat.cli.shell_env import env_for
    from longboat.client.prompting import detach as hand_in

    submit = _read_submission(wanted)
    connection = ensure_server(cwd)
    env = env_for(connection.address, send_env)
    workspace = connection.join(cwd, client_id=own_name(), env=env)
    workspace_id = workspace.id
    session_id = _session(connection, workspace_id, given=session, last=last, run_id=wanted["run_id"])
    model = _check_model(connection, workspace_id, submit, cwd, is_new=not session_id, run_id=wanted["run_id"])
    _tell_if_away(workspace)
    submit = msgspec.structs.replace(submit, session_id=session_id)
    if detach:
        click.echo(connection.carry_out(hand_in(workspace_id, submit)).run_id)
    else:
        ctx.exit(_wait(workspace_id, submit, style, give_up_after, model))


def _read_submission(wanted: _PromptOptions) -> "Submit":
    """Read the prompt and the files that the options name. The session is not known yet."""
    from longboat.cli.prompt import read_attachments, read_prompt, read_schema
    from longboat.wire.ids import new_id
    from longboat.wire.models import Delivery
    from longboat.wire.requests import Approve, Submit

    schema, delivery = wanted["schema"], wanted["delivery"]
    form, attachments = read_schema(schema) if schema is not None else None, read_attachments(wanted["files"])
    return Submit(
        session_id="",
        prompt=read_prompt(wanted["prompt"]),
        run_id=wanted["run_id"] or new_id(),
        delivery=Delivery(delivery) if delivery else None,
        attachments=attachments,
        model=wanted["model"],
        approve=Approve.ALL if wanted["yolo"] else Approve.ASK,
        effort=wanted["effort"],
        schema=form,
        plan=wanted["plan"],
        wait_for_answers=wanted["wait_for_answers"],
        client_id=own_name(),
    )


def _check_model(
    connection: "Connection", workspace_id: str, submit: "Submit", cwd: str, *, is_new: bool, run_id: str | None
) -> str:
    """Refuse a new session if no model is ready, and show what there is to know about the model. Returns its name,
    empty if it is not known."""
    from longboat.cli.console import notice
    from longboat.cli.model_notice import check_ready, notices_about_model
    from longboat.client import calls

    may_choose = submit.prompt.startswith("/")  # a command file may choose its own model
    if is_new and not may_choose and not _is_known(connection, workspace_id, run_id):
        check_ready(connection, workspace_id, submit.model)
    agent = connection.send(calls.agent(workspace_id, model=submit.model))
    for told in notices_about_model(connection, agent, cwd, submit.model):
        notice(told)
    return "" if may_choose or not (agent.provider and agent.model) else f"{agent.provider}/{agent.model}"


def _tell_if_away(workspace: "Workspace") -> None:
    from longboat.cli.console import notice, one_line

    if workspace.away:
        state = "stopping" if workspace.home_stopping else "down"
        notice(f"Node {one_line(workspace.home or '')} is {state}. The prompt is queued until it is back.")


def _wait(workspace_id: str, submit: "Submit", style: str, give_up_after_s: float, model: str) -> int:
    from longboat.cli.display import display_of
    from longboat.cli.waiting import submit_and_wait

    display = display_of(style, at_once=submit.schema is not None, model=model)
    try:
        return submit_and_wait(workspace_id, submit, display, give_up_after_s=give_up_after_s)
    except BrokenPipeError:
        raise
    except OSError as error:
        forget_stdout()
        why = f"Cannot write the answer: {error.strerror or error}."
        raise Failure(why, f"The run continues. Follow it with: longboat watch {submit.run_id}") from error


def _session(connection: "Connection", workspace_id: str, *, given: str | None, last: bool, run_id: str | None) -> str:
    """The id of the requested session; empty for a new one, and for a known run, whose session the server knows."""
    from longboat.cli.connection import last_session
    from longboat.cli.console import notice
    from longboat.cli.ids import session_meant

    if given is not None:
        return session_meant(connection, workspace_id, given).id
    if not last or _is_known(connection, workspace_id, run_id):
        return ""
    found = last_session(connection, workspace_id)
    if found is None:
        notice("No session in this directory yet. Starting a new one.")
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
