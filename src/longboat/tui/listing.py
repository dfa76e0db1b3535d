"""A list to choose from, wherever it is drawn: Textual's own cannot be paged through where it has no rows."""

from textual._widget_navigation import Direction
from textual.widgets import OptionList


class Listing(OptionList):
    def _move_page(self, direction: Direction) -> None:
        if self.scrollable_content_region:
            super()._move_page(direction)
