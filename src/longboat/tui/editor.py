"""The prompt in an editor of one's own. Lends the terminal to it; must not know what is done with the text."""

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


class NotEdited(Exception):
    """Why the text is as it was, in words for people."""


def edited(app: App[Any], text: str, environ: Mapping[str, str] = os.environ) -> str:
    """The text as it comes back from $VISUAL or $EDITOR; raises NotEdited."""
    named = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    try:
        command = shlex.split(named)
    except ValueError as error:
        raise NotEdited(f"The editor cannot be used: {named}: {error}") from error
    try:
        with tempfile.TemporaryDirectory(prefix="longboat-") as directory:
            return _edit(app, command, Path(directory) / "prompt.md", text)
    except OSError as error:
        raise NotEdited(f"There is no room for a file ({error.strerror}). Your prompt is as it was.") from error


def _edit(app: App[Any], command: list[str], file: Path, text: str) -> str:
    file.write_text(f"{text}\n" if text else "", encoding="utf-8")
    code = _lend(app, [*command, str(file)])
    if code != 0:
        raise NotEdited(f"The editor failed ({code}). Your prompt is as it was.")
    try:
        return file.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    except OSError as error:
        raise NotEdited(f"The editor left no text ({error.strerror}). Your prompt is as it was.") from error


def _lend(app: App[Any], command: list[str]) -> int:
    """How a program ended that had the terminal. Nothing is raised in between: the terminal would stay lent."""
    failure: OSError | None = None
    try:
        with app.suspend(), _deaf_to_ctrl_c():
            try:
                return subprocess.run(command, check=False).returncode
            except OSError as error:
                failure = error
    except SuspendNotSupported:
        raise NotEdited("The editor cannot be used: this terminal cannot be lent.") from None
    raise NotEdited(f"The editor cannot be used: {failure}")


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """It is for the editor. Handled and not ignored: what is ignored here, the editor would ignore as well."""
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
