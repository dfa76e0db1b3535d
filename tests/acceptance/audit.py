"""How tests look at the page as people do who use no mouse or no eyes: a walk by keys, and axe-core."""

from dataclasses import dataclass
from typing import Any

from axe_playwright_python.async_playwright import Axe
from browser import Tab
from playwright.async_api import Locator

MOST_STOPS = 80
"""No way through the page is longer."""

# What has the focus must be seen: in view, and marked.
SEEN = """() => {
  const node = document.activeElement;
  if (!node || node === document.body) return 'nothing';
  // The prompt is marked by the frame that it shares with its buttons.
  const style = getComputedStyle(node.id === 'prompt' ? node.closest('.composer') : node);
  const marked = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1 || style.boxShadow !== 'none';
  const box = node.getBoundingClientRect();
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth && box.height > 0;
  return marked && inside ? '' : `${marked ? 'out of view' : 'not marked'}: ${node.outerHTML.slice(0, 160)}`;
}"""


async def walk_to(tab: Tab, wanted: Locator, key: str = "Tab") -> None:
    """Press a key until the focus is there. Every stop on the way must be seen."""
    for _ in range(MOST_STOPS):
        if await is_focused(wanted):
            return
        await tab.page.keyboard.press(key)
        lost = await tab.page.evaluate(SEEN)
        assert lost in ("", "nothing"), lost
    raise AssertionError(f"the keyboard does not reach {wanted}")


async def is_focused(wanted: Locator) -> bool:
    if await wanted.count() == 0:
        return False
    return bool(await wanted.first.evaluate("(node) => node === document.activeElement"))


@dataclass(kw_only=True)
class Auditor:
    """Runs axe-core and collects what it finds, by view."""

    tab: Tab
    found: list[str]

    async def look(self, view: str) -> None:
        await self.audit(view)
        await self.tab.page.emulate_media(color_scheme="dark")
        # Of all rules only this one depends on colours.
        await self.audit(f"{view}, dark", runOnly=["color-contrast"])
        await self.tab.picture(f"{view.lower()}-{self.width}-dark")
        await self.tab.page.emulate_media(color_scheme="light")
        await self.tab.picture(f"{view.lower()}-{self.width}-light")

    @property
    def width(self) -> int:
        return (self.tab.page.viewport_size or {"width": 0})["width"]

    async def audit(self, view: str, **options: Any) -> None:
        results = await Axe().run(self.tab.page, options={"resultTypes": ["violations"], **options})
        for violation in results.response["violations"]:
            for node in violation["nodes"]:
                self.found.append(f"{view}: {violation['impact']} {violation['id']}: {node['html'][:160]}")
