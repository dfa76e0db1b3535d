"""Where the server is: as the caller said, as the environment says, or as the discovery file tells.

Reads the discovery file; must not open connections.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from longboat import regular_files
from longboat.errors import BadInput
from longboat.wire.discovery import DISCOVERY_NAME, SOCKET_NAME, Discovery, runtime_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A unix socket, or a URL with its token."""

    socket: str | None = None
    url: str | None = None
    token: str | None = None
    named: bool = True
    """False when it was discovered: then the server may come back elsewhere, and may be started."""

    @property
    def base_url(self) -> str:
        """What requests start with. On a unix socket the host is only a word that every server accepts."""
        return self.url or "http://localhost"

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    def __str__(self) -> str:
        return self.url or f"unix socket {self.socket}"


def find(
    *,
    url: str | None = None,
    socket: str | os.PathLike[str] | None = None,
    token: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Address:
    """The server's address: arguments first, then LONGBOAT_URL or LONGBOAT_SOCKET, then the discovery file."""
    environ = os.environ if environ is None else environ
    said_by = "url"
    if url is None and socket is None:
        said_by = "LONGBOAT_URL"
        url, socket = environ.get("LONGBOAT_URL") or None, environ.get("LONGBOAT_SOCKET") or None
    token = token or environ.get("LONGBOAT_TOKEN") or None
    if url is not None:
        url = _checked(url, said_by).rstrip("/")
        found = read_discovery(environ)
        # The port of a dead server may be another program's by now, and it must not see our token.
        known = found.token if found is not None and found.url == url and is_alive(found.pid) else None
        return Address(url=url, token=token or known)
    if socket is not None:
        return Address(socket=os.fspath(socket), token=token)
    return _discovered(environ, token)


def read_discovery(environ: Mapping[str, str]) -> Discovery | None:
    """What the user's server last said of itself; it may be dead by now. None when there is nothing readable."""
    try:
        return msgspec.json.decode(regular_files.read(_runtime_dir(environ) / DISCOVERY_NAME), type=Discovery)
    except (OSError, msgspec.MsgspecError):
        return None


def _checked(url: str, said_by: str) -> str:
    """Refuse what is no URL, instead of trying some other place that it could mean."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if usable:
        return url
    raise BadInput(f"{said_by} {url!r} is not an address. Use one like http://127.0.0.1:8911.", code="bad_url")


def _discovered(environ: Mapping[str, str], token: str | None) -> Address:
    found = read_discovery(environ)
    if found is not None and found.socket is not None:
        return Address(socket=found.socket, named=False)
    if found is not None and found.url is not None and is_alive(found.pid):
        return Address(url=found.url.rstrip("/"), token=token or found.token, named=False)
    return Address(socket=str(_runtime_dir(environ) / SOCKET_NAME), named=False)


def _runtime_dir(environ: Mapping[str, str]) -> Path:
    return runtime_dir(environ, os.getuid())


def is_alive(pid: int) -> bool:
    """Whether a process of this user has that id."""
    try:
        os.kill(pid, 0)
    except OSError:  # gone, or some other user's: not the server that wrote the file
        return False
    return True
