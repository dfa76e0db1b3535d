"""`longboat serve`: run the server in the foreground. With --idle-exit it serves other commands in the background."""

import os
import re
import shlex
from contextlib import suppress
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from longboat.config.settings import Settings
    from longboat.wire.discovery import Discovery

SECRET_LENGTH = 16
MAKE_SECRET = "Make one with `openssl rand -hex 32`."


@click.command(short_help="Run a server in the foreground.")
@click.option("--socket", metavar="PATH|none", help="Path of the unix socket.  [default: the user's own]")
@click.option("--host", help="Also listen on TCP at this address.")
@click.option("--port", type=click.IntRange(0, 65535), help="TCP port; 0 picks a free one.  [default: 0]")
@click.option("--data-dir", type=click.Path(file_okay=False), metavar="DIR", help="Data directory.")
@click.option(
    "--store",
    envvar="LONGBOAT_STORE",
    metavar="URL",
    help="Keep sessions in this PostgreSQL database instead of the data directory.  [env var: LONGBOAT_STORE]",
)
@click.option(
    "--node",
    envvar="LONGBOAT_NODE",
    metavar="NAME",
    help="Name of this node in a cluster.  [default: the host's name]",
)
@click.option(
    "--advertise",
    metavar="URL",
    help="Address at which other nodes reach this one.  [default: where it listens]",
)
@click.option("--idle-exit", type=click.FloatRange(0), metavar="SECONDS", hidden=True)
@click.pass_context
def serve(
    ctx: click.Context,
    *,
    socket: str | None,
    host: str | None,
    port: int | None,
    data_dir: str | None,
    store: str | None,
    node: str | None,
    advertise: str | None,
    idle_exit: float | None,
) -> None:
    """Run a server until Ctrl-C. Other commands do not need this: they start one in the background.

    TCP always requires a token: LONGBOAT_TOKEN, or one that the server generates once and keeps in its data directory.

    \b
    longboat serve
    longboat serve --host 127.0.0.1 --port 8911
    longboat serve --socket none --host 0.0.0.0 --port 8911 --data-dir /srv/longboat
    longboat serve --store postgresql://longboat@db.example/longboat
    """
    if port is not None and host is None:
        host = "127.0.0.1"
    _check_cluster(
        store=store,
        named=node is not None and ctx.get_parameter_source("node") is ParameterSource.COMMANDLINE,
        advertised=advertise is not None,
    )
    settings = _settings(
        socket=socket,
        host=host,
        port=port or 0,
        data_dir=data_dir,
        store=store,
        node=node,
        advertise=advertise,
        idle_exit_s=idle_exit,
    )
    from longboat.server.main import serve as serve_until_told

    if idle_exit is not None:
        ctx.exit(serve_until_told(settings))
    ctx.exit(
        serve_until_told(
            settings,
            ready=lambda found: _announce(found, settings),
            leaving=lambda active: _take_leave(active, settings.server.drain_s),
        )
    )


def _settings(
    *,
    socket: str | None,
    host: str | None,
    port: int,
    data_dir: str | None,
    store: str | None,
    node: str | None,
    advertise: str | None,
    idle_exit_s: float | None,
) -> "Settings":
    from longboat.config.load import load_user_config
    from longboat.config.settings import Settings
    from longboat.server.token import token_for
    from longboat.wire import discovery

    server = load_user_config(environ=os.environ, user_dir=Path.home()).server
    runtime = discovery.runtime_dir(os.environ, os.getuid()).absolute()
    data = Path(data_dir) if data_dir else discovery.data_dir(os.environ, Path.home())
    path = runtime / discovery.SOCKET_NAME if socket is None else Path(socket).absolute()
    secret = os.environ.get("LONGBOAT_CLUSTER_SECRET", "")
    in_store = bool(store and secret) and not os.environ.get("LONGBOAT_TOKEN")
    return Settings(
        data_dir=data.absolute(),
        runtime_dir=runtime,
        socket=None if socket == "none" else path,
        host=host,
        port=port,
        token="" if in_store else token_for(data.absolute(), os.environ),
        store=_checked_store(store),
        node=_checked_node(node or gethostname()),
        advertise=_checked_advertise(advertise),
        cluster_secret=secret,
        idle_exit_s=idle_exit_s,
        server=server,
        heartbeat_s=server.heartbeat_s,
    )


