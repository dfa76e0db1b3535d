"""`longboat store`: back up, restore and check the database of this machine's server."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING

import click

from longboat.cli.console import json_line, notice, safe
from longboat.cli.data_dirs import choose_data_dir, data_dir_option, postgres_of
from longboat.cli.main import Failure
from longboat.cli.options import format_option
from longboat.errors import DataDirError

if TYPE_CHECKING:
    from longboat.store.protocol import Report
    from longboat.store.sqlite.backup import Progress, Restored

SHOWN = 20
"""How many problems the text format shows; json has up to a hundred."""
BESIDE = (
    "Not included: token, push-key.pem and logins/ of the data directory, and your longboat.json, trusted.json and "
    "credentials.json. Copy them yourself; they hold secrets."
)


@click.group(short_help="Back up, restore, check and copy the database.")
def store() -> None:
    """Back up, restore, check and copy the database of a server on this machine.

    It holds all sessions, runs, messages and events.

    \b
    longboat store backup ~/longboat-backup.db
    longboat store check
    longboat store restore ~/longboat-backup.db
    longboat store copy postgresql://longboat@db.example/longboat
    """


@store.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@format_option
@data_dir_option
@click.pass_context
def back_up_store(ctx: click.Context, file: Path, force: bool, style: str, data_dir: str | None) -> None:
    """Copy the database to FILE. The server may keep running.

    Only you can read the copy. It holds all transcripts, but not the token, the logins to MCP servers or your
    configuration. The copy is checked like `longboat store check`: if a row cannot be read, you get the backup with a
    warning and exit code 1. A database file that is itself damaged is not backed up.

    \b
    longboat store backup ~/longboat-backup.db
    longboat store backup --force /var/backups/longboat.db --data-dir /var/lib/longboat/data
    longboat store backup "longboat-$(date +%F).db" --format json
    """
    from longboat.store.sqlite.backup import back_up
    from longboat.store.sqlite.check import database_of

    source = database_of(_chosen_for_sqlite(data_dir))
    with _progress("Copying") as progress:
        report = back_up(source, file.absolute(), replace=force, progress=progress)
    if style == "json":
        json_line(report)
    else:
        click.echo(f"Backed up {_describe_report(report)} from {safe(str(source))} to {safe(str(file))}.")
        notice(BESIDE)
        warn(report, "The backup was made, but")
    ctx.exit(1 if report.problems else 0)


@store.command("restore")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@format_option
@data_dir_option
@click.pass_context
def restore_store(ctx: click.Context, file: Path, style: str, data_dir: str | None) -> None:
    """Replace the database with a backup. The server must be stopped.

    The backup is checked first: a damaged file is refused; one with unreadable rows is restored, with a warning and
    exit code 1. The old database is kept next to the new one, with the time in its name. Runs that were unfinished when
    the backup was made are handled as after a crash when the server starts.

    \b
    longboat stop
    longboat store restore ~/longboat-backup.db
    longboat store restore /var/backups/longboat.db --data-dir /var/lib/longboat/data
    """
    from longboat.store.sqlite.backup import restore

    directory = _chosen_for_sqlite(data_dir)
    try:
        with _progress("Restoring") as progress:
            done = restore(file, directory, progress=progress)
    except DataDirError as error:
        if error.code != "data_dir_in_use":
            raise
        command = shlex.join(["longboat", "store", "restore", str(file), "--data-dir", str(directory)])
        raise Failure(error.message, f"Then: {command}") from error
    if style == "json":
        json_line(done)
    else:
        _show_restored(done)
    ctx.exit(1 if done.report.problems else 0)


def _show_restored(done: "Restored") -> None:
    click.echo(f"Restored {_describe_report(done.report)} to {safe(done.report.file)}.")
    if done.kept is not None:
        click.echo(f"The previous database is now {safe(done.kept)}: delete it when you no longer need it.")
    if unfinished := done.report.counts.get("unfinished_runs"):
        runs = "1 run was" if unfinished == 1 else f"{unfinished} runs were"
        notice(f"{runs} unfinished in the backup. At the next start, active runs are closed and queued ones run.")
    warn(done.report, "The backup was restored, but")


@store.command("copy")
@click.argument("url")
@click.option(
    "--node",
    envvar="LONGBOAT_NODE",
    metavar="NAME",
    help="Node whose disk has the project directories.  [default: the host's name]",
)
@format_option
@data_dir_option
def copy_store(url: str, node: str | None, style: str, data_dir: str | None) -> None:
    """Copy the database to PostgreSQL, for `longboat serve --store URL`. The server must be stopped.

    URL names an empty database; its password can come from PGPASSWORD or ~/.pgpass instead. Every row is compared after
    it was written. If anything fails, nothing is copied. The database here stays as it is.

    \b
    longboat stop
    longboat store copy postgresql://longboat@db.example/longboat
    longboat serve --store postgresql://longboat@db.example/longboat
    """
    import asyncio

    from longboat.store.datadir import STORE_NAME
    from longboat.store.sqlite.check import database_of

    try:
        from longboat.store.postgres.copying import copy_sqlite
    except ModuleNotFoundError as error:
        raise Failure("Copying to PostgreSQL needs another package.", "pip install 'longboat[postgres]'") from error
    directory = _chosen(data_dir)
    database_of(directory)
    with _progress("Copying") as progress:
        done = asyncio.run(copy_sqlite(directory, url, progress, home=node or gethostname()))
    if style == "json":
        json_line(done)
        return
    click.echo(f"Copied {sum(done.rows.values()):,} rows from {safe(str(directory / STORE_NAME))} to {done.target}.")
    click.echo("Every row was compared with its copy.")
    for table, rows in done.rows.items():
        click.echo(f"  {table:<20} {rows:>10,}")


@store.command("check")
@click.argument("path", required=False, type=click.Path(exists=True, path_type=Path))
@format_option
@data_dir_option
@click.pass_context
def check_store(ctx: click.Context, path: Path | None, style: str, data_dir: str | None) -> None:
    """Check the server's database, a data directory or a backup.

    PATH is a data directory or a backup file. Checks the file itself, the references between its rows, that every row
    can be read, that the event log has no gaps, and that every finished run ended exactly once. The server may keep
    running. Exit code 1 if there is a problem.

    \b
    longboat store check
    longboat store check ~/longboat-backup.db
    longboat store check --data-dir /var/lib/longboat/data --format json | jq .problems
    """
    from longboat.store.sqlite.check import check_deeply, database_of

    if path is not None and data_dir is not None:
        raise click.UsageError("Use PATH or --data-dir, not both.")
    report = check_deeply(database_of(path or _chosen_for_sqlite(data_dir)))
    if style == "json":
        json_line(report)
    else:
        show_report(report)
    ctx.exit(1 if report.problems else 0)


def show_report(report: "Report") -> None:
    from longboat.store.sqlite.check import newest_schema

    click.echo(f"{safe(report.file)}: {_describe_report(report)}")
    for problem in report.problems[:SHOWN]:
        click.echo(f"{click.style('error', fg='red')}  {problem.kind:<9}  {safe(problem.detail)}")
    if (hidden := len(report.problems) - SHOWN) > 0:
        notice(f"{hidden} more: --format json")
    if report.problems:
        click.echo(_advice(Path(report.file)), err=True)
    elif report.schema < newest_schema():
        click.echo(f"No problems found in the file. Its schema is old ({report.schema}), so its rows were not checked.")
    else:
        click.echo("No problems found.")


def _advice(file: Path) -> str:
    from longboat.store.datadir import STORE_NAME

    if file.name == STORE_NAME and (file.parent / "lock").exists():
        return "Restore a backup (`longboat store restore`), or export the readable sessions and delete the others."
    return "Do not rely on this backup."


def warn(report: "Report", what: str) -> None:
    """Print a warning if the check of a copy found problems."""
    if report.problems:
        more = f" and {len(report.problems) - 1} more" if len(report.problems) > 1 else ""
        command = shlex.join(["longboat", "store", "check", report.file])
        click.secho(f"{what} it has problems: {safe(report.problems[0].detail)}{more}.", err=True, fg="red")
        click.echo(f"  List all of them with: {safe(command)}", err=True)
    elif not report.complete:
        click.secho(f"{what} it could not be checked in time.", err=True, fg="red")


def _describe_report(report: "Report") -> str:
    """The counts and the size, on one line."""
    held = [
        f"{report.counts[name]:,} {name[:-1] if report.counts[name] == 1 else name}"
        for name in ("sessions", "messages", "runs", "events")
        if name in report.counts
    ]
    size = f"{report.size / 1e6:,.1f} MB"
    return f"{', '.join(held)} ({size})" if held else size


def _chosen(data_dir: str | None) -> Path:
    """The data directory. Prints the note about the choice, if there is one."""
    chosen = choose_data_dir(data_dir)
    if chosen.note:
        notice(safe(chosen.note))
    return chosen.path


def _chosen_for_sqlite(data_dir: str | None) -> Path:
    """The data directory. Refuses it if its server has the sessions elsewhere: the file there is an old one."""
    directory = _chosen(data_dir)
    if address := postgres_of(directory):
        raise Failure(f"The sessions of this server are in PostgreSQL ({safe(address)}): use pg_dump and pg_restore.")
    return directory


@contextmanager
def _progress(label: str) -> "Iterator[Progress]":
    """A progress bar on a terminal, nothing elsewhere."""
    from sys import stderr

    with click.progressbar(length=1, label=label, file=stderr, hidden=not stderr.isatty()) as bar:

        def show(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield show
