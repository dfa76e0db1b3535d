"""The page keeps still: what is read stays in its place, and what stands is not made again (F3, F6)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from browser import MARKS, Tab, Wire, call, once, open_tab, open_wire
from imported import imported, text, turn
from playwright.async_api import Browser, Request, Route, expect
from processes import Site
from sessions import SessionClient

from longboat.testing import Pause, Say

pytestmark = MARKS
pytest_plugins = ("chromium",)


@asynccontextmanager
async def forgetful(chromium: Browser, site: Site, session: SessionClient) -> AsyncIterator[tuple[Tab, Wire]]:
    """A page whose line can be cut, and that comes back without its cursor: it must read everything again."""

    async def forget(route: Route) -> None:
        headers = {name: value for name, value in route.request.headers.items() if name != "last-event-id"}
        await route.continue_(headers=headers)

    async with open_wire(site.port) as wire, open_tab(chromium, site, port=wire.port) as tab:
        await tab.page.route("**/events?*", forget)
        await tab.go(session)
        yield tab, wire


PLACE = """() => {
  const scroller = document.querySelector('.scroller');
  const top = scroller.getBoundingClientRect().top;
  const rows = [...document.querySelectorAll('.rows > .message')];
  const row = rows.find((row) => row.getBoundingClientRect().bottom > top);
  return [row.dataset.id, Math.round(row.getBoundingClientRect().top)];
}"""
UP = """async (times) => {
  const scroller = document.querySelector('.scroller');
  for (let time = 0; time < times; time += 1) {
    scroller.scrollTop = 400;
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
}"""
RENDERED = "() => [...document.querySelectorAll('.prose > .tail')].every((tail) => !tail.textContent)"


@pytest.mark.parametrize("pages", [1, 12], ids=["near the end", "far up"])
async def test_f6_who_reads_further_up_stays_there_when_everything_is_read_again(
    chromium: Browser, site: Site, pages: int
) -> None:
    answer = "Some **words** here.\n\n- one\n- two\n\n```python\nprint(1)\n```\n"
    turns = [turn(number, text(f"Prompt {number}"), text(answer)) for number in range(1, 301)]
    session = await imported(await site.session(site.project(f"still-{pages}")), "Still", turns)
    async with forgetful(chromium, site, session) as (tab, wire):
        await tab.sees("Prompt 300")
        await tab.page.evaluate(UP, pages)
        await tab.page.wait_for_function(RENDERED)
        row, top = await tab.page.evaluate(PLACE)
        await tab.page.evaluate("(id) => { document.querySelector(`[data-id='${id}']`).known = true }", row)
        await wire.cut()
        await expect(tab.connection).to_have_attribute("data-state", "waiting")
        for number in range(3):
            await session.outcome(await session.submit(f"meanwhile {number}"))
        async with tab.page.expect_response(lambda answer: "/messages?" in answer.url):
            await wire.mend()
        await tab.live()
        await tab.page.wait_for_function(RENDERED)
        after, now = await tab.page.evaluate(PLACE)
        assert (after, abs(now - top) <= 2) == (row, True), f"{top} became {now}"
        assert await tab.page.evaluate("(id) => document.querySelector(`[data-id='${id}']`).known", row)
        shown = [text for text in await tab.texts() if text.startswith("You: Prompt")]
        first = int(shown[0].rpartition(" ")[2])
        expected = [f"You: Prompt {number}" for number in range(first, first + len(shown))]
        assert shown == expected, "nothing is missing between"
        await tab.button("Jump to latest").click()
        await tab.sees("meanwhile 2")


async def test_f6_a_scroll_up_is_not_undone_by_what_changes_before_it_is_reported(
    chromium: Browser, site: Site
) -> None:
    """Browsers report a scroll with the next frame. The script scrolls, and changes what is below before that."""
    turns = [turn(number, text(f"Prompt {number}"), text("Some words.")) for number in range(1, 61)]
    session = await imported(await site.session(site.project("scroll")), "Scroll", turns)
    async with open_tab(chromium, site, session) as tab:
        await tab.sees("Prompt 60")
        await tab.page.wait_for_function(
            "() => { const { scrollTop, scrollHeight, clientHeight } = document.querySelector('.scroller');"
            " return scrollTop > 1000 && scrollHeight - scrollTop - clientHeight < 2 }"
        )
        await tab.prompt.fill("line\n" * 8)
        await tab.prompt.press_sequentially("more")
        await expect(tab.button("Jump to latest"), "a long prompt does not leave the end").to_be_hidden()
        left = await tab.page.evaluate(
            """async () => {
              const scroller = document.querySelector('.scroller');
              const reported = new Promise((done) => scroller.addEventListener('scroll', done, { once: true }));
              scroller.scrollTop -= 700;
              document.querySelector('.dock').title = 'changed';
              await reported;
              return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
            }"""
        )
        assert left > 600
        await expect(tab.button("Jump to latest")).to_be_visible()


async def test_f3_blocks_that_stand_are_left_alone_while_words_come_and_are_asked_for_together(
    chromium: Browser, site: Site
) -> None:
    gate = site.model.gate("blocks")
    many = [Say(f"Paragraph {number} of *them*.\n\n") for number in range(120)]
    site.model.add([Say("The **first** one.\n\n"), Say("Then"), Pause(gate), Say(" more.\n\n"), *many], name="blocks")
    session = await site.session(site.project("blocks"))
    asked: list[Request] = []
    async with open_tab(chromium, site, session) as tab:
        await tab.say("[[blocks]]")
        first = tab.transcript.locator(".prose .blocks > p").first
        await expect(first.locator("strong")).to_have_text("first")
        await first.evaluate("(node) => { node.known = true }")
        tab.page.on("request", lambda request: asked.append(request) if "/v1/render" in request.url else None)
        gate.open()
        await expect(tab.transcript.locator(".prose .blocks em")).to_have_count(120)
        await tab.idle()
        assert await first.evaluate("(node) => node.known"), "it is the node that was there"
        assert len(asked) < len(many), "several blocks in one request"


async def test_f3_a_block_that_is_long_grows_at_its_end_alone(chromium: Browser, site: Site) -> None:
    gate = site.model.gate("code")
    lines = [f"line_{number} = {number}\n" for number in range(400)]
    site.model.add(
        [Say("```python\n"), *map(Say, lines[:300]), Pause(gate), *map(Say, lines[300:]), Say("```\n")], name="code"
    )
    session = await site.session(site.project("code"))
    async with open_tab(chromium, site, session) as tab:
        await tab.say("[[code]]")
        await tab.sees("line_299 = 299")
        pieces = tab.transcript.locator(".prose > .tail > pre > div")
        assert await pieces.count() > 1
        await pieces.first.evaluate(
            "(node) => { window.touched = 0; new MutationObserver((all) => { window.touched += all.length; })"
            ".observe(node, { characterData: true, childList: true, subtree: true }); }"
        )
        held = "".join(lines[:300])
        assert (await tab.transcript.locator(".prose > .tail").evaluate("(node) => node.textContent")) == held
        gate.open()
        await tab.idle()
        await expect(tab.transcript.locator(".prose pre code")).to_contain_text("line_399 = 399")
        assert await tab.page.evaluate("window.touched") == 0


async def test_f6_what_happens_while_a_session_is_being_opened_is_in_it(chromium: Browser, site: Site) -> None:
    gate = site.model.gate("opening")
    steps = [Say("Before, "), Pause(gate), Say("between"), call("bash", command="exit 3")], [Say("and after.")]
    site.model.add(*steps, name="opening")
    session = await site.session(site.project("opening"))
    run_id = await session.submit("[[opening]]", approve="all")
    await gate.reached()

    async def hold(route: Route) -> None:
        """What was read is old when it arrives."""
        answer = await route.fetch()
        await expect(tab.working).to_be_visible()
        gate.open()
        await session.outcome(run_id)
        await expect(tab.working).to_be_hidden()
        await route.fulfill(response=answer)

    async with open_tab(chromium, site) as tab:
        await once(tab.page, "**/messages?*", hold)
        await tab.go(session)
        await tab.sees("Before, between", "and after.")
        await expect(tab.tools).to_have_attribute("data-status", "failed")
        assert len(await tab.texts()) == 3
        await expect(tab.connection).to_have_attribute("data-state", "live")


async def test_f3_the_transcript_follows_its_end_through_asks_output_and_failures(
    chromium: Browser, site: Site
) -> None:
    noisy = "for i in $(seq 60); do echo line $i; sleep 0.01; done; exit 3"
    words = "\n\n".join(f"Paragraph {number}." for number in range(12))
    site.model.add(
        [Say(words), call("bash", command=noisy)],
        [Say(words), call("question", text="Which?", choices=[f"choice {number}" for number in range(8)])],
        [Say(words), Say("\n\nThat was it.")],
        name="follow",
    )
    session = await site.session(site.project("follow"))
    async with open_tab(chromium, site, session) as tab:
        newest = tab.page.locator("button.newest")
        await tab.say("[[follow]]")
        await tab.button("Allow once").click()
        await tab.asks.get_by_label("choice 3").check()
        await expect(tab.tools.first).to_have_attribute("data-status", "failed")
        await expect(newest).to_be_hidden()
        await tab.button("Answer").click()
        await tab.sees("That was it.")
        await tab.idle()
        await expect(newest).to_be_hidden()
        await expect(tab.transcript.get_by_text("That was it.")).to_be_in_viewport()
        await tab.transcript.hover()
        await tab.page.mouse.wheel(0, -300)
        await expect(newest).to_be_visible()
        await tab.page.mouse.wheel(0, 900)
        await expect(newest).to_be_hidden()


@pytest.mark.parametrize("size", [(360, 740), (1280, 800)])
async def test_f3_the_end_is_followed_from_one_ask_to_the_next(
    chromium: Browser, site: Site, size: tuple[int, int]
) -> None:
    """The room above the asks changes twice before the browser tells of the scrolling that it did itself."""
    project = site.project(f"two asks {size[0]}")
    (project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    site.model.add(
        [Say("Let me look."), call("view", path="calc.py")],
        [call("edit", path="calc.py", old_text="a - b", new_text="a + b")],
        [call("bash", command="python3 -c 'from calc import add; print(add(2, 3))' && ls | head -2")],
        [Say("Fixed **it**.\n\n```python\ndef add(a, b):\n    return a + b\n```\n\nThat was it.")],
        name=f"asks{size[0]}",
    )
    turns = [turn(number, text(f"Prompt {number}"), text("Some words.")) for number in range(1, 31)]
    session = await imported(await site.session(project), "Two asks", turns)
    async with open_tab(chromium, site, session) as tab:
        await tab.page.set_viewport_size({"width": size[0], "height": size[1]})
        await tab.sees("Prompt 30")
        newest = tab.page.locator("button.newest")
        await tab.say(f"[[asks{size[0]}]]")
        await tab.asks.filter(has_text="calc.py").get_by_role("button", name="Allow once").click()
        await tab.asks.filter(has_text="head -2").get_by_role("button", name="Allow once").click()
        await tab.sees("That was it.")
        await tab.idle()
        await expect(newest).to_be_hidden()
        await expect(tab.transcript.get_by_text("That was it.")).to_be_in_viewport()
