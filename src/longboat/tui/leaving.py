"""Between the app and the terminal around it: the editor, the terminal's colors, the words at the end."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from longboat.wire.models import Run
from longboat.wire.plain import plain, plain_line

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp


def theme_of_terminal(environ: Mapping[str, str] = os.environ) -> str:
    """Light where the terminal says that its background is (COLORFGBG), dark otherwise."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return "textual-light" if background in ("7", "15") else "textual-dark"


def notification(words: str, title: str, environ: Mapping[str, str] = os.environ) -> str:
    """What makes a terminal tell its desktop, in the one of two forms that it may know; nothing for those that would
    print it. The title is somebody else's text."""
    if environ.get("TERM", "dumb") in ("dumb", "linux"):
        return ""
    text = plain_line(title)[:60].replace(";", ",")
    said = f"{words} {text}".strip()
    if environ.get("VTE_VERSION") or environ.get("TERM", "").startswith(("rxvt", "foot")):
        return f"\x1b]777;notify;Longboat;{said}\x1b\\"
    return f"\x1b]9;Longboat: {said}\x1b\\"


def edit(app: "LongboatApp") -> None:
    """Write the prompt in $VISUAL or $EDITOR. What was typed comes back changed, or as it was."""
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="longboat-") as directory:
        file = Path(directory) / "prompt.md"
        file.write_text(f"{app.composer.input.text}\n" if app.composer.input.text else "")
        try:
            with app.suspend():
                ended = subprocess.run([*command, str(file)], check=False)
        except (SuspendNotSupported, OSError) as error:
            app.notify(f"The editor cannot be used: {error or 'this terminal cannot be lent'}", markup=False)
            return
        if ended.returncode == 0:
            app.composer.input.put(file.read_text(errors="replace").rstrip("\n"))
    app.refresh(layout=True)


def farewell(
    *, failure: str, session_id: str | None, runs: Sequence[Run], unsent: Sequence[str], come_back: str
) -> str:
    lines = [plain(failure)] if failure else []
    if unsent:
        lines.append(f"{len(unsent)} prompt{'s were' if len(unsent) > 1 else ' was'} not sent:")
        lines += [f"  {plain_line(prompt)}" for prompt in unsent]
    if session_id is not None and not failure:
        back = come_back.format(session_id=session_id)
        if runs:
            more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
            lines.append(f"“{plain_line(runs[0].prompt)[:60]}”{more} goes on without you.")
        lines.append(f"Come back with: {back}")
    return "\n".join(lines)
