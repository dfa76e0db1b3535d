"""The app and its terminal: detecting a light background, desktop notifications, quitting and the closing message."""

import os
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from longboat.wire.models import Run
from longboat.wire.plain import plain, plain_line

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp

WARNED_S = 3.0
"""The time within which a second ctrl+c quits."""


def theme_of_terminal(environ: Mapping[str, str] = os.environ) -> str:
    """Light if the terminal reports a light background (COLORFGBG), dark otherwise."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if background in ("7", "15") else "dark"


def notification(words: str, title: str, environ: Mapping[str, str] = os.environ) -> str:
    """The escape sequence for a desktop notification, in the form that the terminal knows; empty for terminals that
    would print it. The title is untrusted text."""
    if environ.get("TERM", "dumb") in ("dumb", "linux"):
        return ""
    text = plain_line(title)[:60].replace(";", ",")
    said = f"{words} {text}".strip()
    if environ.get("VTE_VERSION") or environ.get("TERM", "").startswith(("rxvt", "foot")):
        return f"\x1b]777;notify;Longboat;{said}\x1b\\"
    return f"\x1b]9;Longboat: {said}\x1b\\"


class AppExit:
    """ctrl+c: copies the selection, else clears the prompt, else quits when pressed twice."""

    def __init__(self, app: "LongboatApp") -> None:
        self._app = app
        self.clock: Callable[[], float] = monotonic
        self._warned_at = -WARNED_S

    def ask(self, *, end: bool) -> None:
        """`end`: quit at once, for ctrl+d."""
        app = self._app
        # By the clock: if a Textual timer got lost, every later single ctrl+c would quit.
        if selected := app.screen.get_selected_text():
            app.copy_to_clipboard(selected)
            app.notify("Copied.")
        elif end or self.clock() - self._warned_at < WARNED_S:
            app.exit()
        elif not app.composer.clear():
            self._warned_at = self.clock()
            app.notify("Press ctrl+c again to quit. Active runs continue.")


def farewell_text(
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
            lines.append(f"“{plain_line(runs[0].prompt)[:60]}”{more} will continue on the server.")
        lines.append(f"Continue with: {back}")
    return "\n".join(lines)
