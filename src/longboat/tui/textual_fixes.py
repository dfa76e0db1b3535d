"""Workarounds for Textual, each with what goes wrong without it. Must not know what is drawn."""

from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from textual._compositor import Compositor, CompositorMap, ReflowResult
from textual._widget_navigation import Direction
from textual.app import App
from textual.events import Key, Resize
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets._toast import Toast
from textual.worker import Worker
from textual.worker_manager import WorkerManager

S = TypeVar("S", bound=Screen[Any])


def on_canvas(screen: S) -> S:
    """Make a screen use `Canvas`, and return it."""
    screen._compositor = Canvas()
    return screen


class Canvas(Compositor):
    """Repaints every widget that moved.

    Textual repaints where its map of the screen changed between two layouts. Code that asks a widget for its position
    in between can rebuild that map, and then the next layout sees no change: a widget that moved stays where it was
    drawn, or is missing, until something else repaints it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._laid_out: CompositorMap = {}
        """The map of the last full layout."""
        self._drawn: CompositorMap = {}
        """The map of the last layout, full or only of the widgets visible after scrolling."""

    def clear(self) -> None:
        super().clear()
        self._laid_out, self._drawn = {}, {}

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        self._full_map = self._laid_out
        result = super().reflow(parent, size)
        if self._drawn is not self._laid_out:
            self._dirty_regions |= _places(self._drawn, self._full_map)
        self._laid_out = self._drawn = self._full_map
        return result

    def reflow_visible(self, parent: Widget, size: Size) -> set[Widget]:
        exposed = super().reflow_visible(parent, size)
        self._drawn = self._visible_map or {}
        return exposed


def _places(before: CompositorMap, now: CompositorMap) -> set[Region]:
    """The visible regions that differ between two maps."""
    changes = before.items() ^ now.items()
    return {place for _, at in changes if (place := at.clip.intersection(at.region))}


EVERY_S = 1.0


def watch(app: App[None]) -> None:
    """Every second: pass on a size that was missed, and remove notifications that have expired.

    Textual uses timers of a few milliseconds for both. On a busy machine, a timer that is late when it starts never
    fires.
    """
    app.set_interval(EVERY_S, partial(fit_screens, app))
    app.set_interval(EVERY_S, partial(_remove_expired_toasts, app))


def fit_screens(app: App[None]) -> None:
    for screen in app.screen_stack:
        if screen._compositor.size != app.size:
            screen.post_message(Resize(app.size, app.size))


def _remove_expired_toasts(app: App[None]) -> None:
    for screen in app.screen_stack:
        for toast in screen.query(Toast):
            if toast._notification.has_expired:
                toast._expire()


class Workers(WorkerManager):
    """Closes the coroutine of a worker that never began.

    Textual awaits it in a task of its own. If that is canceled before its first step, as by an exclusive worker that
    follows at once or by leaving the app, Python warns of a coroutine that was never awaited.
    """

    def add_worker(self, worker: Worker[Any], start: bool = True, exclusive: bool = True) -> None:
        super().add_worker(worker, start, exclusive)
        work = worker._work
        if worker._task is not None and isinstance(work, Coroutine):
            worker._task.add_done_callback(lambda _: work.close())


async def run_key_binding(widget: Widget, event: Key) -> None:
    """Run the widget's action for this key now, if it is available.

    If several keys arrive together, Textual runs the action of a key only after inserting later letters.
    """
    bound = widget._bindings.key_to_bindings.get(event.key)
    if bound and await widget.app.run_action(bound[0].action, widget):
        event.stop()
        event.prevent_default()


class Listing(OptionList):
    """A list to choose from. Textual's own fails on page keys while it has no visible rows."""

    def _move_page(self, direction: Direction) -> None:
        if self.scrollable_content_region:
            super()._move_page(direction)