def _check_cluster(*, store: str | None, named: bool, advertised: bool) -> None:
    """Refuse options that only make sense in a cluster if it lacks something."""
    if not store:
        if named or advertised:
            option = "--node" if named else "--advertise"
            raise click.UsageError(f"{option} is only for clusters and needs --store (or LONGBOAT_STORE).")
        return
    secret = os.environ.get("LONGBOAT_CLUSTER_SECRET", "")
    if named and not secret:
        raise click.UsageError(f"--node is only for clusters: set LONGBOAT_CLUSTER_SECRET on every node. {MAKE_SECRET}")
    if secret and len(secret) < SECRET_LENGTH:
        raise click.UsageError(f"LONGBOAT_CLUSTER_SECRET is shorter than {SECRET_LENGTH} characters. {MAKE_SECRET}")


def _checked_store(store: str | None) -> str | None:
    if store and urlsplit(store).scheme not in ("postgresql", "postgres"):
        raise click.BadParameter("must begin with postgresql://", param_hint="--store")
    return store or None


def _checked_node(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", name):
        raise click.BadParameter("may have letters, digits, dots, dashes and underscores", param_hint="--node")
    return name


def _checked_advertise(url: str | None) -> str | None:
    if url is not None and not _is_origin(url):
        raise click.BadParameter(
            "must be like http://boat-1.internal:8911, without a path, user or password", param_hint="--advertise"
        )
    return url


def _is_origin(url: str) -> bool:
    """A scheme, a host and at most a port."""
    try:
        parts = urlsplit(url)
        port_is_valid = parts.port != 0
    except ValueError:
        return False
    more = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    return port_is_valid and parts.scheme in ("http", "https") and bool(parts.hostname) and not more


def _announce(found: "Discovery", settings: "Settings") -> None:
    from longboat.wire.discovery import SOCKET_NAME

    default = str(settings.runtime_dir / SOCKET_NAME)
    click.echo(f"Longboat {found.version} is ready. Press Ctrl-C to stop it. Data: {found.data_dir}")
    if found.socket is not None:
        click.echo(f"  socket {found.socket}")
        own = "" if found.socket == default else f"LONGBOAT_SOCKET={found.socket} "
        click.echo(f'  attach {own}longboat run "…"')
    if found.url is not None:
        _announce_tcp(found.url, settings)


def _announce_tcp(url: str, settings: "Settings") -> None:
    """Print how to connect over TCP, but not the token itself: others may see the screen or the log."""
    from longboat.cli.addresses import for_others
    from longboat.server.listen import url_of
    from longboat.server.token import FILE

    place = shlex.quote(str(settings.data_dir / FILE))
    given = bool(os.environ.get("LONGBOAT_TOKEN"))
    click.echo(f"  url    {url}")
    others = [url_of(host, urlsplit(url).port or 0) for host in for_others(settings.host or "")]
    for other in others:
        if other != url:
            click.echo(f"         {other}")
    click.echo(f"  token  {'from LONGBOAT_TOKEN' if given else f'cat {place}'}")
    token = "$LONGBOAT_TOKEN" if given else f"$(cat {place})"
    click.echo(f'  attach LONGBOAT_URL={url} LONGBOAT_TOKEN={token} longboat run "…"')
    if others:
        click.echo(f"  remote longboat attach {others[0]}   (asks for the token), or open that address in a browser")


def _take_leave(active: int, drain_s: float) -> None:
    with suppress(OSError):  # the terminal may be gone, and that must not disturb the runs
        if active:
            runs = "1 run" if active == 1 else f"{active} runs"
            click.echo(f"Stopping: waiting up to {drain_s:g} s for {runs} to end. (Press Ctrl-C to interrupt now.)")
        else:
            click.echo("Stopping.")
