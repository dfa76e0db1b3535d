"""`longboat search`: full-text search over all sessions."""

import os
from typing import TYPE_CHECKING

import click

from longboat.cli.options import cwd_option, format_option

if TYPE_CHECKING:
    from longboat.wire.search import SearchHit, Snippet

MOST = 500


@click.command(short_help="Search the messages of all sessions.")
@click.argument("words", nargs=-1, required=True)
@click.option("--here", is_flag=True, help="Only sessions in this directory.")
@click.option("--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="Maximum number of matches.")
@format_option
@cwd_option
def search(words: tuple[str, ...], here: bool, limit: int, style: str, cwd: str) -> None:
    """Search prompts, answers and titles of all sessions, in all directories.

    A match contains all the words; the last one may be incomplete. Case and accents do not matter. Quote a phrase
    twice, for the shell and for the search. Archived sessions are searched too, tool output is not.

    \b
    longboat search broken build
    longboat search '"connection refused"'
    longboat search --here migration
    longboat search --format json flaky | jq -r .session_id
    """
    from longboat.cli.background import ensure_server
    from longboat.cli.console import json_line, notice
    from longboat.client import calls

    connection = ensure_server(cwd)
    workspace_id = connection.join(cwd).id if here else None
    page = connection.send(calls.search_sessions(" ".join(words), workspace_id=workspace_id, limit=limit))
    for hit in page.items:
        json_line(hit) if style == "json" else _print(hit, cwd)
    if not page.items and style != "json":
        click.echo("Nothing found.")
    if page.next is not None and style != "json":
        notice("There are more matches: use --limit, or more words.")
    if not page.complete:
        notice("The search index is still being built. Older messages may be missing; try again in a moment.")


def _print(hit: "SearchHit", cwd: str) -> None:
    from longboat.cli.console import ago, one_line
    from longboat.wire.models import Role

    where = "" if hit.workspace_path == cwd else f"  {one_line(os.path.basename(hit.workspace_path))}"
    who = "title" if hit.role is None else "prompt" if hit.role is Role.USER else "answer"
    archived = "  archived" if hit.archived else ""
    click.secho(f"{hit.session_id}{where}  {ago(hit.at)}{archived}", fg="cyan")
    click.secho(f"  {one_line(hit.session_title) or '(untitled)'}", bold=True)
    click.echo(f"  {who}: {_marked(hit.snippet)}")


def _marked(snippet: "Snippet") -> str:
    """The snippet with its matches in bold. Each piece is sanitized separately, because that may change its length."""
    from longboat.cli.console import safe

    pieces: list[str] = []
    at = 0
    for start, end in snippet.matches:
        pieces += (safe(snippet.text[at:start]), click.style(safe(snippet.text[start:end]), bold=True, fg="yellow"))
        at = end
    return "".join([*pieces, safe(snippet.text[at:])])
