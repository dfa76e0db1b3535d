"""Draws all that moved, whoever asked for a place before it was laid out.

Textual repaints where its map of the screen changed between two layouts. Whoever asks a widget for its place in between
can have that map made anew, and then the next layout finds nothing changed: what moved stays where it was drawn, or is
gone, until something else repaints it. Must not know what is drawn.
"""

from typing import Any, TypeVar

from textual._compositor import Compositor, CompositorMap, ReflowResult
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.widget import Widget

S = TypeVar("S", bound=Screen[Any])


def on_canvas(screen: S) -> S:
    """The same screen, that draws so from now on."""
    screen._compositor = Canvas()
    return screen


class Canvas(Compositor):
    def __init__(self) -> None:
        super().__init__()
        self._laid_out: CompositorMap = {}
        """By the last layout of everything."""
        self._drawn: CompositorMap = {}
        """By the last layout: of everything, or of what scrolling left to see."""

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
    """Where something is seen, or was, that was not so before."""
    changes = before.items() ^ now.items()
    return {place for _, at in changes if (place := at.clip.intersection(at.region))}
