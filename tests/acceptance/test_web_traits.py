"""The page draws a call as its traits say, whatever the name of the tool; and a call without traits like any (F3)."""

from secrets import token_hex
from typing import Any

import pytest
from browser import MARKS, Tab, open_tab
from imported import called, imported, text
from playwright.async_api import Browser, Locator, expect
from processes import Site

from longboat.wire.tools import Draw, Effect, Lists, ToolTraits

pytestmark = MARKS
pytest_plugins = ("chromium",)

CHANGED = "Stamped a.txt.\n\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n+DRAFT\n hello\n"


async def card(tab: Tab, site: Site, arguments: dict[str, Any], result: str, traits: ToolTraits | None) -> Locator:
    """A call of a tool that no page has ever heard of."""
    beside = await site.session(site.project(f"traits-{token_hex(4)}"))
    said, answer = called("c1", "stamp", arguments, result, traits)
    messages = [("user", text("go")), ("assistant", said), ("tool", answer), ("assistant", text("the end"))]
    made = await imported(beside, "traits", [{"run_id": "r1", "client_id": "x", "messages": messages}])
    await tab.go(made)
    await tab.sees("the end")
    return tab.tools.first


async def test_f3_a_change_is_drawn_as_a_diff_below_the_path_that_the_traits_name(
    chromium: Browser, site: Site
) -> None:
    traits = ToolTraits(effect=Effect.CHANGES, path="place", heading=("place",), draw=Draw.DIFF)
    async with open_tab(chromium, site) as tab:
        drawn = await card(tab, site, {"text": "DRAFT", "place": "a.txt"}, CHANGED, traits)
        await expect(drawn.locator(".tool-about")).to_have_text("a.txt")
        await expect(drawn.locator("table.diff")).to_contain_text("DRAFT")
        await expect(drawn.locator("dl.arguments")).to_have_count(0)


@pytest.mark.parametrize(
    ("traits", "heading"),
    [
        (None, "DRAFT"),
        (ToolTraits(), "DRAFT"),
        (ToolTraits(path="place", heading=("text", "place"), lists=Lists.NAMES, draw=Draw.QUIET), "DRAFT in a.txt"),
        (ToolTraits(heading=("place", "text")), "a.txt"),
    ],
)
async def test_f3_the_heading_is_what_the_traits_name_and_a_guess_without_them(
    chromium: Browser, site: Site, traits: ToolTraits | None, heading: str
) -> None:
    async with open_tab(chromium, site) as tab:
        drawn = await card(tab, site, {"text": "DRAFT", "place": "a.txt"}, CHANGED, traits)
        await expect(drawn.locator(".tool-about")).to_have_text(heading)
        await expect(drawn.locator("dl.arguments dt")).to_have_text(["text", "place"])
        await expect(drawn.locator("table.diff")).to_have_count(0)
        await expect(drawn.locator("pre.output")).to_contain_text("+DRAFT")


async def test_f3_a_command_and_a_plan_are_drawn_by_their_traits(chromium: Browser, site: Site) -> None:
    async with open_tab(chromium, site) as tab:
        traits = ToolTraits(effect=Effect.RUNS, command="line", heading=("line",), draw=Draw.COMMAND)
        drawn = await card(tab, site, {"line": "make all"}, "ok\n[exit code 0 after 1 s]", traits)
        await expect(drawn.locator("pre.command")).to_have_text("make all")
        items = [{"text": "a", "state": "completed"}, {"text": "b", "state": "pending"}]
        drawn = await card(tab, site, {"items": items}, "ok", ToolTraits(draw=Draw.PLAN))
        await expect(drawn.locator(".tool-about")).to_have_text("1 of 2 done")
