"""`longboat inbox`: what waits for an answer, and which runs have ended, in all workspaces. Also finds an ask by its
id, in whichever workspace it is."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import click

from longboat.cli.options import format_option
from longboat.wire.inbox import InboxItem, InboxKind, InboxPage

if TYPE_CHECKING:
    from longboat.cli.connection import Connection

PAGE = 500
MOST = 5_000
"""The most items in one list."""
STATES = {
    InboxKind.PERMISSION: "approve?",
    InboxKind.QUESTION: "question",
    InboxKind.FAILED: "failed",
    InboxKind.FINISHED: "done",
}
HEAD = ("ID", "STATE", "WHEN", "WORKSPACE", "WHAT")


@click.command(short_help="List pending requests and finished runs in all workspaces.")
@click.option("--watch", is_flag=True, help="Keep running and print new items as they arrive.")
@click.option("--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="Maximum number of items.")
@format_option
def inbox(watch: bool, limit: int, style: str) -> None:
    """List pending permission requests and questions, and runs that finished or failed in the last seven days, in all
    workspaces on this server, newest first.

    "•" marks what you have not seen yet. The last line counts the whole inbox: what waits for an answer, and the runs
    that ended unseen. The text format marks what it lists as seen; json does not. A run that you
    followed to its end in your terminal is marked as seen, too.

    \b
    longboat inbox
    longboat inbox --watch
    longboat inbox --format json | jq -r 'select(.permission) | .permission.id'
    longboat permissions answer 0198c2f4-… once
    """
    from longboat.cli.background import ensure_server
    from longboat.cli.console import json_line, notice, table
    from longboat.cli.options import own_name
    from longboat.client import calls
    from longboat.wire.inbox import MarkSeen

    connection = ensure_server(".")
    name = own_name()
    if watch:
        asyncio.run(_watch(name, limit, style))
        return
    counts: list[InboxPage] = []
    found = list(islice(_items(connection, name, counts.append), limit + 1))
    shown = found[:limit]
    if style == "json":
        for item in shown:
            json_line(item)
        return
    if not shown:
        click.echo("Nothing new: no pending requests, and no runs ended in the last seven days.")
        return
    table(HEAD, [row_of(item) for item in shown])
    click.echo(f"{counts[0].waiting} waiting, {counts[0].unseen} new")
    if len(found) > limit:
        notice(f"More items: longboat inbox --limit {min(limit * 5, MOST)}")
    unseen = tuple(item.id for item in shown if not item.seen)
    for start in range(0, len(unseen), PAGE):
        connection.send(calls.mark_seen(MarkSeen(client_id=name, ids=unseen[start : start + PAGE])))


async def _watch(name: str, limit: int, style: str) -> None:
    """Print the newest items, oldest of them first, then each new one, until Ctrl-C."""
    from longboat.cli.console import json_line
    from longboat.cli.run_asks import can_ask
    from longboat.client import Client
    from longboat.client.inbox import InboxMirror

    known: set[str] = set()
    mirror = InboxMirror()
    async with Client(client_id=name, answers=can_ask()) as client:
        async for event in client.inbox_events():
            new = mirror.apply(event)
            if isinstance(event, InboxPage):
                new = tuple(mirror.items[:limit])
            for item in reversed([item for item in new if item.id not in known]):
                known.add(item.id)
                if style == "json":
                    json_line(item)
                else:
                    click.echo("  ".join(row_of(item)))


def row_of(item: InboxItem) -> tuple[str, str, str, str, str]:
    """An item as a row of a table. The id is the one to answer with, or the run's."""
    from longboat.cli.console import ago, one_line

    ask = item.permission or item.question
    state = f"{'  ' if item.seen else '• '}{STATES[item.kind]}"
    return ask.id if ask else item.run_id, state, ago(item.at), one_line(item.workspace_path), one_line(what_of(item))


def what_of(item: InboxItem) -> str:
    """What it is about, for people. Contains untrusted text."""
    if item.permission is not None:
        return item.permission.title
    if item.question is not None:
        return item.question.text
    title = item.session_title or item.text
    return f"{title}: {item.error}" if item.error else title


def pending_asks(connection: "Connection", kind: InboxKind) -> list[InboxItem]:
    """The permission requests or questions that wait in all workspaces, oldest first."""
    from longboat.cli.options import own_name

    return [item for item in reversed(list(_items(connection, own_name()))) if item.kind is kind]


def workspace_with(asks: Iterable[InboxItem], ask_id: str) -> str | None:
    """The workspace in which an ask waits."""
    return next((item.workspace_id for item in asks if ask_id in _ask_ids(item)), None)


def _ask_ids(item: InboxItem) -> Sequence[str]:
    return [ask.id for ask in (item.permission, item.question) if ask is not None]


def _items(
    connection: "Connection", name: str, tell: Callable[[InboxPage], None] = lambda page: None
) -> Iterator[InboxItem]:
    """All items, newest first; `tell` gets each page before its items."""
    from longboat.client import calls

    for page in connection.pages(lambda before: calls.inbox(name, limit=PAGE, before=before)):
        tell(page)
        yield from page.items
