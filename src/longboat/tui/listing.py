"""A list to choose from. Textual's own fails on page keys while it has no visible rows."""

from textual._widget_navigation import Direction
from textual.widgets import OptionList


class Listing(OptionList):
    def _move_page(self, direction: Direction) -> None:
        if self.scrollable_content_region:
            super()._move_page(direction)
