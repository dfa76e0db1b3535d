"""`longboat permissions`: list and answer permission requests."""

import click

from longboat.cli import shell_completion
from longboat.cli.options import cwd_option, everywhere_option, format_option, hand_down
from longboat.wire.asks import PermissionAnswer
from longboat.wire.inbox import InboxKind


@click.group(invoke_without_command=True, short_help="Answer or list permission requests.")
@everywhere_option
@format_option
@cwd_option
@click.pass_context
def permissions(ctx: click.Context, everywhere: bool, style: str, cwd: str) -> None:
    """Answer the tool calls that need approval, one by one. The first answer counts, from any client.

    In a pipe or a script, this lists them instead, like `longboat permissions list`.

    \b
    longboat permissions
    longboat permissions --all
    longboat permissions answer 0198c2f4-… once
    longboat permissions answer 0198c2f4-… always --wide
    longboat permissions answer 0198c2f4-… deny --reason "use the test database"
    """
    hand_down(ctx)
    if ctx.invoked_subcommand is None:
        _list(everywhere, style, cwd, answer=True)


@permissions.command("list")
@everywhere_option
@format_option
@cwd_option
def list_permissions(everywhere: bool, style: str, cwd: str) -> None:
    """List pending permission requests, oldest first.

    \b
    longboat permissions list --format json | jq -r .id
    """
    _list(everywhere, style, cwd)


@permissions.command("answer")
@click.argument("permission_id", metavar="ID", shell_complete=shell_completion.permissions)
@click.argument("answer", type=click.Choice([each.value for each in PermissionAnswer]))
@click.option("--wide", is_flag=True, help="With session or always: use the wider rules.")
@click.option("--reason", default="", metavar="TEXT", help="With deny: tell the agent what to do instead.")
@cwd_option
def answer_permission(permission_id: str, answer: str, wide: bool, reason: str, cwd: str) -> None:
    """Allow a call once, for its session or always; or deny it. Works from any directory.

    "always" adds a rule to the project's longboat.json.

    \b
    longboat permissions answer 0198c2f4-… session
    """
    from longboat.cli.background import ensure_server
    from longboat.cli.console import one_line
    from longboat.cli.ids import ask_meant
    from longboat.cli.inbox import pending_asks, workspace_with
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
    waiting = pending_asks(connection, InboxKind.PERMISSION)
    pending = {item.permission.id: item.permission for item in waiting if item.permission is not None}
    meant = ask_meant("permissions", permission_id, pending)
    workspace_id = workspace_with(waiting, meant) or connection.join(cwd).id
    if wide and meant in pending and not pending[meant].wide:
        instead = "Answer without --wide." if pending[meant].grant else "Answer with once or deny."
        raise Failure("This call has no wider rules.", instead)
    request = AnswerPermission(answer=given, wide=wide, reason=reason, client_id=own_name())
    ask = connection.send(calls.answer_permission(workspace_id, meant, request))
    click.echo(f"{ask.id} {ask.answer}")
    for rule in ask.granted:
        click.echo(f"  now allowed: {one_line(rule)}")


def _list(everywhere: bool, style: str, cwd: str, *, answer: bool = False) -> None:
    where = None if everywhere else cwd
    print_asks(InboxKind.PERMISSION, style, where, none="No pending permission requests.", answer=answer)


def print_asks(kind: InboxKind, style: str, cwd: str | None, *, none: str, answer: bool = False) -> None:
    """List the pending permission requests or questions of the workspace, or of all workspaces if `cwd` is None. `none`
    is the text if there are none. `answer`: if a person is at this terminal, ask for the answers instead."""
    from longboat.cli.asks import how_to_answer, render_ask
    from longboat.cli.background import ensure_server
    from longboat.cli.console import ago, json_line, one_line
    from longboat.cli.inbox import pending_asks

    connection = ensure_server(cwd or ".")
    items = pending_asks(connection, kind)
    if cwd is not None:
        workspace_id = connection.join(cwd).id
        items = [item for item in items if item.workspace_id == workspace_id]
    if items and answer and style == "text" and _is_person_here():
        from longboat.cli.answer_pending import answer_pending

        answer_pending(connection, items, everywhere=cwd is None)
        return
    for item in items:
        ask = item.permission or item.question
        assert ask is not None
        if style == "json":
            json_line(ask)
            continue
        where = f" in {one_line(item.workspace_path)}" if cwd is None else ""
        click.echo(f"{ask.id}  asked {ago(ask.asked_at)} by run {ask.parent_run_id or ask.run_id}{where}")
        for line in render_ask(ask, whole=True):
            click.echo(f"  {line}")
        click.echo(f"  {how_to_answer(ask)}")
    if not items and style == "text":
        click.echo(none)


def _is_person_here() -> bool:
    import sys

    from longboat.cli.run_asks import can_ask

    return can_ask() and sys.stdout.isatty()
