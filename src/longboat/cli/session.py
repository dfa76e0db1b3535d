"""`longboat session`: list, show, rename, delete, export."""

from typing import TYPE_CHECKING

import click

from longboat.cli.console import ago, json_line, json_page, one_line, safe, table
from longboat.cli.options import cwd_option, format_option
from longboat.wire.models import FinishPart, FinishReason, Message, Role, TextPart, ToolCallPart, ToolResultPart

if TYPE_CHECKING:
    from longboat.cli.connection import Connection


@click.group(short_help="List, show, rename, delete and export sessions.")
def session() -> None:
    """The sessions of this directory.

    \b
    longboat session list
    longboat session show 0198c2f4-…
    longboat session export 0198c2f4-… > session.json
    """


@session.command("list")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True, help="At most so many.")
@format_option
@cwd_option
def list_sessions(limit: int, style: str, cwd: str) -> None:
    """List sessions, the one that was made last first. (`longboat run -c` goes on in the one that was used last.)

    \b
    longboat session list --format json | jq -r .id
    """
    from longboat.client import calls

    connection, workspace_id = _workspace(cwd)
    page = connection.send(calls.sessions(workspace_id, limit=limit))
    if style == "json":
        for each in page.items:
            json_line(each)
    elif page.items:
        rows = [
            (each.id, "busy" if each.busy else "idle", ago(each.updated_at), one_line(each.title) or "(untitled)")
            for each in page.items
        ]
        table(("SESSION", "STATE", "CHANGED", "TITLE"), rows)
    else:
        click.echo('No sessions yet: longboat run "…" starts one.')


@session.command("show")
@click.argument("session_id", metavar="SESSION")
@format_option
@cwd_option
def show_session(session_id: str, style: str, cwd: str) -> None:
    """Show what was said in a session.

    \b
    longboat session show 0198c2f4-…
    """
    from longboat.cli.ids import session_meant

    connection, workspace_id = _workspace(cwd)
    found = session_meant(connection, workspace_id, session_id)
    if style == "text":
        click.secho(safe(found.title) or "(untitled)", bold=True)
    for message in _messages(connection, workspace_id, found.id):
        if style == "json":
            json_line(message)
        else:
            _print_message(message)


@session.command("rename")
@click.argument("session_id", metavar="SESSION")
@click.argument("title")
@cwd_option
def rename_session(session_id: str, title: str, cwd: str) -> None:
    """Give a session another title.

    \b
    longboat session rename 0198c2f4-91… "The broken build"
    """
    from longboat.cli.ids import session_meant
    from longboat.client import calls

    connection, workspace_id = _workspace(cwd)
    found = session_meant(connection, workspace_id, session_id)
    renamed = connection.send(calls.rename_session(workspace_id, found.id, title))
    click.echo(f"{renamed.id} {one_line(renamed.title)}")


@session.command("delete")
@click.argument("session_id", metavar="SESSION")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@cwd_option
def delete_session(session_id: str, yes: bool, cwd: str) -> None:
    """Cancel a session's runs and delete it for good.

    \b
    longboat session delete 0198c2f4-…
    """
    from longboat.cli.ids import session_meant
    from longboat.client import calls

    connection, workspace_id = _workspace(cwd)
    found = session_meant(connection, workspace_id, session_id)
    if not yes:
        click.confirm(f"Delete {one_line(found.title, 60) or found.id} for good?", abort=True, err=True)
    connection.send(calls.delete_session(workspace_id, found.id))
    click.echo(f"{found.id} deleted")


@session.command("export")
@click.argument("session_id", metavar="SESSION")
@cwd_option
def export_session(session_id: str, cwd: str) -> None:
    """Print a session with its messages and runs as one JSON document, oldest first.

    \b
    longboat session export 0198c2f4-… > session.json
    """
    from longboat.cli.ids import session_meant
    from longboat.client import calls

    connection, workspace_id = _workspace(cwd)
    found = session_meant(connection, workspace_id, session_id)
    runs = [
        run
        for page in connection.pages(
            lambda after: calls.runs(workspace_id, session_id=found.id, limit=500, after=after)
        )
        for run in page.items
    ]
    messages = _messages(connection, workspace_id, found.id)
    json_page({"session": found, "messages": messages, "runs": sorted(runs, key=lambda run: run.seq)})


def _workspace(cwd: str) -> "tuple[Connection, str]":
    from longboat.cli.background import ensure_server

    connection = ensure_server(cwd)
    return connection, connection.join(cwd).id


def _messages(connection: "Connection", workspace_id: str, session_id: str) -> list[Message]:
    from longboat.client import calls

    pages = connection.pages(lambda after: calls.messages(workspace_id, session_id, limit=500, after=after))
    return [message for page in pages for message in page.items]


def _print_message(message: Message) -> None:
    lines: list[str] = []
    for part in message.parts:
        match part:
            case TextPart(text=text) if text:
                lines.append(safe(text))
            case ToolCallPart():
                lines.append(f"[{part.name} {one_line(part.input, 100)}]")
            case ToolResultPart():
                lines.append(f"[{'failed' if part.is_error else 'result'}: {one_line(part.content, 100)}]")
            case FinishPart(reason=reason) if reason is not FinishReason.END_TURN:
                lines.append(_finish(part))
            case _:
                pass
    if lines:
        click.echo()
        click.secho({Role.USER: "you", Role.ASSISTANT: "agent", Role.TOOL: "tools"}[message.role], fg="cyan")
        click.echo("\n".join(lines))


def _finish(part: FinishPart) -> str:
    told = ": ".join(safe(text) for text in (part.title, part.detail) if text)
    return f"[{part.reason.value.replace('_', ' ')}] {told}".rstrip()
