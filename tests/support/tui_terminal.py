"""A terminal that draws what the app writes: what a person sees, which can be less than what the app has laid out."""

from dataclasses import dataclass

import pyte
from textual._compositor import CompositorUpdate
from textual.app import App
from textual.screen import Screen


@dataclass
class Terminal:
    app: App[None]
    screen: pyte.Screen

    @property
    def picture(self) -> str:
        return "".join(f"{line.rstrip()}\n" for line in self.screen.display)


def in_terminal(app: App[None]) -> Terminal:
    """From now on, all that the app draws is drawn there too. Textual writes nothing itself without a terminal."""
    screen = pyte.Screen(*app.size)
    stream = pyte.Stream(screen)
    display = app._display

    def draw(of: Screen[object], update: object) -> None:
        if isinstance(update, CompositorUpdate) and not app._batch_count:
            if (screen.columns, screen.lines) != app.size:
                screen.resize(columns=app.size.width, lines=app.size.height)
            stream.feed(update.render_segments(app.console))
        display(of, update)

    app._display = draw
    app.refresh()
    return Terminal(app, screen)
