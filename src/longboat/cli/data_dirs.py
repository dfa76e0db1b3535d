"""Chooses the data directory for a command: the one given, the running server's, or the user's own."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longboat.cli.options import Command

if TYPE_CHECKING:
    from longboat.wire.discovery import Discovery


@dataclass(frozen=True, slots=True)
class DataDir:
    path: Path
    note: str = ""
    """A remark about the choice, for people."""


def data_dir_option(command: Command) -> Command:
    return click.option(
        "--data-dir",
        type=click.Path(file_okay=False),
        metavar="DIR",
        help="Data directory of the server.  [default: LONGBOAT_DATA_DIR, the running server's, or your own]",
    )(command)


def choose_data_dir(given: str | None) -> DataDir:
    """The data directory: an explicit one first. The note mentions a running server that uses another one."""
    from longboat.wire.discovery import data_dir

    if given:
        return DataDir(Path(given).absolute())
    own = data_dir(os.environ, Path.home()).absolute()
    server = running_server()
    if server is None:
        return DataDir(own, _note_on_unknown_server(own))
    theirs = Path(server.data_dir)
    if not os.environ.get("LONGBOAT_DATA_DIR"):
        return DataDir(theirs)
    differs = theirs.resolve() != own.resolve()
    return DataDir(own, f"The running server uses another data directory: --data-dir {theirs}" if differs else "")


def postgres_of(data_dir: Path) -> str:
    """The address of the PostgreSQL database that has the sessions, without its password; empty: they are in SQLite."""
    from longboat.store.address import describe_dsn
    from longboat.store.datadir import noted_store

    given = os.environ.get("LONGBOAT_STORE")
    return describe_dsn(given) if given else noted_store(data_dir)


def running_server() -> "Discovery | None":
    """The discovery data of the server that commands here talk to, if it runs on this machine."""
    from longboat.client.address import is_alive, read_discovery
    from longboat.server import listen

    found = read_discovery(os.environ)
    if url := os.environ.get("LONGBOAT_URL"):
        found = found if found is not None and found.url == url.rstrip("/") else None
    elif socket := os.environ.get("LONGBOAT_SOCKET"):
        path = os.path.abspath(socket)
        found = found if found is not None and found.socket == path else listen.read_discovery(Path(f"{path}.json"))
    return found if found is not None and is_alive(found.pid) else None


def _note_on_unknown_server(own: Path) -> str:
    from longboat.cli.main import naming_variable

    if (name := naming_variable()) is None:
        return ""
    return f"The server in {name} does not publish its data directory. Using {own}; --data-dir selects another."
