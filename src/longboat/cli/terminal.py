"""Opening the terminal app: which server, which directory, which session."""

import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from longboat.cli.main import Failure
from longboat.cli.options import own_name
from longboat.errors import LongboatError
from longboat.wire.models import Workspace
from longboat.wire.requests import Approve, Effort


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the command line says of the session."""

    session: str | None = None
    last: bool = False
    model: str | None = None
    effort: Effort | None = None
    yolo: bool = False


def open_here(cwd: str, wishes: Wishes) -> None:
    """The app on the user's own server, which is started if none runs."""
    from longboat.cli.background import ensure_server
    from longboat.cli.ids import session_meant
    from longboat.cli.shell_env import env_for

    check_terminal()
    connection = ensure_server(cwd)
    session = wishes.session
    if session is not None:
        session = session_meant(connection, connection.join(cwd).id, session).id
    _open({}, cwd, session, wishes, env_for(connection.address, None))


def open_there(url: str, token: str | None, path: str | None, wishes: Wishes) -> None:
    """The app on a server that somebody named. What it refuses is told before the app takes the screen."""
    from longboat.cli.connection import Connection
    from longboat.client import calls
    from longboat.client.address import find

    check_terminal()
    known = Connection(find(url=url, token=token)).send(calls.workspaces()).items
    _open({"url": url, "token": token}, path or _chosen(known), wishes.session, wishes, None)


def check_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("The terminal app needs a terminal.", 'Without one: longboat run "…", or longboat watch RUN.')


def _open(
    address: Mapping[str, str | None],
    path: str,
    session_id: str | None,
    wishes: Wishes,
    environ: Mapping[str, str] | None,
) -> None:
    import asyncio

    code, said = asyncio.run(_shown(address, path, session_id, wishes, environ))
    if said:
        click.echo(said, err=bool(code))
    if code:
        sys.exit(code)


async def _shown(
    address: Mapping[str, str | None],
    path: str,
    session_id: str | None,
    wishes: Wishes,
    environ: Mapping[str, str] | None,
) -> tuple[int, str]:
    from longboat.client import Client
    from longboat.tui import open_app

    # Others see this name: a person, at one of perhaps several terminals.
    name = f"{own_name()}:tui-{secrets.token_hex(2)}"
    url = address.get("url")
    come_back = "longboat -s {session_id}" if url is None else f"longboat attach {url} -s {{session_id}}"
    on_outage = _bring_back if url is None else None
    async with Client(client_id=name, url=url, token=address.get("token"), on_outage=on_outage) as client:
        return await open_app(
            client,
            path,
            session_id=session_id,
            resume=wishes.last,
            model=wishes.model,
            effort=wishes.effort,
            approve=Approve.ALL if wishes.yolo else Approve.ASK,
            env=environ,
            come_back=come_back,
        )


def _bring_back(lost: LongboatError | None) -> None:
    """Whoever has one terminal, with the app in it, has no other to start the server from."""
    from longboat.cli.background import revive
    from longboat.client.patience import STOPPED

    if lost is not None and lost.code != STOPPED:
        revive()


def _chosen(known: Sequence[Workspace]) -> str:
    """The directory on the server to work in: the only one, or the one that the person picks."""
    if not known:
        raise Failure("No directory is open on that server.", "Name one of its directories: --cwd /path/on/the/server.")
    if len(known) == 1:
        return known[0].path
    for number, workspace in enumerate(known, 1):
        click.echo(f"{number:3}  {workspace.path}{'  (busy)' if workspace.busy else ''}")
    return known[click.prompt("Which directory", type=click.IntRange(1, len(known)), default=1) - 1].path
