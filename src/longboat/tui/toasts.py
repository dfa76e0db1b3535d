"""Removes expired notifications.

Textual uses a timer for each, and on a busy machine a timer that is late when it starts never fires. Must not know what
they say.
"""

from functools import partial

from textual.app import App
from textual.widgets._toast import Toast

EVERY_S = 1.0


def watch(app: App[None]) -> None:
    app.set_interval(EVERY_S, partial(_sweep, app))


def _sweep(app: App[None]) -> None:
    for screen in app.screen_stack:
        for toast in screen.query(Toast):
            if toast._notification.has_expired:
                toast._expire()
