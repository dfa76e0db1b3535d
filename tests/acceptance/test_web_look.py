"""What the page shows where there is little to show, much, or the wrong thing (F3)."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from browser import MARKS, NARROW, WIDE, Tab, call, new_session, open_tab, open_wire
from imported import called, imported, text, turn
from playwright.async_api import Browser, Route, expect
from processes import Site, ended
from sessions import SessionClient

from longboat.models.local.process import runtime_installed

pytestmark = MARKS
pytest_plugins = ("chromium",)

MIDDLE = (768, 1000)
LONG_WORD = "AbstractSingletonProxyFactoryBean" * 8
MARKDOWN = f"""# Found

{LONG_WORD}

| service | region | owner | last deployed | note |
|---|---|---|---|---|
| payments-gateway-of-the-accounting-department | eu-central-1 | team-ledger | 2026-11-02T10:11:12Z | {"wide " * 30} |

```python
def totals(rows, {", ".join(f"argument_{number}=None" for number in range(20))}):
    return {{}}
```
"""


# The first visit, and links


@pytest.mark.shows_secrets("server token", reason="the link to the page carries it: that is what it is for")
async def test_f3_the_link_of_longboat_web_brings_a_name_and_says_so(chromium: Browser, site: Site) -> None:
    directory = site.project("first-visit")
    shown = await ended(await site.longboat("web", "--no-open", cwd=directory))
    assert shown.code == 0, shown.err
    link = shown.out.strip()
    (page,) = parse_qs(urlsplit(link).query)["to"]
    (brought,) = parse_qs(page.partition("?")[2])["name"]
    assert ":" not in brought, "a person, not a window (faces 20)"
    async with open_tab(chromium, site, name="", logged_in=False) as tab:
        await tab.page.goto(link)
        await tab.live()
        dialog = tab.page.get_by_role("dialog")
        await expect(dialog).to_have_count(0)
        await expect(tab.page.locator("#me")).to_have_text(brought)
        await expect(tab.page.locator("#workspace")).to_have_text("first-visit")
        assert tab.page.url.endswith(page.partition("?")[0]), "what is passed on names nobody"
        await expect(tab.toasts).to_contain_text(f"Others see you as {brought}.")
        await tab.button("Change name", within=tab.toasts).click()
        await dialog.get_by_label("Your name").fill("vera")
        await dialog.get_by_label("Your name").press("Enter")
        await expect(tab.page.locator("#me")).to_have_text("vera")
        await tab.page.goto(link)
        await tab.live()
        await expect(tab.page.locator("#me"), "one that was chosen stays").to_have_text("vera")
        await expect(tab.toasts).to_be_empty()


@pytest.mark.parametrize("name", ["", "%3Cimg%20src=x%20onerror=window.__pwned=1%3E", "a%00b", "."])
async def test_a_name_in_a_link_is_cleaned_or_asked_for(chromium: Browser, site: Site, name: str) -> None:
    session = await site.session(site.project("named"))
    async with open_tab(chromium, site, name="") as tab:
        await tab.page.goto(f"{address(tab, session)}?name={name}")
        asks = tab.page.get_by_role("dialog", name="Choose a name")
        await expect(asks.or_(tab.toasts.get_by_text("Others see you as"))).to_be_visible()
        assert re.fullmatch(r"[A-Za-z0-9._-]+", await tab.page.locator("#me").inner_text())
        assert "name=" not in tab.page.url


async def test_f3_the_first_visit_shows_the_workspace_behind_the_question_for_a_name(
    chromium: Browser, site: Site
) -> None:
    session = await imported(
        await site.session(site.project("behind")), "Behind", [turn(1, text("Prompt 1"), text("Answer 1"))]
    )
    async with open_tab(chromium, site, name="") as tab:
        await tab.page.goto(address(tab, session))
        dialog = tab.page.get_by_role("dialog")
        await expect(dialog).to_be_visible()
        assert (await dialog.inner_text()).split() == [*FIRST.split(), "Continue"], "and nothing besides"
        await tab.sees("Answer 1")
        await expect(dialog).to_be_visible()
        await dialog.get_by_label("Your name").fill("vera")
        await dialog.get_by_role("button", name="Continue").click()
        await expect(tab.page.locator("#me")).to_have_text("vera")
        await tab.live()
        await tab.sees("Answer 1")
        await expect(tab.prompt).to_be_focused()
        listed = tab.page.locator(".clients li").filter(has_text="guest-")
        await expect(listed, "nobody else is left behind").to_have_count(0)


FIRST = "Choose a name Other people see this name next to what you do. It is stored in this browser. Your name"


async def test_f3_a_link_to_a_session_asks_for_the_name_and_then_opens_it(chromium: Browser, site: Site) -> None:
    session = await imported(
        await site.session(site.project("deep")), "Deep", [turn(1, text("Prompt 1"), text("Answer 1"))]
    )
    async with open_tab(chromium, site, name="") as tab:
        await tab.page.goto(address(tab, session))
        await tab.page.get_by_role("button", name="Continue").click()
        await tab.sees("Answer 1")
        await expect(tab.title).to_have_text("Deep")
        await expect(tab.page.get_by_role("dialog")).to_have_count(0)


def address(tab: Tab, session: SessionClient, session_id: str = "") -> str:
    return f"{tab.origin}/#/{session.workspace.rpartition('/')[2]}/{session_id or session.session_id}"


async def test_f3_links_that_lead_nowhere_say_so_and_what_to_do(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("known"))
    async with open_tab(chromium, site) as tab:
        main = tab.page.locator("#main")
        for wrong in ("%E0%A4%A", "nonesuch", "nonesuch/neither"):
            await tab.page.goto(f"{tab.origin}/#/{wrong}")
            await expect(main).to_contain_text("The workspace in this link is not on this server")
            await expect(main.get_by_role("link", name="known")).to_be_visible()
        await tab.page.goto(address(tab, session, "nonesuch"))
        await expect(main.get_by_role("heading", name="Session not found")).to_be_visible()
        await expect(tab.title).to_have_text("Not found")
        await expect(tab.prompt).to_be_hidden()
        await main.get_by_role("link", name="Start a new session").click()
        await expect(main.get_by_role("heading", name="What should Longboat do?")).to_be_visible()
        await expect(tab.prompt).to_be_visible()


# Where there is nothing yet


async def test_f3_a_new_session_says_who_answers_and_how_to_begin(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("empty"))
    async with open_tab(chromium, site) as tab:
        await tab.page.goto(address(tab, session).rpartition("/")[0])
        main = tab.page.locator("#main")
        await expect(main).to_contain_text("Model: mine/m (128K context).")
        await main.get_by_role("button", name="Plan a new project").click()
        await expect(tab.prompt).to_be_focused()
        await expect(tab.prompt).to_have_value(
            "I want to start a new project here. Ask me what it should do, then plan it."
        )
        await tab.page.goto(f"{tab.origin}/stats")
        await tab.page.locator("#place").select_option(label="empty")
        await expect(tab.page.locator("#charts")).to_contain_text("No runs in this period")


async def test_f3_without_a_model_the_page_says_what_is_missing_until_it_is_there(
    chromium: Browser, site: Site
) -> None:
    directory = site.project("no-model", providers={}, models={"large": "anthropic/claude-sonnet-4-5"})
    session = await site.session(directory)
    async with open_tab(chromium, site) as tab:
        await tab.page.goto(address(tab, session).rpartition("/")[0])
        await tab.live()
        problem = tab.page.locator("#main .problem")
        await expect(problem).to_contain_text("No model available")
        await expect(problem).to_contain_text("ANTHROPIC_API_KEY")
        await expect(tab.toasts).to_be_empty()
        await tab.page.route("**/models", answered({"items": [], "large": "mine/m", "small": None, "problem": None}))
        await tab.button("Check again").click()
        await expect(problem).to_have_count(0)
        await expect(tab.page.locator("#main")).to_contain_text("Model: mine/m")
        await tab.page.unroute("**/models")


@pytest.mark.skipif(not runtime_installed(), reason="run: pip install 'longboat[local]'")
async def test_a6_where_nothing_is_configured_the_page_says_what_the_local_model_is_good_for(
    chromium: Browser, site: Site
) -> None:
    directory = site.project("nothing-configured", providers={}, models={"detect": False})
    session = await site.session(directory)
    async with open_tab(chromium, site) as tab:
        await tab.page.goto(address(tab, session).rpartition("/")[0])
        await tab.live()
        told = tab.page.locator("#main .problem")
        await expect(told).to_contain_text("Using local/smollm2-135m")
        await expect(told).to_contain_text("No provider is configured")
        await expect(told).to_contain_text("can chat but cannot code")
        await expect(told).to_contain_text("longboat connect")
        await tab.page.route("**/models", answered({"items": [], "large": "mine/m", "small": None, "problem": None}))
        await tab.button("Check again").click()
        await expect(told).to_have_count(0)
        await tab.page.unroute("**/models")


def answered(body: dict[str, Any]) -> Callable[[Route], Any]:
    return lambda route: route.fulfill(json=body)


# Where there is much


async def crowded(site: Site, name: str) -> SessionClient:
    """Everything that is wide, and a permission for a long command that waits."""
    first = await new_session(site, site.project(name))
    said, result = called("c1", "bash", {"command": "x " * 300}, "y" * 400)
    diff = "Edited.\n--- a/f.py\n+++ b/f.py\n@@ -1,2 +1,2 @@\n-" + "old " * 80 + "\n+" + "new " * 80
    edit, edited = called("c2", "edit", {"path": f"{LONG_WORD}/f.py", "old_text": "a", "new_text": "b"}, diff)
    messages = [
        ("user", text(LONG_WORD)),
        ("assistant", said),
        ("tool", result),
        ("assistant", edit),
        ("tool", edited),
        ("assistant", text(MARKDOWN)),
    ]
    session = await imported(
        first, f"A title {LONG_WORD}", [{"run_id": "r1", "client_id": "anna", "messages": messages}]
    )
    command = "find . -name '*.pyc' -delete && " + " && ".join(f"ssh host{n} systemctl restart it" for n in range(12))
    site.model.add([call("bash", command=command)], name=name)
    await session.submit(f"[[{name}]]", client_id="a-client-with-a-rather-long-name-indeed")
    await session.submit("wait " * 60, delivery="queue")
    return session


@pytest.mark.parametrize("size", [NARROW, MIDDLE, WIDE], ids=["360", "768", "1600"])
async def test_f3_nothing_wide_makes_the_page_wider_and_an_ask_can_be_answered(
    chromium: Browser, site: Site, size: tuple[int, int]
) -> None:
    session = await crowded(site, f"wide-{size[0]}")
    async with open_tab(chromium, site, session, size=size) as tab:
        await expect(tab.transcript.locator(".prose table")).to_be_visible()
        await expect(tab.asks).to_be_visible()
        for name in ("Allow once", "Deny", "Send"):
            await expect(tab.button(name)).to_be_in_viewport(ratio=1)
        assert await too_wide(tab) == []
        cells = tab.transcript.locator(".prose td").first
        assert await cells.evaluate("(cell) => cell.clientHeight < 200"), "words of a table are not cut into letters"
        await session.cancel()


# What reaches out of the page; what lies in a box that scrolls is where it should be.
TOO_WIDE = """() => [...document.querySelectorAll('body *')].filter((node) => {
  if (node.closest('.drawer, .hidden, .skip')) return false;
  for (let at = node; at !== document.body; at = at.parentElement)
    if (at !== node && getComputedStyle(at).overflowX !== 'visible') return false;
  const box = node.getBoundingClientRect();
  return box.width > 0 && box.right > innerWidth + 1;
}).map((node) => node.outerHTML.slice(0, 120))"""


async def too_wide(tab: Tab) -> list[str]:
    wide: list[str] = await tab.page.evaluate(TOO_WIDE)
    return wide


async def test_f3_a_phone_without_a_line_says_so_and_keeps_its_buttons(chromium: Browser, site: Site) -> None:
    session = await imported(
        await site.session(site.project("no-line")), "No line", [turn(1, text("Prompt"), text("**Answer**"))]
    )
    async with open_wire(site.port) as wire, open_tab(chromium, site, session, size=NARROW, port=wire.port) as tab:
        await tab.sees("Answer")
        await wire.cut()
        await expect(tab.connection).to_contain_text("Offline")
        await expect(tab.page.locator("#toggle-aside")).to_be_in_viewport(ratio=1)
        assert await too_wide(tab) == []


async def test_f3_markdown_that_could_not_be_asked_for_comes_when_the_line_is_back(
    chromium: Browser, site: Site
) -> None:
    session = await imported(
        await site.session(site.project("later")), "Later", [turn(1, text("Prompt"), text("It is **bold**."))]
    )
    async with open_tab(chromium, site) as tab:
        await tab.page.route("**/v1/render", lambda route: route.abort())
        await tab.go(session)
        await tab.sees("It is **bold**.")
        await tab.page.unroute("**/v1/render")
        await expect(tab.transcript.locator(".prose strong")).to_have_text("bold")


# Numbers


async def test_f3_the_charts_of_the_stats_have_words_and_numbers(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("counted"))
    await session.outcome(await session.submit("count this"))
    async with open_tab(chromium, site, size=NARROW) as tab:
        await tab.page.goto(f"{tab.origin}/stats")
        await tab.page.locator("#place").select_option(label="counted")
        charts = ("Tokens by day", "Cost by day", "Runs by outcome and day", "Run time by day", "Latency of runs")
        for name in charts:
            chart = tab.page.get_by_role("img", name=name)
            await expect(chart).to_be_visible()
            await expect(chart.locator("desc")).to_have_text(re.compile(".{6}"))
            await expect(tab.page.get_by_role("table", name=name, include_hidden=True)).to_be_attached()
        runs = tab.page.get_by_role("img", name="Runs by outcome and day")
        numbers = runs.locator("text.tick").filter(has_text=re.compile(r"^\d+$"))
        await expect(numbers).to_have_text(["0", "1", "2"])  # not those of all workspaces, which were shown before
        assert await too_wide(tab) == []


async def test_there_is_one_clock_of_24_hours(chromium: Browser, site: Site) -> None:
    session = await imported(
        await site.session(site.project("clock")), "Clock", [turn(1, text("What time?"), text("Late."))]
    )
    async with open_tab(chromium, site, session, locale="en-US", timezone_id="America/New_York") as anna:
        time = anna.transcript.locator("time").first
        await expect(time).to_have_attribute("title", "Jan 1, 2026, 22:04:05")  # not 10:04:05 PM
