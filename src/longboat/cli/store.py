"""`longboat store`: back up, restore and check the database of this machine's server."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longboat.cli.console import json_line, notice, safe
from longboat.cli.options import Command, format_option

if TYPE_CHECKING:
    from longboat.store.backup import Progress
    from longboat.store.protocol import Report

SHOWN = 20
"""Problems that people are shown; json has up to a hundred."""
BESIDE = "Not in it: token and logins/ of the data directory (both secret), longboat.json and trusted.json."


def data_dir_option(command: Command) -> Command:
    return click.option(
        "--data-dir",
        type=click.Path(file_okay=False),
        metavar="DIR",
        help="The server's data directory.  [default: the user's own]",
    )(command)


@click.group(short_help="Back up, restore and check the database.")
def store() -> None:
    """The database that holds all sessions, runs, messages and events of a server on this machine.

    \b
    longboat store backup ~/longboat-backup.db
    longboat store check
    longboat store restore ~/longboat-backup.db
    """


@store.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@format_option
@data_dir_option
def back_up_store(file: Path, force: bool, style: str, data_dir: str | None) -> None:
    """Copy the database into FILE, as it is at this moment. The server may keep running.

    The copy is checked before it gets its name, and only you can read it. It holds all transcripts; it does not hold
    the token, the logins to MCP servers or your configuration.

    \b
    longboat store backup ~/longboat-backup.db
    longboat store backup --force /var/backups/longboat.db --data-dir /var/lib/longboat/data
    longboat store backup "longboat-$(date +%F).db" --format json
    """
    from longboat.store.backup import back_up
    from longboat.store.check import database_of

    source = database_of(_data_dir(data_dir))
    with _progress("Copying") as progress:
        report = back_up(source, file.absolute(), replace=force, progress=progress)
    if style == "json":
        json_line(report)
        return
    click.echo(f"Backed up {_told(report)} to {safe(str(file))}.")
    notice(BESIDE)


@store.command("restore")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@format_option
@data_dir_option
def restore_store(file: Path, style: str, data_dir: str | None) -> None:
    """Replace the database with a backup. The server must be stopped.

    The backup is checked first. The database it replaces is kept beside the new one, with the time in its name.
    Runs that were unfinished when the backup was made are handled as after a crash when the server starts.

    \b
    longboat stop
    longboat store restore ~/longboat-backup.db
    longboat store restore /var/backups/longboat.db --data-dir /var/lib/longboat/data
    """
    from longboat.store.backup import restore

    directory = _data_dir(data_dir)
    with _progress("Restoring") as progress:
        done = restore(file, directory, progress=progress)
    if style == "json":
        json_line(done)
        return
    click.echo(f"Restored {_told(done.report)} to {safe(done.report.file)}.")
    if done.kept is not None:
        click.echo(f"The database that was there before is now {safe(done.kept)}: delete it once all is well.")
    if unfinished := done.report.counts.get("unfinished_runs"):
        runs = "1 run was" if unfinished == 1 else f"{unfinished} runs were"
        notice(f"{runs} unfinished in the backup: at the next start active runs are settled and queued ones run.")


@store.command("check")
@click.argument("path", required=False, type=click.Path(exists=True, path_type=Path))
@format_option
@click.pass_context
def check_store(ctx: click.Context, path: Path | None, style: str) -> None:
    """Check the database of a data directory, or a backup file. The server may keep running.

    Checks the file itself, the references between its rows, that every row can be read, that the event log has no
    gaps, and that every finished run ended exactly once. Exit code 1 if something is wrong.

    \b
    longboat store check
    longboat store check ~/longboat-backup.db
    longboat store check /var/lib/longboat/data --format json | jq .problems
    """
    from longboat.store.check import check_deeply, database_of

    report = check_deeply(database_of(path or _data_dir(None)))
    if style == "json":
        json_line(report)
    else:
        show_report(report)
    ctx.exit(1 if report.problems else 0)


def show_report(report: "Report") -> None:
    click.echo(f"{safe(report.file)}: {_told(report)}")
    for problem in report.problems[:SHOWN]:
        click.echo(f"{click.style('WRONG', fg='red')}  {problem.kind:<9}  {safe(problem.detail)}")
    if (hidden := len(report.problems) - SHOWN) > 0:
        notice(f"{hidden} more: --format json")
    if report.problems:
        click.echo(
            "Restore a backup (`longboat store restore`), or export what is readable and delete the rest.", err=True
        )
    else:
        click.echo("Everything is as it should be.")


def _told(report: "Report") -> str:
    """How much is in it, in one line."""
    held = [
        f"{report.counts[name]:,} {name[:-1] if report.counts[name] == 1 else name}"
        for name in ("sessions", "messages", "runs", "events")
        if name in report.counts
    ]
    size = f"{report.size / 1e6:,.1f} MB"
    return f"{', '.join(held)} ({size})" if held else f"{size} with schema {report.schema}"


def _data_dir(given: str | None) -> Path:
    from longboat.wire.discovery import data_dir

    return (Path(given) if given else data_dir(os.environ, Path.home())).absolute()


@contextmanager
def _progress(label: str) -> "Iterator[Progress]":
    """A bar on a terminal, nothing elsewhere."""
    from sys import stderr

    with click.progressbar(length=1, label=label, file=stderr, hidden=not stderr.isatty()) as bar:

        def show(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield show
