"""Repaints every widget that moved, which Textual sometimes does not.

Textual repaints where its map of the screen changed between two layouts. Code that asks a widget for its position in
between can rebuild that map, and then the next layout sees no change: a widget that moved stays where it was drawn, or
is missing, until something else repaints it. Must not know what is drawn.
"""

from typing import Any, TypeVar

from textual._compositor import Compositor, CompositorMap, ReflowResult
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.widget import Widget

S = TypeVar("S", bound=Screen[Any])


def on_canvas(screen: S) -> S:
    """Make a screen use `Canvas`, and return it."""
    screen._compositor = Canvas()
    return screen


class Canvas(Compositor):
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
