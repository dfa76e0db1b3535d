"""Numbers on the page that a person can believe: the timeline, costs, marks of what failed (the faces' review)."""

import re
from typing import Any

from browser import MARKS, Tab, call, open_tab
from imported import called, imported, text, turn
from playwright.async_api import Browser, expect
from processes import Site
from sessions import SessionClient

from longboat.testing import Pause, Refuse, Say, Use

pytestmark = MARKS
pytest_plugins = ("chromium",)

DAY = "2026-01-02T03:04:"


def lasting(seconds: float, prompt: str, **more: Any) -> dict[str, Any]:
    """The row of a run that was queued for a second and then took so long."""
    return {
        "prompt": prompt,
        "accepted_at": f"{DAY}00.000Z",
        "started_at": f"{DAY}01.000Z",
        "finished_at": f"{DAY}{1 + seconds:06.3f}Z",
        **more,
    }


async def with_times(site: Site, name: str) -> SessionClient:
    """Two runs: nine seconds, six of them waiting for a person and one in the tool; and one second."""
    beside = await site.session(site.project(name))
    said, (result,) = called("c1", "bash", {"command": "make"}, "made")
    times = {"name": "bash", "began_at": f"{DAY}02.000Z", "waited_s": 6.0, "ran_s": 1.0}
    slow = [
        ("user", text("slow")),
        ("assistant", said),
        ("tool", [result | times]),
        ("assistant", text("Made.")),
    ]
    long = "A prompt that is much too long for the place that it has beside the time"
    first = {"run_id": "r1", "client_id": "anna", "messages": slow, "run": lasting(9, long, waited_s=6.0)}
    second = {
        **turn(2, text("quick"), text("Yes.")),
        "run": lasting(1, "quick", outcome="canceled", canceled_by="ben:tui-1"),
    }
    return await imported(beside, "Timed", [first, second])


async def bars(tab: Tab, row: int) -> dict[str, tuple[float, float]]:
    """The spans of a run, left and right, in parts of the axis."""
    script = """(group) => [...group.querySelectorAll('rect')].map((bar) => {
        const [x, width] = ['x', 'width'].map((name) => Number(bar.getAttribute(name)));
        return [bar.classList[1], (x - 1) / 298, (x - 1 + width) / 298];
    })"""
    found = await tab.page.locator(".timeline g.run").nth(row).evaluate(script)
    return {kind: (round(left, 3), round(right, 3)) for kind, left, right in found}


async def test_the_timeline_has_one_scale_on_which_waiting_is_not_the_tools(chromium: Browser, site: Site) -> None:
    """Finding 11."""
    async with open_tab(chromium, site, await with_times(site, "timed"), size=(1440, 900)) as tab:
        await expect(tab.page.locator(".timeline g.run")).to_have_count(2)
        await expect(tab.page.locator(".timeline rect.tool")).to_have_count(1)
        assert await bars(tab, 0) == {
            "waiting": (0.0, 0.1),
            "working": (0.1, 1.0),
            "asking": (0.2, 0.8),
            "tool": (0.8, 0.9),
        }
        assert await bars(tab, 1) == {"waiting": (0.0, 0.1), "working": (0.1, 0.2)}, "on the same axis"
        ticks = await tab.page.locator(".timeline svg > text.tick").all_text_contents()
        assert ticks == ["0", "5 s", "10 s"]
        legend = tab.page.locator(".timeline .legend li")
        await expect(legend).to_have_text(["queued", "model", "tools", "waiting for you"])
        described = await tab.page.locator(".timeline svg > desc").text_content() or ""
        assert "queued 1.0 s, model 2.0 s, tools 1.0 s (1 call), waiting for you 6.0 s, done." in described
        assert "canceled." in described


