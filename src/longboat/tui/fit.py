"""Keeps the drawing as large as the terminal.

Textual tells its screens of a new size by a timer of a few milliseconds. On a busy machine one that is late as it
starts never fires, and then no later size is told of either. Must not know what is drawn.
"""

from functools import partial

from textual.app import App
from textual.events import Resize
from textual.widget import Widget

EVERY_S = 1.0


def watch(app: App[None], lowest: Widget) -> None:
    """`lowest`: a line that is as wide as the terminal, and its last."""
    app.set_interval(EVERY_S, partial(_mend, app, lowest))


def _mend(app: App[None], lowest: Widget) -> None:
    if (lowest.region.right, lowest.region.bottom) != app.size:
        for screen in app.screen_stack:
            screen.post_message(Resize(app.size, app.size))
