"""What the app has laid out reaches the screen: every line that moved, came or went is drawn (F2)."""

from textual.app import App, ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.screen import Screen
from textual.widgets import Static
from tui_stage import picture, until
from tui_terminal import in_terminal

from longboat.tui.textual_fixes import on_canvas


class Page(App[None]):
    CSS = "VerticalScroll { scrollbar-size: 0 0; align: left bottom; } Vertical, Static { height: auto; }"

    def __init__(self, *lines: Static) -> None:
        super().__init__()
        self.page = VerticalScroll(*lines)

    def get_default_screen(self) -> Screen[object]:
        return on_canvas(Screen())

    def compose(self) -> ComposeResult:
        yield self.page


async def test_what_moves_is_drawn_although_somebody_asked_for_its_place_before() -> None:
    """As a prompt does when the answer below it gets its first line: Textual asks for places as it mounts."""
    app = Page(Static("first\nsecond"))
    async with app.run_test(size=(20, 6)) as pilot:
        terminal, answer = in_terminal(app), Vertical()
        await app.page.mount(answer)
        await pilot.pause()
        answer.mount(Static("an answer"))
        await pilot.pause()
        assert terminal.picture == picture(app) == "\n\n\nfirst\nsecond\nan answer\n"


async def test_what_was_scrolled_away_and_back_is_drawn_in_its_old_place() -> None:
    app = Page(*[Static(f"line {number}") for number in range(12)])
    async with app.run_test(size=(20, 6)) as pilot:
        terminal = in_terminal(app)
        app.page.scroll_to(y=3, animate=False)
        await until(pilot, lambda: terminal.picture.startswith("line 3\n"))
        app.page.scroll_to(y=0, animate=False, immediate=True)
        app.page.refresh(layout=True, repaint=False)
        await until(pilot, lambda: terminal.picture.startswith("line 0\n"))
        assert terminal.picture == picture(app)
