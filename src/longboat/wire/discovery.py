"""How to find a user's server: the runtime directory, its socket, and the discovery file beside it.

Pure: defines names and types; the server writes the file, clients read it.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

SOCKET_NAME = "longboat.sock"
DISCOVERY_NAME = "server.json"


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a running server, in a file that only its user can read."""

    pid: int
    version: str
    protocol: int
    socket: str | None
    url: str | None
    """The TCP address, if it listens on one."""
    token: str
    data_dir: str
    started_at: str
    keys: tuple[str, ...] = ()
    """The names of its environment variables, so that commands can see which keys it has."""
    background: bool = False
    """It was started in the background by a command, and another command may replace it while it is idle."""


def runtime_dir(environ: Mapping[str, str], uid: int) -> Path:
    """The directory of this user's socket and discovery file (made with mode 0700)."""
    if own := environ.get("LONGBOAT_RUNTIME_DIR"):
        return Path(own)
    if base := environ.get("XDG_RUNTIME_DIR"):
        return Path(base) / "longboat"
    return Path("/tmp") / f"longboat-{uid}"


def data_dir(environ: Mapping[str, str], home: Path) -> Path:
    """The directory of this user's store."""
    if own := environ.get("LONGBOAT_DATA_DIR"):
        return Path(own)
    base = environ.get("XDG_DATA_HOME")
    return (Path(base) if base else home / ".local" / "share") / "longboat"
