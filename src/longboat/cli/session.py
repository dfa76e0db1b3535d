"""`longboat session`: list, show, rename, pin, archive, summarize, delete, fork, export and import sessions."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO

import click
import msgspec

from longboat.cli import shell_completion
from longboat.cli.console import ago, json_line, notice, one_line, safe, table
from longboat.cli.options import cwd_option, elsewhere, events_option, format_option, own_name
from longboat.cli.runs import OUTCOMES
from longboat.wire.amounts import cost_of
from longboat.wire.ids import person
from longboat.wire.listings import Archived
from longboat.wire.models import (
    FinishPart,
    FinishReason,
    Message,
    Outcome,
    Role,
    Session,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

if TYPE_CHECKING:
    from longboat.cli.connection import Connection

MOST = 10_000
"""The most sessions in one list."""
LONG = 8 << 20
"""Importing a larger document, in bytes, takes long enough for a notice."""

session_argument = click.argument("session_id", metavar="SESSION", shell_complete=shell_completion.sessions)


@click.group(short_help="List, show, rename, pin, archive, summarize, delete, fork, export and import sessions.")
def session() -> None:
    """Manage the sessions in this directory.

    \b
    longboat session list
    longboat session show 0198c2f4-…
    longboat session export 0198c2f4-… > session.json
    longboat session import session.json
    """


@session.command("list")
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="Maximum number of sessions."
)
@click.option("--search", default="", metavar="WORDS", help="Only sessions with these words in the title.")
@click.option("--all", "everything", is_flag=True, help="Include sessions of sub-agents, marked with ↳.")
@click.option("--archived", is_flag=True, help="Only archived sessions.")
@format_option
@cwd_option
def list_sessions(*, limit: int, search: str, everything: bool, archived: bool, style: str, cwd: str) -> None:
    """List sessions: pinned ones first, then the most recently used. Archived sessions are hidden.

    \b
    longboat session list
    longboat session list --search "broken build"
    longboat session list --archived
    longboat session list --limit 500
    longboat session list --format json | jq -r .id

    `longboat search` searches the messages.
    """
    connection, workspace_id = _workspace(cwd)
    known = _sessions(connection, workspace_id, search=search, everything=everything, archived=archived)
    found = sorted(known, key=lambda each: (each.pinned, each.updated_at), reverse=True)[:limit]
    if style == "json":
        for each in found:
            json_line(each)
    elif found:
        _print_sessions(found, known)
        if hidden := len(known) - len(found):
            searched = f" --search {shlex.quote(search)}" if search else ""
            options = f"{searched}{' --all' if everything else ''}{' --archived' if archived else ''}{elsewhere(cwd)}"
            notice(f"{hidden} more: longboat session list{options} --limit {min(len(known), MOST)}")
    elif search:
        click.echo(f"No session has {safe(search)!r} in its title.")
    else:
        click.echo("No archived sessions." if archived else 'No sessions yet. Start one with: longboat run "…"')


def _print_sessions(shown: Sequence[Session], known: Sequence[Session]) -> None:
    from longboat.cli.ids import short_ids

    shown = _families(shown)
    ids = short_ids([each.id for each in shown], (each.id for each in known))
    table(
        ("SESSION", "STATE", "USED", "COST", "TITLE"),
        [
            (
                name,
                _state(each),
                ago(each.updated_at),
                cost_of(each.usage) if each.usage != Usage() else "-",
                f"{'★ ' if each.pinned else ''}{'↳ ' if each.parent_id else ''}{one_line(each.title) or '(untitled)'}",
            )
            for name, each in zip(ids, shown, strict=True)
        ],
        spare=("COST",),
    )


def _families(found: Sequence[Session]) -> list[Session]:
    """The sessions with those of sub-agents under the session that started them."""
    listed = {each.id for each in found}
    tops = [each for each in found if each.parent_id not in listed]
    return [each for top in tops for each in (top, *(one for one in found if one.parent_id == top.id))]


def _state(listed: Session) -> str:
    """Whether it is busy; if not, whether its last turn failed."""
    if listed.busy:
        return "busy"
    return OUTCOMES[listed.last_outcome] if listed.last_outcome in (Outcome.ERROR, Outcome.INTERRUPTED) else "idle"


@session.command("show")
@click.argument("session_id", metavar="SESSION", required=False, shell_complete=shell_completion.sessions)
@click.option(
    "--wire",
    "run_id",
    metavar="RUN",
    shell_complete=shell_completion.runs,
    help="Show what this run sent to models instead.",
)
@click.option("--request", "number", type=click.IntRange(1), metavar="N", help="With --wire: only the Nth request.")
@format_option
@cwd_option
def show_session(session_id: str | None, run_id: str | None, number: int | None, style: str, cwd: str) -> None:
    """Show a session's messages, without undone turns.

    With --wire, show the requests of a run to its models, retries included: system prompt, messages, tools, their
    tokens by part, and the tokens that the provider took from its cache. Keys and headers are not stored. Attachments
    are shown only by their size.

    \b
    longboat session show 0198c2f4-…
    longboat session show 0198c2f4-… --format json | jq -r .role        one message per line
    longboat session show --wire 0198c2f5-…                             what was sent; the last request in full
    longboat session show --wire 0198c2f5-… --request 1
    longboat session show --wire 0198c2f5-… --format json | jq .body    one request per line
    """
    if run_id is not None:
        _show_wire(run_id, number, style, cwd)
        return
    if number is not None:
        raise click.UsageError("--request needs --wire RUN.")
    if session_id is None:
        raise click.UsageError("Name a SESSION, or a run with --wire RUN. `longboat session list` lists sessions.")
    connection, workspace_id, found = _session_meant(cwd, session_id)
    messages = _messages(connection, workspace_id, found.id)
    if style == "json":
        for message in messages:
            json_line(message)
        return
    click.secho(safe(found.title) or "(untitled)", bold=True)
    senders = _senders(connection, workspace_id, found.id)
    for message in messages:
        _print_message(message, senders)
    if not messages:
        click.echo("No messages.")
    _print_undone(connection, workspace_id, found.id)


def _show_wire(run_id: str, number: int | None, style: str, cwd: str) -> None:
    from longboat.cli.ids import run_meant
    from longboat.cli.sent_requests import show_requests

    connection, workspace_id = _workspace(cwd)
    found = run_meant(connection, workspace_id, run_id)
    show_requests(connection, workspace_id, found.run_id, number=number, style=style, cwd=cwd)


@session.command("rename")
@session_argument
@click.argument("title")
@cwd_option
def rename_session(session_id: str, title: str, cwd: str) -> None:
    """Change a session's title.

    \b
    longboat session rename 0198c2f4-91… "The broken build"
    """
    from longboat.client import calls

    connection, workspace_id, found = _session_meant(cwd, session_id)
    renamed = connection.send(calls.rename_session(workspace_id, found.id, title))
    click.echo(f"{renamed.id} {one_line(renamed.title)}")


def _mark(session_id: str, cwd: str, done: str, *, pinned: bool | None = None, archived: bool | None = None) -> None:
    from longboat.client import calls

    connection, workspace_id, found = _session_meant(cwd, session_id)
    marked = connection.send(calls.mark_session(workspace_id, found.id, pinned=pinned, archived=archived))
    click.echo(f"{marked.id} {done}")


@session.command("pin")
@session_argument
@cwd_option
def pin_session(session_id: str, cwd: str) -> None:
    """Pin a session: it comes first in lists.

    \b
    longboat session pin 0198c2f4-91…
    """
    _mark(session_id, cwd, "pinned", pinned=True)


@session.command("unpin")
@session_argument
@cwd_option
def unpin_session(session_id: str, cwd: str) -> None:
    """Unpin a session.

    \b
    longboat session unpin 0198c2f4-91…
    """
    _mark(session_id, cwd, "unpinned", pinned=False)


@session.command("archive")
@session_argument
@cwd_option
def archive_session(session_id: str, cwd: str) -> None:
    """Hide a session from lists. Nothing is deleted: search still finds it, and a new prompt restores it.

    \b
    longboat session archive 0198c2f4-91…
    """
    _mark(session_id, cwd, "archived", archived=True)


@session.command("unarchive")
@session_argument
@cwd_option
def unarchive_session(session_id: str, cwd: str) -> None:
    """Show an archived session in lists again.

    \b
    longboat session unarchive 0198c2f4-91…
    """
    _mark(session_id, cwd, "unarchived", archived=False)


@session.command("summarize")
@session_argument
@events_option
@cwd_option
@click.pass_context
def summarize_session(ctx: click.Context, session_id: str, style: str, cwd: str) -> None:
    """Summarize a session to free context.

    The model writes a summary, and the session continues from it instead of from all messages. This is a run like any
    other: it waits for the session's active run, and `longboat cancel` cancels it.

    \b
    longboat session summarize 0198c2f4-…
    """
    from longboat.cli.display import display_of
    from longboat.cli.waiting import wait
    from longboat.client import calls
    from longboat.wire.ids import new_id
    from longboat.wire.requests import Summarize

    connection, workspace_id, found = _session_meant(cwd, session_id)
    wanted = Summarize(run_id=new_id(), client_id=own_name())
    accepted = connection.send(calls.summarize_session(workspace_id, found.id, wanted))
    ctx.exit(wait(workspace_id, accepted.run_id, display_of(style), give_up_after_s=60))


@session.command("delete")
@session_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@cwd_option
def delete_session(session_id: str, yes: bool, cwd: str) -> None:
    """Delete a session permanently.

    Cancels its runs, and deletes the sessions of its sub-agents too.

    \b
    longboat session delete 0198c2f4-…
    """
    from longboat.client import calls

    connection, workspace_id, found = _session_meant(cwd, session_id)
    if not yes:
        click.confirm(f"Permanently delete {one_line(found.title, 60) or found.id}?", abort=True, err=True)
    connection.send(calls.delete_session(workspace_id, found.id))
    click.echo(f"{found.id} deleted")


@session.command("fork")
@session_argument
@click.option(
    "--at", "message_id", metavar="MESSAGE", help="Copy up to this message.  [default: all finished messages]"
)
@cwd_option
def fork_session(session_id: str, message_id: str | None, cwd: str) -> None:
    """Start a new session from a copy of another.

    The original session is not changed.

    \b
    longboat session fork 0198c2f4-…
    """
    from longboat.client import calls

    connection, workspace_id, found = _session_meant(cwd, session_id)
    forked = connection.send(calls.fork_session(workspace_id, found.id, message_id))
    click.echo(f"{forked.id} {one_line(forked.title)}")


class LeftOut(msgspec.Struct):
    """The field of an export that names what is missing."""

    left_out: tuple[str, ...] = ()


@session.command("export")
@session_argument
@click.option("--markdown", is_flag=True, help="Print Markdown, for reading. It cannot be imported.")
@cwd_option
def export_session(session_id: str, markdown: bool, cwd: str) -> None:
    """Print a session as JSON or Markdown.

    Contains all finished messages. `longboat session import` reads the JSON. Parts that are damaged in the database are
    omitted and named on stderr.

    \b
    longboat session export 0198c2f4-… > session.json
    longboat session export --markdown 0198c2f4-… > session.md
    """
    from longboat.client import calls

    connection, workspace_id, found = _session_meant(cwd, session_id)
    content = connection.send(calls.export_text(workspace_id, found.id, "markdown" if markdown else "json"))
    if not markdown and (left_out := msgspec.json.decode(content, type=LeftOut).left_out):
        notice(f"Damaged and omitted: {one_line(', '.join(left_out))}.")
    click.echo(safe(content.decode()) if markdown else msgspec.json.format(content, indent=2), nl=not markdown)


@session.command("import")
@click.argument("document", metavar="FILE", type=click.File("rb"))
@cwd_option
def import_session(document: BinaryIO, cwd: str) -> None:
    """Create a session from an export.

    Use `-` to read it from stdin. Project files are not changed.

    \b
    longboat session import session.json
    """
    from longboat.client import calls

    content = document.read()
    connection, workspace_id = _workspace(cwd)
    if len(content) > LONG and sys.stderr.isatty():
        notice(f"Importing {len(content) >> 20} MB…")
    made = connection.send(calls.import_session(workspace_id, content))
    click.echo(f"{made.id} {one_line(made.title)}")


def _workspace(cwd: str) -> "tuple[Connection, str]":
    from longboat.cli.background import ensure_server

    connection = ensure_server(cwd)
    return connection, connection.join(cwd).id


def _session_meant(cwd: str, session_id: str) -> "tuple[Connection, str, Session]":
    """The session that an id, or the beginning of one, stands for; and where it is."""
    from longboat.cli.ids import session_meant

    connection, workspace_id = _workspace(cwd)
    return connection, workspace_id, session_meant(connection, workspace_id, session_id)


def _sessions(
    connection: "Connection", workspace_id: str, *, search: str, everything: bool, archived: bool
) -> list[Session]:
    from longboat.client import calls

    which = Archived.ONLY if archived else Archived.LEFT_OUT
    pages = connection.pages(
        lambda after: calls.sessions(
            workspace_id, limit=500, after=after, search=search, top=not everything, archived=which
        )
    )
    return [each for page in pages for each in page.items]


def _messages(connection: "Connection", workspace_id: str, session_id: str) -> list[Message]:
    from longboat.client import calls

    pages = connection.pages(lambda after: calls.messages(workspace_id, session_id, limit=500, after=after))
    return [message for page in pages for message in page.items]


def _senders(connection: "Connection", workspace_id: str, session_id: str) -> dict[str, str]:
    """The sender of each run, if known."""
    from longboat.client import calls

    me = person(own_name())
    pages = connection.pages(lambda after: calls.runs(workspace_id, session_id=session_id, limit=500, after=after))
    named = ((run.run_id, person(run.client_id)) for page in pages for run in page.items if run.client_id)
    return {run_id: "you" if name == me else safe(name) for run_id, name in named}


def _print_undone(connection: "Connection", workspace_id: str, session_id: str) -> None:
    from longboat.client import calls

    if turns := connection.send(calls.session_status(workspace_id, session_id)).undone:
        what = "1 undone turn is" if turns == 1 else f"{turns} undone turns are"
        click.echo(f"\n[{what} not shown. Redo the last one with: longboat redo -s {session_id}]")


def _print_message(message: Message, senders: Mapping[str, str]) -> None:
    lines: list[str] = []
    for part in message.parts:
        match part:
            case TextPart(text=text) if text:
                lines.append(safe(text))
            case ToolCallPart():
                lines.append(f"[{part.name} {one_line(part.input, 100)}]")
            case ToolResultPart(finished=False):
                lines.append("[still running, or waiting for an answer]")
            case ToolResultPart():
                lines.append(f"[{'failed' if part.is_error else 'result'}: {one_line(part.content, 100)}]")
            case FinishPart(reason=reason) if reason is not FinishReason.END_TURN:
                lines.append(_finish(part))
            case _:
                pass
    if lines:
        click.echo()
        who = {Role.ASSISTANT: "agent", Role.TOOL: "tools"}.get(message.role) or senders.get(message.run_id, "user")
        click.secho(who, fg="cyan")
        click.echo("\n".join(lines))


def _finish(part: FinishPart) -> str:
    reason = "failed" if part.reason is FinishReason.ERROR else part.reason.value.replace("_", " ")
    said = [text for text in (part.title, part.detail) if text and text.lower() != reason]
    return f"[{reason}] {': '.join(map(safe, said))}".rstrip()
