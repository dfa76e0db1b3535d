"""`longboat permissions`: list and answer permission requests."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from longboat.cli import shell_completion
from longboat.cli.options import cwd_option, elsewhere, format_option, hand_down
from longboat.wire.asks import PermissionAnswer, PermissionPage, QuestionPage

if TYPE_CHECKING:
    from longboat.client.calls import Call

Page = TypeVar("Page", PermissionPage, QuestionPage)


@click.group(invoke_without_command=True, short_help="Answer or list permission requests.")
@format_option
@cwd_option
@click.pass_context
def permissions(ctx: click.Context, style: str, cwd: str) -> None:
    """Answer the tool calls that need approval, one by one. The first answer wins, whoever gives it.

    In a pipe or a script this lists them, as `longboat permissions list` does.

    \b
    longboat permissions
    longboat permissions answer 0198c2f4-… once
    longboat permissions answer 0198c2f4-… always --wide
    longboat permissions answer 0198c2f4-… deny --reason "use the test database"
    """
    hand_down(ctx)
    if ctx.invoked_subcommand is None:
        _list(style, cwd, answer=True)


@permissions.command("list")
@format_option
@cwd_option
def list_permissions(style: str, cwd: str) -> None:
    """List pending permission requests, oldest first.

    \b
    longboat permissions list --format json | jq -r .id
    """
    _list(style, cwd)


@permissions.command("answer")
@click.argument("permission_id", metavar="ID", shell_complete=shell_completion.permissions)
@click.argument("answer", type=click.Choice([each.value for each in PermissionAnswer]))
@click.option("--wide", is_flag=True, help="With session or always: allow the wide form.")
@click.option("--reason", default="", metavar="TEXT", help="With deny: tell the agent why.")
@cwd_option
def answer_permission(permission_id: str, answer: str, wide: bool, reason: str, cwd: str) -> None:
    """Allow a call once, for its session or always; or deny it.

    "always" adds a rule to the project's longboat.json.

    \b
    longboat permissions answer 0198c2f4-… session
    """
    from longboat.cli.background import ensure_server
    from longboat.cli.console import one_line
    from longboat.cli.ids import ask_meant
    from longboat.cli.main import Failure
    from longboat.cli.options import own_name
    from longboat.client import calls
    from longboat.wire.requests import AnswerPermission

    given = PermissionAnswer(answer)
    if reason and given is not PermissionAnswer.DENY:
        raise click.UsageError("--reason can only be used with deny.")
    if wide and given not in (PermissionAnswer.SESSION, PermissionAnswer.ALWAYS):
        raise click.UsageError("--wide can only be used with session or always.")
    connection = ensure_server(cwd)
    workspace_id = connection.join(cwd).id
    pending = {ask.id: ask for ask in connection.send(calls.permissions(workspace_id)).items}
    meant = ask_meant("permissions", permission_id, pending)
    if wide and meant in pending and not pending[meant].wide:
        instead = "Answer without --wide." if pending[meant].grant else "Answer with once or deny."
        raise Failure("This call has no wide form.", instead)
    request = AnswerPermission(answer=given, wide=wide, reason=reason, client_id=own_name())
    ask = connection.send(calls.answer_permission(workspace_id, meant, request))
    click.echo(f"{ask.id} {ask.answer}")
    for rule in ask.granted:
        click.echo(f"  now allowed: {one_line(rule)}")


def _list(style: str, cwd: str, *, answer: bool = False) -> None:
    from longboat.client import calls

    print_asks(calls.permissions, style, cwd, none="No pending permission requests.", answer=answer)


def print_asks(
    pending: "Callable[[str], Call[Page]]", style: str, cwd: str, *, none: str, answer: bool = False
) -> None:
    """List the pending permission requests or questions of the workspace; `none` is the text if there are none.
    `answer`: if a person is at this terminal, ask for the answers instead."""
    from longboat.cli.asks import how_to_answer, render_ask
    from longboat.cli.background import ensure_server
    from longboat.cli.console import ago, json_line

    connection = ensure_server(cwd)
    workspace_id = connection.join(cwd).id
    page = connection.send(pending(workspace_id))
    if page.items and answer and style == "text" and _is_person_here():
        from longboat.cli.answer_pending import answer_pending

        answer_pending(connection, workspace_id, page.items)
        return
    for ask in page.items:
        if style == "json":
            json_line(ask)
            continue
        click.echo(f"{ask.id}  asked {ago(ask.asked_at)} by run {ask.parent_run_id or ask.run_id}")
        for line in render_ask(ask, whole=True):
            click.echo(f"  {line}")
        click.echo(f"  {how_to_answer(ask, elsewhere(cwd))}")
    if not page.items and style == "text":
        click.echo(none)


def _is_person_here() -> bool:
    import sys

    from longboat.cli.run_asks import can_ask

    return can_ask() and sys.stdout.isatty()
