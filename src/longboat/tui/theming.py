"""Applies the theme: the one the person chose, now or in an earlier process, or the one that fits the terminal."""

from typing import TYPE_CHECKING

from textual.theme import Theme

from longboat.tui.app_exit import theme_of_terminal
from longboat.tui.saved_state import AUTO, SavedState

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp

OURS = {"dark": "textual-dark", "light": "textual-light"}


class Theming:
    def __init__(self, app: "LongboatApp", keeping: SavedState) -> None:
        self._app = app
        self._keeping = keeping
        self._fitting = ""
        """The automatic theme, if none was chosen."""

    def start(self) -> None:
        self._wear(self._keeping.theme)
        self._app.theme_changed_signal.subscribe(self._app, self._changed)

    def choose(self, name: str) -> None:
        """Apply a theme by name; show the list for an unknown name."""
        if name == AUTO or OURS.get(name, name) in self._app.available_themes:
            self._keeping.keep_theme(name)
            self._wear(name)
        else:
            self._app.search_themes()

    def _wear(self, name: str) -> None:
        theme = OURS.get(name, name)
        self._fitting = "" if theme in self._app.available_themes else theme_of_terminal()
        self._app.theme = self._fitting or theme

    def _changed(self, theme: Theme) -> None:
        """Keep a theme that was chosen from Textual's list."""
        if theme.name != self._fitting and theme.name != OURS.get(self._keeping.theme, self._keeping.theme):
            self._fitting = ""
            self._keeping.keep_theme(theme.name)