async def test_a_run_that_failed_at_once_is_a_short_bar(chromium: Browser, site: Site) -> None:
    """It was stretched over the whole width, with an axis of milliseconds."""
    session = await site.session(site.project("at-once", providers={}, models={"large": "anthropic/claude-sonnet-4-5"}))
    async with open_tab(chromium, site, session) as anna:
        await anna.say("hello")
        timeline = anna.page.locator(".timeline")
        await expect(timeline.locator(".run .tick")).to_contain_text("failed")
        ends = timeline.locator("svg > .tick")
        await expect(ends.first).to_have_text("0")
        await expect(ends.last).to_have_text(re.compile(" s$"))


async def test_labels_of_the_timeline_touch_neither_bars_nor_each_other(chromium: Browser, site: Site) -> None:
    """Finding 11."""
    touching = """(svg) => {
      const boxes = [...svg.querySelectorAll('text, rect')].map((node) => [node, node.getBBox()]);
      const apart = (a, b) =>
        a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
      return boxes.flatMap(([one, a], index) => boxes.slice(index + 1)
        .filter(([other, b]) => (one.tagName === 'text' || other.tagName === 'text') && !apart(a, b))
        .map(([other]) => `${one.textContent || one.classList} / ${other.textContent || other.classList}`));
    }"""
    async with open_tab(chromium, site, await with_times(site, "apart"), size=(1440, 900)) as tab:
        await expect(tab.page.locator(".timeline rect.tool")).to_have_count(1)
        assert await tab.page.locator(".timeline svg").evaluate(touching) == []


async def test_the_numbers_of_the_timeline_fit_beside_the_session(chromium: Browser, site: Site) -> None:
    for width in (1440, 320):
        async with open_tab(chromium, site, await with_times(site, f"fits-{width}"), size=(width, 900)) as tab:
            if width == 320:
                await tab.page.get_by_role("button", name="Details").click()
            numbers = tab.page.locator(".timeline details")
            await numbers.get_by_text("Show as table").click()
            await expect(numbers.get_by_role("columnheader", name="Outcome")).to_be_visible()
            await expect(numbers.get_by_role("cell")).to_have_text(
                ["1.0 s", "2.0 s", "1.0 s", "6.0 s", "done", "1.0 s", "1.0 s", "–", "–", "canceled"]
            )
            cut = """(node) => [...node.querySelectorAll('th, td')].filter((cell) =>
                cell.getBoundingClientRect().right > node.closest('.timeline').getBoundingClientRect().right + 0.5
                || cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"""
            assert await numbers.evaluate(cut) == []


async def test_the_card_of_a_call_says_how_long_it_ran_and_how_long_it_waited(chromium: Browser, site: Site) -> None:
    async with open_tab(chromium, site, await with_times(site, "cards")) as tab:
        await expect(tab.tools.locator(".tool-time")).to_have_text("1.0 s, waited 6.0 s for an answer")


async def test_the_tools_stay_in_the_timeline_after_an_undo(chromium: Browser, site: Site) -> None:
    site.model.add([call("ls")], [Say("Seen.")], name="undone")
    session = await site.session(site.project("undone"))
    await session.outcome(await session.submit("[[undone]]", "r-undone"))
    undo = await session.http.post(f"{session.workspace}/sessions/{session.session_id}/undo")
    assert undo.is_success, undo.text
    async with open_tab(chromium, site, session) as tab:
        await expect(tab.page.locator(".timeline g.run title")).to_contain_text("(1 call)")


async def test_while_nobody_answers_the_timeline_grows_as_waiting(chromium: Browser, site: Site) -> None:
    site.model.add([call("bash", command="mkdir here")], [Say("Made.")], name="asks-first")
    session = await site.session(site.project("asks-first"))
    async with open_tab(chromium, site, session) as tab:
        await tab.say("[[asks-first]]")
        await expect(tab.asks).to_have_count(1)
        await expect(tab.page.locator(".timeline rect.asking")).to_have_count(1)
        await session.http.post(f"{session.workspace}/cancel", json={})


