"""The token for TCP. Created once per data directory and stored there, readable only by its user, so that browsers and
programs that have it keep working after a restart."""

import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from longboat.server.listen import write_private

FILE = "token"


def token_for(data_dir: Path, environ: Mapping[str, str]) -> str:
    """LONGBOAT_TOKEN, or the stored token; a new one if there is none, or if others could have read it."""
    if given := environ.get("LONGBOAT_TOKEN"):
        return given
    path = data_dir / FILE
    if kept := _read_token(path):
        return kept
    made = secrets.token_urlsafe(32)
    keep_token(data_dir, made)
    return made


def keep_token(data_dir: Path, token: str) -> None:
    """Store the token, where people look for it."""
    with suppress(OSError):  # a directory that cannot be used is reported when it is opened
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(data_dir / FILE, token.encode())


def _read_token(path: Path) -> str | None:
    try:
        # Never waits for the other end of a pipe.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(path, flags), encoding="ascii") as file:
            status = os.fstat(file.fileno())
            private = status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077
            return file.read(1_000).strip() if private and stat.S_ISREG(status.st_mode) else None
    except (OSError, UnicodeDecodeError):
        return None
