"""Applies the theme: the one the person chose, now or in an earlier process, or the one that fits the terminal."""

from typing import TYPE_CHECKING

from textual.theme import Theme

from longboat.tui.app_exit import theme_of_terminal
from longboat.tui.palette import open_themes
from longboat.tui.saved_state import AUTO, SavedState

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp

LIGHT = Theme(
    name="longboat-light",
    primary="#0a5c9e",
    secondary="#0178d4",
    accent="#a55300",
    warning="#a55300",
    error="#b3263e",
    success="#1a7f37",
    foreground="#1f2328",
    background="#ffffff",
    surface="#ffffff",
    panel="#eef1f4",
    dark=False,
)
"""White, as light terminals are: Textual's own light theme is grey."""
OURS = {"dark": "textual-dark", "light": LIGHT.name}


class Theming:
    def __init__(self, app: "LongboatApp", keeping: SavedState) -> None:
        self._app = app
        self._keeping = keeping

    def start(self) -> None:
        self._app.register_theme(LIGHT)
        self._wear(self._keeping.theme)

    def choose(self, name: str) -> None:
        """Apply a theme by name; show the list for an unknown name."""
        if name == AUTO or OURS.get(name, name) in self._app.available_themes:
            self._keeping.keep_theme(name)
            self._wear(name)
        else:
            open_themes(self._app)

    def _wear(self, name: str) -> None:
        theme = OURS.get(name, name)
        fitting = theme if theme in self._app.available_themes else OURS[theme_of_terminal()]
        self._app.theme = fitting
