"""Edits a text or a file in the person's own editor, which gets the terminal. Must not know what the text is for."""

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

_TAKE_PLUS = {"vi", "vim", "nvim", "gvim", "view", "nano", "pico", "emacs", "emacsclient", "micro", "joe", "kak", "mg"}
"""Editors that take the line as `+12 file`."""
_TAKE_GOTO = {"code", "code-insiders", "codium", "cursor"}
_TAKE_COLON = {"hx", "helix", "subl", "zed"}


class NotEdited(Exception):
    """Why the text could not be edited, for people."""


def edited(app: App[Any], text: str, environ: Mapping[str, str] = os.environ) -> str:
    """The text as edited in $VISUAL or $EDITOR; raises NotEdited."""
    command = _command(environ)
    try:
        with tempfile.TemporaryDirectory(prefix="longboat-") as directory:
            return _edit(app, command, Path(directory) / "prompt.md", text)
    except OSError as error:
        raise NotEdited(f"Cannot create a temporary file ({error.strerror}). Your prompt is unchanged.") from error


def open_file(app: App[Any], file: Path, line: int, environ: Mapping[str, str] = os.environ) -> None:
    """Open a file in $VISUAL or $EDITOR, at this line if we know how to tell the editor; raises NotEdited."""
    command = _command(environ)
    if not file.is_file():
        raise NotEdited(f"{file} is not a file on this machine.")
    code = _lend(app, [*command, *_at_line(command[0], str(file.absolute()), line)])
    if code != 0:
        raise NotEdited(f"The editor failed ({code}).")


def _command(environ: Mapping[str, str]) -> list[str]:
    named = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    try:
        return shlex.split(named) or ["vi"]
    except ValueError as error:
        raise NotEdited(f"Cannot start the editor: {named}: {error}") from error


def _at_line(program: str, file: str, line: int) -> list[str]:
    name = os.path.basename(program)
    if name in _TAKE_PLUS:
        return [f"+{line}", file]
    if name in _TAKE_GOTO:
        return ["--goto", f"{file}:{line}"]
    return [f"{file}:{line}"] if name in _TAKE_COLON else [file]


def _edit(app: App[Any], command: list[str], file: Path, text: str) -> str:
    file.write_text(f"{text}\n" if text else "", encoding="utf-8")
    code = _lend(app, [*command, str(file)])
    if code != 0:
        raise NotEdited(f"The editor failed ({code}). Your prompt is unchanged.")
    try:
        return file.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    except OSError as error:
        raise NotEdited(f"Cannot read the edited text ({error.strerror}). Your prompt is unchanged.") from error


def _lend(app: App[Any], command: list[str]) -> int:
    """Run a program in the terminal and return its exit code. Raises only after the app has the terminal back."""
    failure: OSError | None = None
    try:
        with app.suspend(), _deaf_to_ctrl_c():
            try:
                return subprocess.run(command, check=False).returncode
            except OSError as error:
                failure = error
    except SuspendNotSupported:
        raise NotEdited("Cannot start the editor: the app cannot be suspended in this terminal.") from None
    raise NotEdited(f"Cannot start the editor: {failure}")


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Leave ctrl+c to the editor. Handled, not ignored: the editor would inherit an ignored signal."""
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
