"""`longboat diff`: show the file changes of a session or a run."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import click

from longboat.cli import shell_completion
from longboat.cli.options import cwd_option

if TYPE_CHECKING:
    from longboat.cli.connection import Connection
    from longboat.wire.review import ChangedFile, ChangesPage

_bold = partial(click.style, bold=True)
_STYLES: dict[str, Callable[[str], str]] = {
    "diff": _bold,
    "--- ": _bold,
    "+++ ": _bold,
    "@@": partial(click.style, fg="cyan"),
    "+": partial(click.style, fg="green"),
    "-": partial(click.style, fg="red"),
}
"""How a line is printed at a terminal, by how it begins; the first that fits."""


@click.command(short_help="Show the changes in a session or a run.")
@click.argument("session_id", metavar="[SESSION]", required=False, shell_complete=shell_completion.sessions)
@click.option(
    "--run", "run_id", metavar="ID", shell_complete=shell_completion.runs, help="Only the changes of this run."
)
@click.option("--stat", is_flag=True, help="Only the file names and the number of changed lines.")
@cwd_option
def diff(session_id: str | None, run_id: str | None, stat: bool, cwd: str) -> None:
    """Show the current file changes made by the agent's file tools: one diff per file, however often it was changed.
    Changes by other people and by shell commands are not included.

    SESSION defaults to the last one used in this directory.

    \b
    longboat diff
    longboat diff --stat
    longboat diff | git apply --reverse        undo all of it
    """
    from longboat.cli.background import ensure_server

    if session_id is not None and run_id is not None:
        raise click.UsageError("Use SESSION or --run ID, not both.")
    connection = ensure_server(cwd)
    page = _changes(connection, connection.join(cwd).id, session_id, run_id, stat)
    if stat:
        _print_stat(page)
    else:
        _print_diffs(page)


def _changes(
    connection: "Connection", workspace_id: str, session_id: str | None, run_id: str | None, stat: bool
) -> "ChangesPage":
    from longboat.cli.connection import last_session
    from longboat.cli.ids import run_meant, session_meant
    from longboat.cli.main import Failure
    from longboat.client import calls

    if run_id is not None:
        run_id = run_meant(connection, workspace_id, run_id).run_id
        return connection.send(calls.changes(workspace_id, run_id=run_id, stat=stat))
    if session_id is not None:
        session_id = session_meant(connection, workspace_id, session_id).id
    elif (session_id := last_session(connection, workspace_id)) is None:
        raise Failure("No sessions in this directory yet.", 'Start one with: longboat run "…"')
    return connection.send(calls.changes(workspace_id, session_id=session_id, stat=stat))


def _print_stat(page: "ChangesPage") -> None:
    from longboat.cli.console import table
    from longboat.wire.plain import plain_line

    if not page.items:
        click.echo("No changes.")
        return
    rows = [
        (plain_line(file.path), f"+{file.additions}", f"-{file.deletions}", plain_line(_who(file)))
        for file in page.items
    ]
    total = [sum(getattr(file, name) for file in page.items) for name in ("additions", "deletions")]
    count = f"{len(rows)}{'' if page.complete else ' or more'} file{'' if len(rows) == 1 else 's'}"
    table(("FILE", "ADDED", "REMOVED", "BY"), [*rows, (count, f"+{total[0]}", f"-{total[1]}", "")])


def _who(file: "ChangedFile") -> str:
    prompted = ", ".join(file.by)
    undone = f"partly undone by {', '.join(file.undone_by)}" if file.undone_by else ""
    return "; ".join(part for part in (prompted, undone) if part)


def _print_diffs(page: "ChangesPage") -> None:
    """Plain in a pipe, where `git apply` may read it; at a terminal in color and without control characters."""
    from longboat.cli.console import notice, safe

    at_terminal = sys.stdout.isatty()
    for file in page.items:
        for line in _lines(file):
            if at_terminal:
                click.echo(_styled(line, safe(line)))
            else:
                click.echo(line.encode("utf-8", "surrogateescape"))
        if not file.complete:
            notice(f"The diff of {safe(file.path)} is too long to show in full, so it cannot be applied.")
        elif not file.diff:
            notice(f"{safe(file.path)}: {file.change.value}, but there are no lines to show.")
    if not page.items:
        notice("No changes.")
    elif not page.complete:
        notice("More files were changed than are shown.")


def _lines(file: "ChangedFile") -> Iterator[str]:
    from longboat.wire.events import Change

    if not file.diff:
        return
    names = _quoted(f"a/{file.path}"), _quoted(f"b/{file.path}")
    yield f"diff --git {names[0]} {names[1]}"
    if file.change is Change.CREATED:
        yield "new file mode 100644"
    elif file.change is Change.DELETED:
        yield "deleted file mode 100644"
    _, _, hunks = file.diff.partition("\n@@")
    yield "--- /dev/null" if file.change is Change.CREATED else f"--- {names[0]}"
    yield "+++ /dev/null" if file.change is Change.DELETED else f"+++ {names[1]}"
    yield from f"@@{hunks}".removesuffix("\n").split("\n")


def _quoted(name: str) -> str:
    """A path as git writes it: in quotes if it holds control characters, quotes or backslashes."""
    if all(letter.isprintable() and letter not in '"\\' for letter in name):
        return name
    return '"{}"'.format("".join(_escaped(byte) for byte in name.encode()))


def _escaped(byte: int) -> str:
    if 32 <= byte < 127:
        return f"\\{chr(byte)}" if chr(byte) in '"\\' else chr(byte)
    return f"\\{byte:03o}"


def _styled(line: str, shown: str) -> str:
    """The shown form of a line, styled by what the line begins with."""
    return next((style(shown) for start, style in _STYLES.items() if line.startswith(start)), shown)
