"""Pictures of the terminal app: the real app on the real server, as Textual draws it.

Must not know the story: who calls says what must be on the screen first.
"""

import asyncio
import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from longboat.tui.app import LongboatApp
from picturing.scene import GIVE_UP_S, Scene

SIZE = (110, 32)
FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Someone at a terminal."""

    app: LongboatApp
    pilot: Pilot[None]

    @property
    def text(self) -> str:
        """What is on the screen."""
        drawn = re.sub(r"<style>.*?</style>|<[^>]+>", "", self.app.export_screenshot(), flags=re.DOTALL)
        return html.unescape(drawn).replace("\xa0", " ")

    async def sees(self, text: str) -> None:
        try:
            async with asyncio.timeout(GIVE_UP_S):
                while text not in self.text:
                    await self.pilot.pause(0.05)
        except TimeoutError:
            raise SystemExit(f"pictures: the terminal app never showed {text!r}:\n{self.text}") from None
        await self.pilot.pause(0.3)  # what came together is drawn together

    async def gone(self, text: str) -> None:
        """Wait until something is no longer shown."""
        async with asyncio.timeout(GIVE_UP_S):
            while text in self.text:
                await self.pilot.pause(0.05)

    async def scroll_to(self, tool: str) -> None:
        """To the last call of a tool."""
        card = [card for card in self.app.view.all_cards if card.call.name == tool][-1]
        self.app.view.scroll_to_widget(card, top=True, animate=False)
        await self.pilot.pause(0.3)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    def take(self, file: Path) -> None:
        file.write_text(cleaned(self.app.export_screenshot()), encoding="utf-8")


def cleaned(svg: str) -> str:
    """Without the fonts that it would fetch from elsewhere, and with names that do not change from run to run."""
    svg = re.sub(r"@font-face \{.*?\}\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: (?:Fira Code|arial)(?:, monospace)?;", f"font-family: {FONTS};", svg)
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r"terminal-\d+-", "t-", svg)
    return re.sub(r"\s*\n\s*", "\n", svg).strip() + "\n"


@asynccontextmanager
async def open_window(scene: Scene, name: str, session_id: str | None = None) -> AsyncIterator[Window]:
    """The app of someone, at a session or a new one."""
    async with scene.client(name) as client:
        app = LongboatApp(client, str(scene.project), session_id=session_id)
        async with app.run_test(size=SIZE, notifications=True) as pilot:
            app.composer.input.cursor_blink = False
            yield Window(app=app, pilot=pilot)
