"""Stores what the terminal app remembers between processes: the chosen theme and the prompts.

Owns two small files that only the user can read. If one cannot be read or written, the app works without it.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from longboat import regular_files

AUTO = "auto"
"""The theme that fits the terminal."""
KEPT = 1_000
"""The most prompts kept, of all directories together."""
LONGEST = 10_000
"""The longest prompt kept, in characters."""


class SavedPrompt(msgspec.Struct, frozen=True):
    path: str
    prompt: str


class Choices(msgspec.Struct, frozen=True):
    theme: str = AUTO


def state_dir(environ: Mapping[str, str], home: Path) -> Path:
    base = environ.get("XDG_STATE_HOME")
    return (Path(base) if base else home / ".local" / "state") / "longboat"


class SavedState:
    """The stored theme and prompts. `directory`: None stores nothing."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    @property
    def theme(self) -> str:
        with suppress(OSError, msgspec.MsgspecError, UnicodeError):
            if self._directory is not None:
                return msgspec.json.decode(regular_files.read(self._directory / "terminal.json"), type=Choices).theme
        return AUTO

    def keep_theme(self, name: str) -> None:
        self._write("terminal.json", msgspec.json.encode(Choices(theme=name)) + b"\n")

    def prompts(self, path: str) -> list[str]:
        """The prompts sent from a directory, oldest first."""
        lines = self._lines()
        if len(lines) > 2 * KEPT:
            lines = lines[-KEPT:]
            self._write("prompts.jsonl", b"".join(line + b"\n" for line in lines))
        return [kept.prompt for kept in map(_kept, lines) if kept is not None and kept.path == path]

    def keep_prompt(self, path: str, prompt: str) -> None:
        if self._directory is None or not prompt.strip() or len(prompt) > LONGEST:
            return
        with suppress(OSError, UnicodeError):
            line = msgspec.json.encode(SavedPrompt(path=path, prompt=prompt)) + b"\n"
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # A single appending write, because two terminals may do this at once.
            with open(self._directory / "prompts.jsonl", "ab", buffering=0, opener=regular_files.opener) as file:
                file.write(line)

    def _lines(self) -> list[bytes]:
        with suppress(OSError):
            if self._directory is not None:
                return regular_files.read(self._directory / "prompts.jsonl").splitlines()
        return []

    def _write(self, name: str, content: bytes) -> None:
        """Replace a file atomically."""
        if self._directory is None:
            return
        with suppress(OSError):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = self._directory / f".{name}.{os.getpid()}"
            with open(made, "wb", opener=regular_files.opener) as file:
                file.write(content)
            made.replace(self._directory / name)


def _kept(line: bytes) -> SavedPrompt | None:
    try:
        return msgspec.json.decode(line, type=SavedPrompt)
    except (msgspec.MsgspecError, UnicodeError):
        return None
