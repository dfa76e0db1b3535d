"""Opens the terminal app: chooses the server, the directory and the session."""

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from longboat.cli.console import safe
from longboat.cli.main import Failure
from longboat.cli.options import own_name
from longboat.errors import LongboatError
from longboat.wire.models import Workspace
from longboat.wire.requests import Approve, Effort

if TYPE_CHECKING:
    from longboat.cli.connection import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedOptions:
    """The session options given on the command line."""

    session: str | None = None
    last: bool = False
    model: str | None = None
    effort: Effort | None = None
    yolo: bool = False


def open_here(cwd: str, requested: RequestedOptions) -> None:
    """Open the app on the user's own server, starting it if necessary."""
    from longboat.cli.background import ensure_server
    from longboat.cli.shell_env import env_for

    check_terminal()
    connection = ensure_server(cwd)
    _open({}, cwd, _session(connection, cwd, requested), requested, env_for(connection.address, None))


def open_there(url: str, token: str | None, path: str | None, requested: RequestedOptions) -> None:
    """Open the app on a server at an address. Its errors are printed before the app takes over the screen."""
    from longboat.cli.connection import Connection
    from longboat.client import calls
    from longboat.client.address import find

    check_terminal()
    connection = Connection(find(url=url, token=token))
    known = connection.send(calls.workspaces()).items
    path = path or _chosen(known)
    _open({"url": url, "token": token}, path, _session(connection, path, requested), requested, None)


def check_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("The terminal app needs a terminal.", 'Without one, use longboat run "…" or longboat watch RUN.')


def _session(connection: "Connection", path: str, requested: RequestedOptions) -> str | None:
    """The id of the session to open; None for a new one."""
    from longboat.cli.connection import last_session
    from longboat.cli.ids import session_meant

    if requested.session is not None:
        return session_meant(connection, connection.join(path).id, requested.session).id
    return last_session(connection, connection.join(path).id) if requested.last else None


def _open(
    address: Mapping[str, str | None],
    path: str,
    session_id: str | None,
    requested: RequestedOptions,
    environ: Mapping[str, str] | None,
) -> None:
    import asyncio

    code, said = asyncio.run(_run_app(address, path, session_id, requested, environ))
    if said:
        click.echo(said, err=bool(code))
    if code:
        sys.exit(code)


async def _run_app(
    address: Mapping[str, str | None],
    path: str,
    session_id: str | None,
    requested: RequestedOptions,
    environ: Mapping[str, str] | None,
) -> tuple[int, str]:
    from longboat.client import Client
    from longboat.tui import open_app

    # Other clients see this name; the suffix tells several terminals of one person apart.
    name = f"{own_name()}:tui-{secrets.token_hex(2)}"
    url = address.get("url")
    come_back = "longboat -s {session_id}" if url is None else f"longboat attach {url} -s {{session_id}}"
    on_outage = _bring_back if url is None else None
    async with Client(client_id=name, url=url, token=address.get("token"), on_outage=on_outage) as client:
        return await open_app(
            client,
            path,
            session_id=session_id,
            resume=requested.last,
            model=requested.model,
            effort=requested.effort,
            approve=Approve.ALL if requested.yolo else Approve.ASK,
            env=environ,
            come_back=come_back,
        )


def _bring_back(lost: LongboatError | None) -> None:
    """Restart a server that died: the person's only terminal may be the one that runs the app."""
    from longboat.cli.background import revive
    from longboat.client.reconnection import STOPPED

    if lost is not None and lost.code != STOPPED:
        revive()


def _chosen(known: Sequence[Workspace]) -> str:
    """The directory on the server to work in: the only one, or the one that the person picks."""
    if not known:
        raise Failure("No directory is open on that server.", "Choose one with --cwd /path/on/the/server.")
    if len(known) == 1:
        return _name(known[0])
    for number, workspace in enumerate(known, 1):
        click.echo(f"{number:3}  {safe(_name(workspace))}{'  (busy)' if workspace.busy else ''}")
    here = os.path.realpath(".")
    usual = next((number for number, each in enumerate(known, 1) if each.path == here), 1)
    chosen = click.prompt("Directory", value_proc=lambda given: _meant(given, known), default=str(usual))
    return str(chosen)


def _name(workspace: Workspace) -> str:
    """As `--cwd` takes it: with its node, if the directory is on one of several."""
    return f"{workspace.home}:{workspace.path}" if workspace.home else workspace.path


def _meant(given: str, known: Sequence[Workspace]) -> str:
    """The path of a directory given by its number in the list, its path or its id."""
    given = given.strip()
    names = ((str(number), each.path, _name(each), each.id) for number, each in enumerate(known, 1))
    for workspace, called in zip(known, names, strict=True):
        if (given.rstrip("/") or given) in called:
            return _name(workspace)
    raise click.UsageError(
        f"{safe(given)!r} is not in the list: enter a number from 1 to {len(known)}, a path or an id. "
        "(Use --cwd DIR for another directory.)"
    )