async def test_an_unknown_cost_is_unknown_and_a_part_of_it_is_at_least(chromium: Browser, site: Site) -> None:
    """Finding 10."""
    # As many as the tools need: from fewer, Longboat concludes that the server leaves the tools out, and tries steps.
    site.model.add([Say("One."), Use(input_tokens=9_900, output_tokens=100)], name="unpriced")
    site.model.add([Say("Two."), Use(input_tokens=10, cost=0.25)], name="priced")
    session = await site.session(site.project("costs"))
    async with open_tab(chromium, site, session) as tab:
        facts, cost = tab.page.locator(".facts"), tab.page.locator(".usage .figures dd").nth(2)
        await tab.say("[[unpriced]]")
        await tab.sees("One.")
        await tab.idle()
        await expect(facts).to_have_text("10K tokens · cost unknown")
        await expect(cost).to_have_text("unknown")
        await tab.say("[[priced]]")
        await tab.sees("Two.")
        await tab.idle()
        await expect(facts).to_have_text("10K tokens · ≥ $0.25")
        await expect(cost).to_have_text("≥ $0.25")
        await expect(tab.page.locator(".usage")).to_contain_text("10K tokens have no known price.")
        await tab.page.goto(f"{tab.origin}/stats")
        await tab.page.locator("#place").select_option(label="costs")
        await expect(tab.page.locator("#figures")).to_contain_text("Cost≥ $0.2510K tokens without a known price")


async def test_a_session_whose_last_turn_failed_is_marked_until_one_succeeds(chromium: Browser, site: Site) -> None:
    """Finding 13."""
    site.model.add([Refuse(status=400, message="no such model")], [Say("Better.")], name="fails")
    session = await site.session(site.project("fails"))
    async with open_tab(chromium, site, session) as tab:
        mark = tab.page.get_by_role("navigation", name="Sessions").get_by_role("img", name="failed")
        await tab.say("[[fails]]")
        await expect(mark).to_have_count(1)
        await expect(mark).to_be_visible()
        box = await mark.bounding_box()
        assert box is not None
        assert box["width"] >= 6, "it is there to be seen"
        await tab.page.reload()
        await expect(mark).to_have_count(1)
        await tab.say("[[fails]] again")
        await tab.sees("Better.")
        await expect(mark).to_have_count(0)


async def test_a_canceled_turn_says_who_canceled_it(chromium: Browser, site: Site) -> None:
    """Finding 13."""
    gate = site.model.gate("stopped")
    site.model.add([Say("So far"), Pause(gate)], [Say("Again"), Pause(gate)], name="stopped")
    session = await site.session(site.project("stopped"))
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben:web") as ben:
        await anna.say("[[stopped]]")
        await anna.sees("So far")
        await anna.button("Stop").click()
        await expect(anna.transcript.locator(".finish:visible")).to_have_text("Canceled by you")
        await expect(ben.transcript.locator(".finish:visible")).to_have_text("Canceled by anna")


async def test_an_answered_question_shows_the_answer(chromium: Browser, site: Site) -> None:
    """Finding 14."""
    site.model.add(
        [call("question", text="Which rounding?", choices=["up", "half-even"])], [Say("So be it.")], name="q"
    )
    session = await site.session(site.project("question"))
    async with open_tab(chromium, site, session) as tab:
        await tab.say("[[q]]")
        await tab.asks.get_by_label("half-even").check()
        await tab.asks.get_by_role("button", name="Answer").click()
        await tab.sees("So be it.")
        await expect(tab.tools.locator(".tool-said")).to_have_text("answered by you: “half-even”")


