"""Pictures of the web page, taken in Debian's Chromium.

Owns the browser. Must not know the story: who calls says when the page is ready to be taken.
"""

import io
import json
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.async_api import Browser, Page, async_playwright

from picturing.scene import TOKEN, Scene

DESK, PHONE = (1280, 800), (390, 844)
GAP, PAPER = 60, "#dfe5ec"
_NAMED = "localStorage.setItem('longboat.name', %s);"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """Someone at the page."""

    page: Page
    url: str

    async def go(self, path: str) -> None:
        await self.page.goto(self.url + path)

    async def open(self, path: str) -> None:
        """A session, once what was said in it is read and the page is live."""
        await self.go(path)
        await self.page.locator("#connection[data-state=live]").wait_for()
        await self.page.get_by_role("region", name="Transcript").wait_for()

    async def sees(self, text: str) -> None:
        await self.page.get_by_text(text).first.wait_for()

    async def press(self, button: str) -> None:
        await self.page.get_by_role("button", name=button, exact=True).first.click()

    async def gone(self, selector: str) -> None:
        await self.page.locator(selector).first.wait_for(state="detached")

    async def shot(self, *, size: tuple[int, int] = DESK, dark: bool = False) -> bytes:
        await self.page.set_viewport_size({"width": size[0], "height": size[1]})
        await self.page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        await self.page.mouse.move(0, 0)  # else something looks as if it were chosen
        await self.page.wait_for_timeout(400)  # the page lays itself out anew, and tells no one when it is done
        return await self.page.screenshot(animations="disabled", caret="hide")


def save(file: Path, *shots: bytes) -> None:
    """Side by side, in 256 colors, a third of the size: the most frequent as they are, the others by their like."""
    picture = _side_by_side([Image.open(io.BytesIO(png)).convert("RGB") for png in shots])
    _in_few_colors(picture).save(file, optimize=True)


def _in_few_colors(picture: Image.Image) -> Image.Image:
    """Pillow alone would shift the plain areas: here the most frequent colors stay exactly what they are."""
    pixels = list(zip(*[iter(picture.tobytes())] * 3, strict=True))
    counted = Counter(pixels)
    other = picture.quantize(96, method=Image.Quantize.MAXCOVERAGE).getpalette() or []
    kept = [color for color, _ in counted.most_common(160)]
    kept += zip(*[iter(other)] * 3, strict=True)
    places = {color: _nearest(color, kept) for color in counted}
    reduced = Image.frombytes("P", picture.size, bytes(map(places.__getitem__, pixels)))
    reduced.putpalette([channel for color in kept for channel in color])
    return reduced


def _nearest(color: tuple[int, ...], kept: Sequence[tuple[int, ...]]) -> int:
    red, green, blue = color
    away = [(red - r) ** 2 + (green - g) ** 2 + (blue - b) ** 2 for r, g, b in kept]
    return away.index(min(away))


def _side_by_side(pictures: Sequence[Image.Image]) -> Image.Image:
    width = sum(picture.width + GAP for picture in pictures) - GAP
    sheet = Image.new("RGB", (width, pictures[0].height), PAPER)
    left = 0
    for picture in pictures:
        sheet.paste(picture, (left, 0))
        left += picture.width + GAP
    return sheet


@asynccontextmanager
async def open_browser() -> AsyncIterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("pictures: needs chromium: apt install chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def open_tab(browser: Browser, scene: Scene, name: str) -> AsyncIterator[Tab]:
    """The page of someone who is logged in."""
    context = await browser.new_context(
        viewport={"width": DESK[0], "height": DESK[1]}, device_scale_factor=2, timezone_id="UTC", locale="en-US"
    )
    await context.add_init_script(_NAMED % json.dumps(json.dumps(name)))
    await context.request.get(f"{scene.url}/login?token={TOKEN}", max_redirects=0)
    try:
        yield Tab(page=await context.new_page(), url=scene.url)
    finally:
        await context.close()
