"""A session of 10,000 messages opens and scrolls like one of 100: the page holds a window of it (F3)."""

import asyncio
import re
from dataclasses import dataclass

from browser import MARKS, Tab, open_tab
from imported import imported, text, turn
from playwright.async_api import Browser, CDPSession, Route, expect
from processes import Site
from sessions import SessionClient

pytestmark = MARKS
pytest_plugins = ("chromium",)

SHORT, LONG = 100, 10_000
MOST_ROWS = 90
"""What the page promises to hold at once."""


def answer(number: int) -> str:
    return f"Answer {number} has **weight**.\n\n- one\n- two\n\n```python\nprint({number})\n```\n"


async def of_length(beside: SessionClient, messages: int) -> SessionClient:
    turns = (turn(n, text(f"Prompt {n}"), text(answer(n))) for n in range(1, messages // 2 + 1))
    return await imported(beside, f"{messages} messages", turns)


@dataclass(kw_only=True)
class Cost:
    """What a page has cost the browser since it was opened."""

    nodes: int
    layouts: int


async def cost(cdp: CDPSession) -> Cost:
    found = {one["name"]: one["value"] for one in (await cdp.send("Performance.getMetrics"))["metrics"]}
    return Cost(nodes=int(found["Nodes"]), layouts=int(found["LayoutCount"]))


def message(tab: Tab, said: str) -> object:
    return tab.transcript.get_by_text(said, exact=True)


async def opened_and_read(browser: Browser, site: Site, session: SessionClient, last: int) -> Cost:
    """Open a session at its end and scroll 40 turns up, which loads an older page."""
    async with open_tab(browser, site) as tab:
        cdp = await tab.page.context.new_cdp_session(tab.page)
        await cdp.send("Performance.enable")
        await tab.go(session)
        await tab.sees(f"Prompt {last}")
        await expect(tab.transcript.locator(".prose strong").last).to_be_visible()
        await scroll_up(tab, until=f"Prompt {last - 40}")
        assert await rows(tab) <= MOST_ROWS
        return await cost(cdp)


async def scroll_up(tab: Tab, *, until: str) -> None:
    """To the top, again and again, as older messages are put above."""
    await tab.page.wait_for_function(
        """(wanted) => {
          const scroller = document.querySelector('.scroller');
          if ([...scroller.querySelectorAll('.said')].some((row) => row.textContent === wanted)) return true;
          scroller.scrollTop = 0;
          return false;
        }""",
        arg=until,
    )


async def rows(tab: Tab) -> int:
    return await tab.page.locator(".transcript > .rows > .message").count()


async def test_f3_ten_thousand_messages_cost_at_most_twice_what_a_hundred_do(chromium: Browser, site: Site) -> None:
    first = await site.session(site.project("long", context_window=10_000_000))
    short, long = await of_length(first, SHORT), await of_length(first, LONG)
    await opened_and_read(chromium, site, short, SHORT // 2)  # fills the caches of server and browser
    little, much = [], []
    for _ in range(3):
        little.append(await opened_and_read(chromium, site, short, SHORT // 2))
        much.append(await opened_and_read(chromium, site, long, LONG // 2))
    # Of nodes, because they do not depend on the machine; `benchmarks/rows/page.py` compares the CPU time.
    assert min(one.nodes for one in much) <= 2 * min(one.nodes for one in little), (little, much)

    async with open_tab(chromium, site, long) as tab:
        await tab.sees(f"Prompt {LONG // 2}")
        await scroll_up(tab, until=f"Prompt {LONG // 2 - 400}")
        assert await rows(tab) <= MOST_ROWS
        await expect(tab.transcript).not_to_contain_text(f"Prompt {LONG // 2}")
        await tab.button("Jump to latest").click()
        await tab.sees(f"Prompt {LONG // 2}")
        assert await rows(tab) <= MOST_ROWS
        await tab.say("and one more")
        await tab.sees("echo: and one more")
        await tab.idle()
        await expect(tab.transcript.get_by_text("echo: and one more")).to_be_in_viewport()


async def test_f3_a_short_session_is_read_from_its_first_word_to_its_last(chromium: Browser, site: Site) -> None:
    session = await of_length(await site.session(site.project("short")), 250)
    async with open_tab(chromium, site, session) as tab:
        await tab.sees("Prompt 125")
        await scroll_up(tab, until="Prompt 1")
        await expect(tab.page.get_by_text("Scroll up for older messages")).to_be_hidden()
        # Who sent the older ones is asked for when they are shown.
        await expect(tab.page.locator(".transcript > .rows > .message .who").first).to_have_text("You")
        shown = [text for text in await tab.texts() if text.startswith("You: ")]
        assert shown
        assert shown == [f"You: Prompt {number}" for number in range(1, len(shown) + 1)]
        await tab.page.wait_for_function(
            """() => {
              const scroller = document.querySelector('.scroller');
              scroller.scrollTop = scroller.scrollHeight;
              return scroller.textContent.includes('Prompt 125');
            }"""
        )
        shown = [text for text in await tab.texts() if text.startswith("You: ")]
        assert shown
        assert shown == [f"You: Prompt {number}" for number in range(126 - len(shown), 126)]


# Scrolls up a little in every frame, and gives back by how many pixels more than that what is read has moved. That is
# the row that begins in the upper half of the view, else the one that fills it: its own Markdown may change it.
SCROLL_STEADILY = """async () => {
  const scroller = document.querySelector('.scroller');
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const isPlain = (row) => !row.querySelector('.prose strong');
  const readAfter = (wanted) => {
    const { top, height } = scroller.getBoundingClientRect();
    const begins = (row) => row.getBoundingClientRect().top + wanted - top;
    const rows = [...scroller.querySelectorAll('.message')];
    const at = rows.findIndex((row) => row.getBoundingClientRect().bottom + wanted > top);
    return rows[at + 1] && begins(rows[at]) < 0 && begins(rows[at + 1]) < height / 2 ? rows[at + 1] : rows[at];
  };
  let astray = 0;
  let still = 0; // frames since the last Markdown came: what it moved is put back before the next one is drawn
  for (let step = 0; still < 2; step += 1) {
    const wanted = step < 200 ? Math.min(60, scroller.scrollTop) : 0;
    const row = readAfter(wanted);
    const before = row.getBoundingClientRect().top;
    scroller.scrollTop -= wanted;
    await frame();
    astray += row.getBoundingClientRect().top - before - wanted;
    still = step < 200 || [...scroller.querySelectorAll('.message.assistant')].some(isPlain) ? 0 : still + 1;
  }
  return Math.abs(astray);
}"""


async def test_f3_what_is_read_does_not_jump_when_markdown_comes_above_it_while_scrolling(
    chromium: Browser, site: Site
) -> None:
    session = await of_length(await site.session(site.project("steady")), 400)
    async with open_tab(chromium, site, session) as tab:
        await expect(tab.transcript.locator(".prose strong").last).to_be_visible()
        assert await tab.page.evaluate(SCROLL_STEADILY) < 5


# A row that is still plain text begins above the view and ends in it; the row after it is what somebody reads.
STAND_BELOW_PLAIN = """async () => {
  const scroller = document.querySelector('.scroller');
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const isPlain = (row) => !row.querySelector('.prose strong');
  const plain = () => [...scroller.querySelectorAll('.message.assistant')].filter(isPlain);
  const distance = (row) => row.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
  while (!plain().some((row) => distance(row) > 50)) {
    scroller.scrollTop -= 100;
    await frame();
  }
  const late = plain().findLast((row) => distance(row) > 50);
  scroller.scrollTop += distance(late) + 10;
  await frame();
  window.__late = late;
  window.__read = late.nextElementSibling;
  window.__readAt = distance(window.__read);
}"""
MOVED_BY = """async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  while (!window.__late.querySelector('.prose strong')) await frame();
  await frame();
  const scroller = document.querySelector('.scroller');
  return window.__read.getBoundingClientRect().top - scroller.getBoundingClientRect().top - window.__readAt;
}"""


async def test_what_is_read_does_not_jump_when_the_row_above_it_gets_its_height_late(
    chromium: Browser, site: Site
) -> None:
    session = await of_length(await site.session(site.project("late")), 400)
    may_render = asyncio.Event()

    async def later(route: Route) -> None:
        await may_render.wait()
        await route.continue_()

    async with open_tab(chromium, site, session) as tab:
        await expect(tab.transcript.locator(".prose strong").last).to_be_visible()
        await tab.page.route("**/v1/render", later)
        await tab.page.evaluate(STAND_BELOW_PLAIN)
        may_render.set()
        assert abs(await tab.page.evaluate(MOVED_BY)) < 1


async def test_f3_older_messages_that_did_not_come_are_asked_for_again_without_another_scroll(
    chromium: Browser, site: Site
) -> None:
    """Who stands at the very top can scroll no further: nothing else would ask."""
    session = await of_length(await site.session(site.project("top")), 250)
    async with open_tab(chromium, site, session) as tab:
        await tab.sees("Prompt 125")
        asked = 0

        async def lose_two(route: Route) -> None:
            nonlocal asked
            asked += 1
            await (route.abort() if asked <= 2 else route.continue_())

        await tab.page.route(re.compile(r"/messages\?before=[^&]"), lose_two)
        while not asked:  # rows that are still growing may take the first scroll back to the end
            await tab.page.locator(".scroller").evaluate("box => box.scrollTo(0, 0)")
        await tab.sees("Prompt 90")