async def test_a_steering_prompt_stands_first_and_runs_first_after_a_stop(chromium: Browser, site: Site) -> None:
    """L10: before those that were queued for later, although they came first."""
    gate = site.model.gate("steered")
    site.model.add([Say("Working"), Pause(gate)], name="long")
    for name in ("one", "two", "turn"):
        site.model.add([Say(f"Did {name}.")], name=name)
    session = await site.session(site.project("steered"))
    async with open_tab(chromium, site, session) as tab:
        await tab.say("[[long]]")
        await tab.sees("Working")
        await tab.delivery("Queue")
        for count, name in enumerate(("one", "two"), 1):
            await tab.say(f"[[{name}]]")
            await expect(tab.queue.get_by_role("listitem")).to_have_count(count)
        await tab.delivery("Steer")
        await tab.say("[[turn]]")
        await expect(tab.queue.locator(".queued-text")).to_have_text(["[[turn]]", "[[one]]", "[[two]]"])
        await tab.button("Stop").click()
        await tab.sees("Did two.")
        await tab.idle()
        said = [line for line in await tab.texts() if "Did" in line]
        assert [line.split("Did ")[1] for line in said] == ["turn.", "one.", "two."]


async def test_no_word_of_summarizing_stands_below_the_failure(chromium: Browser, site: Site) -> None:
    full = Refuse(status=400, message="context length exceeded", code="context_length_exceeded")
    site.model.add([Say("Begun.")], [full], [full], [full], name="overflows")
    session = await site.session(site.project("overflows"))
    async with open_tab(chromium, site, session) as tab:
        await tab.say("[[overflows]]")
        await tab.sees("Begun.")
        await tab.idle()
        await tab.say("[[overflows]] more")
        await expect(tab.transcript.locator('.finish[data-reason="error"]:visible')).to_have_count(1)
        await tab.idle()
        await expect(tab.transcript.locator(".notice.summarizing")).to_have_count(0)


async def test_the_stats_have_sub_agents_under_their_session_and_no_hole(chromium: Browser, site: Site) -> None:
    site.model.add([call("agent", prompt="[[scouts]] port")], [Say("Seen.")], name="sends")
    site.model.add([Say("Clear."), Use(input_tokens=10, cost=0.5)], name="scouts")
    session = await site.session(site.project("families"))
    await session.outcome(await session.submit("[[sends]]", "r-sends"))
    async with open_tab(chromium, site, session, size=(1440, 900)) as tab:
        await tab.page.goto(f"{tab.origin}/stats")
        await tab.page.locator("#place").select_option(label="families")
        rows = tab.page.locator(".listing tbody tr td:first-child")
        await expect(rows).to_have_text(["[[sends]] with 1 sub-agent", "↳ [[scouts]] port"])
        hole = """(charts) => {
          const room = charts.getBoundingClientRect();
          const rights = new Map();
          for (const card of charts.children) {
            const box = card.getBoundingClientRect();
            rights.set(Math.round(box.top), Math.max(rights.get(Math.round(box.top)) ?? 0, Math.round(box.right)));
          }
          return [...rights.values()].filter((right) => Math.abs(right - room.right) > 2).length;
        }"""
        assert await tab.page.locator("#charts").evaluate(hole) == 0
        for name in ("Tool time", "Latency"):
            await expect(tab.page.locator("figure").filter(has_text=name).first).to_contain_text("max")
        beyond = """(charts) => {
          const right = (node) => node.getBoundingClientRect().right;
          const labels = [...charts.querySelectorAll('svg text')];
          return labels.filter((label) => right(label) > right(label.closest('figure'))).map((it) => it.textContent);
        }"""
        assert await tab.page.locator("#charts").evaluate(beyond) == []


async def test_the_choice_of_models_has_prices_and_leaves_out_what_is_not_ready(chromium: Browser, site: Site) -> None:
    session = await site.session(
        site.project("choice", entry={"price": {"input": 3, "output": 15}, "effort": "medium"})
    )
    async with open_tab(chromium, site, session) as tab:
        options = tab.page.get_by_label("Model").locator("option")
        await expect(options.filter(has_text="context · $3 in, $15 out per M")).to_have_count(1)
        await expect(options.last).to_contain_text("not ready: /connect adds a provider")
        await expect(options.filter(has_text="anthropic")).to_have_count(0)
        await expect(tab.page.get_by_label("Effort").locator("option").first).to_contain_text("(medium)")
