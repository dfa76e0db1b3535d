"""One `longboat.json` as it was read: its bytes, its value, and the position to name in an error.

Must not know which files exist, nor what a configuration means.
"""

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longboat.config import jsonc
from longboat.errors import ConfigInvalid

MAX_BYTES = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A missing file reads as empty."""

    file: Path
    text: str
    value: dict[str, Any]
    digest: str
    """The SHA-256 of the very bytes that `value` was read from."""


def read(file: Path) -> Source:
    found = contents(file)
    content = b"{}" if found is None else found
    try:
        text = content.decode("utf-8-sig")
        value = jsonc.parse(text)
    except UnicodeDecodeError:
        raise ConfigInvalid(f"{file}:1: expected a text file in UTF-8") from None
    except jsonc.JsoncError as error:
        raise ConfigInvalid(f"{file}:{error.line}: {error}") from None
    if not isinstance(value, dict):
        raise ConfigInvalid(f"{file}:1: expected an object: {{ … }}")
    return Source(file=file, text=text, value=value, digest=hashlib.sha256(content).hexdigest())


def contents(file: Path, *, most: int = MAX_BYTES, advice: str = "too large for a configuration") -> bytes | None:
    """The bytes of a regular file of sensible size, or None. Reading a pipe or a device would block the server."""
    try:
        with open(file, "rb", opener=_without_waiting) as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ConfigInvalid(f"{file}: expected a regular file")
            if status.st_size > most:
                raise ConfigInvalid(f"{file}: larger than {most >> 10} KB, {advice}")
            return opened.read(most)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigInvalid(f"{file}: cannot be read: {error.strerror}") from None


def _without_waiting(file: str, flags: int) -> int:
    return os.open(file, flags | os.O_NONBLOCK)


def locate(sources: tuple[Source, ...], path: jsonc.Path) -> str:
    """File, line and key of a value, in the first source that has the key."""
    places = [(source.file, jsonc.lines(source.text)) for source in sources if source.value]
    owner = path
    while owner and not any(owner in lines for _, lines in places):
        owner = owner[:-1]  # a key that is missing has no line, but its owner has
    file, line = next(((file, lines[owner]) for file, lines in places if owner in lines), (sources[-1].file, 1))
    return f"{file}:{line}: {format_path(path)}"


def format_path(path: jsonc.Path) -> str:
    """The path as a person writes it. Control characters are escaped: a stranger's key may contain terminal codes."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
    return text if text.isprintable() else json.dumps(text)[1:-1]
