"""Keeps the app at the terminal's size.

Textual passes a new size to its screens with a timer of a few milliseconds. On a busy machine, a timer that is late
when it starts never fires, and then later sizes are not passed on either. Must not know what is drawn.
"""

from functools import partial

from textual.app import App
from textual.events import Resize

EVERY_S = 1.0


def watch(app: App[None]) -> None:
    app.set_interval(EVERY_S, partial(_mend, app))


def _mend(app: App[None]) -> None:
    for screen in app.screen_stack:
        if screen._compositor.size != app.size:
            screen.post_message(Resize(app.size, app.size))
