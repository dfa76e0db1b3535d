"""“Plan first” in the page: its switch, where it shows, and the plan that people approve or not (ADR 0048)."""

from typing import Any

from audit import Auditor
from browser import MARKS, NARROW, WIDE, Tab, call, open_tab
from playwright.async_api import Browser, Locator, expect
from processes import Site
from sessions import SessionClient

from longboat.testing import Pause, Refuse, Say

pytestmark = MARKS
pytest_plugins = ("chromium",)

SUMMARY = "A **greeting** is missing.\n\nIt goes into `hello.txt`."
PLAN = call("propose_plan", summary=SUMMARY, items=["Write hello.txt", "Check *it*"])
WRITE = call("write", path="hello.txt", content="hello\n")


def switch(tab: Tab) -> Locator:
    return tab.page.get_by_role("checkbox", name="Plan first")


def shown(tab: Tab) -> Locator:
    """The line at the prompt."""
    return tab.page.locator(".planning")


async def plans(session: SessionClient) -> dict[str, bool]:
    return {run["prompt"]: run["plan"] for run in await session.ledger()}


def sent_back(site: Site) -> str:
    """The result of the last tool call, as the model got it."""
    result: Any = site.model.requests[-1].body["messages"][-1]["content"]
    return str(result)


async def test_it_is_switched_by_mouse_key_command_and_palette_and_stays_on(chromium: Browser, site: Site) -> None:
    for name in ("one", "two", "three"):
        site.model.add([Say(f"{name.title()}.")], name=f"plan-{name}")
    session = await site.session(site.project("plan-switch"))
    async with open_tab(chromium, site, session) as anna:
        keys = anna.page.keyboard
        await expect(shown(anna)).to_be_hidden()
        await switch(anna).check()
        await expect(shown(anna)).to_contain_text("Plan first: the agent changes nothing until you approve its plan.")
        await anna.say("[[plan-one]]")
        await anna.sees("One.")
        await anna.idle()
        await anna.page.reload()
        await anna.live()
        await expect(switch(anna), "also after a reload").to_be_checked()
        await anna.say("[[plan-two]]")
        await anna.sees("Two.")
        await anna.idle()
        await anna.prompt.press("Alt+p")
        await expect(switch(anna)).not_to_be_checked()
        await expect(shown(anna)).to_be_hidden()
        await expect(anna.prompt).to_be_focused()
        await anna.say("[[plan-three]]")
        await anna.sees("Three.")
        await anna.idle()
        await anna.say("/plan")
        await expect(switch(anna)).to_be_checked()
        await expect(anna.page.locator("#polite")).to_have_text("Plan first is on.")
        await keys.press("ControlOrMeta+k")
        await keys.type("plan first off")
        await expect(anna.page.get_by_role("option", name="Plan first: turn off")).to_contain_text("Alt+P")
        await keys.press("Enter")
        await expect(switch(anna)).not_to_be_checked()
        await anna.prompt.press_sequentially("/pla")
        await expect(anna.page.get_by_role("option", name="/plan")).to_contain_text("Turn “Plan first” on or off")
    assert await plans(session) == {"[[plan-one]]": True, "[[plan-two]]": True, "[[plan-three]]": False}


async def test_shift_tab_still_moves_the_focus(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("plan-tab"))
    async with open_tab(chromium, site, session) as anna:
        await expect(anna.prompt).to_be_focused()
        await anna.page.keyboard.press("Shift+Tab")
        await expect(anna.prompt).not_to_be_focused()
        await expect(switch(anna)).not_to_be_checked()


async def test_a_plan_is_markdown_and_a_list_and_go_ahead_lets_the_agent_work(chromium: Browser, site: Site) -> None:
    site.model.add([PLAN], [WRITE], [Say("Greeted.")], name="plan-go")
    directory = site.project("plan-go", permissions={"allow": ["write"]})
    session = await site.session(directory)
    async with open_tab(chromium, site, session, size=WIDE) as anna:
        auditor = Auditor(tab=anna, found=[])
        await switch(anna).check()
        await anna.say("[[plan-go]]")
        await expect(anna.asks.get_by_role("heading")).to_have_text("Go ahead with this plan?")
        await expect(anna.asks.locator(".prose strong")).to_have_text("greeting")
        await expect(anna.asks.locator(".prose ol li")).to_have_text(["Write hello.txt", "Check it"])
        await auditor.look("plan")
        assert auditor.found == []
        assert not (directory / "hello.txt").exists()
        await anna.asks.get_by_role("radio", name="Go ahead").check()
        await anna.button("Answer", within=anna.asks).click()
        await anna.sees("Greeted.")
        await expect(anna.tools.locator(".tool-said").first).to_have_text("approved by you")
        await expect(anna.page.locator("#aside .todos li")).to_have_count(2)
    assert (directory / "hello.txt").read_text() == "hello\n"


async def test_a_plan_is_declined_by_key_and_changed_by_words(chromium: Browser, site: Site) -> None:
    better = call("propose_plan", summary="In French.", items=["Write bonjour.txt"])
    site.model.add([PLAN], [better], [Say("It waits.")], name="plan-no")
    directory = site.project("plan-no")
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna:
        await switch(anna).check()
        await anna.say("[[plan-no]]")
        await expect(anna.asks).to_contain_text("Check it")
        await anna.asks.get_by_label("Or type your own answer").fill("In French, please.")
        await anna.button("Answer", within=anna.asks).click()
        await expect(anna.asks).to_contain_text("bonjour.txt")
        assert sent_back(site).endswith("They say:\nIn French, please.")
        await expect(anna.asks.locator(".choice").nth(1)).to_contain_text("Not yet")
        await expect(anna.page.locator(".answering .effect")).to_contain_text("Press 1–2 to choose")
        await anna.asks.get_by_role("radio", name="Not yet").check()
        await anna.button("Answer", within=anna.asks).click()
        await anna.sees("It waits.")
        await expect(anna.tools.locator(".tool-said")).to_have_text(["not approved by you"] * 2)
        await anna.tools.first.locator("summary").click()
        await expect(anna.tools.first.locator(".prose strong")).to_have_text("greeting")
        await expect(anna.tools.first.locator("pre.output")).to_contain_text("In French, please.")
    assert sent_back(site).startswith("The plan is not approved yet")
    assert not (directory / "hello.txt").exists()


async def test_a_waiting_prompt_says_that_it_plans_first_and_cannot_steer(chromium: Browser, site: Site) -> None:
    gate = site.model.gate("plan-queue")
    site.model.add([Say("Busy."), Pause(gate)], [Say("Idle.")], name="plan-queue")
    site.model.add([Say("Planned.")], name="plan-later")
    session = await site.session(site.project("plan-queue"))
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[plan-queue]]")
        await anna.sees("Busy.")
        steer = anna.page.get_by_role("radio", name="Steer")
        await expect(steer).to_be_visible()
        await switch(anna).check()
        await expect(steer, "it is a turn of its own").to_be_hidden()
        await anna.say("[[plan-later]]")
        await expect(anna.queue.locator("li")).to_contain_text("plan first")
        await expect(anna.button("Steer now", within=anna.queue)).to_have_count(0)
        await switch(anna).uncheck()
        await expect(steer).to_be_visible()
        gate.open()
        await anna.sees("Planned.")
    assert await plans(session) == {"[[plan-queue]]": False, "[[plan-later]]": True}


async def test_a_run_that_planned_first_does_so_again_when_it_is_retried(chromium: Browser, site: Site) -> None:
    site.model.add([Refuse(400, message="No.")], [Say("Now.")], name="plan-retry")
    session = await site.session(site.project("plan-retry"))
    async with open_tab(chromium, site, session) as anna:
        await switch(anna).check()
        await anna.say("[[plan-retry]]")
        await expect(anna.transcript.locator(".finish[data-reason=error]")).to_be_visible()
        await switch(anna).uncheck()
        await anna.button("Retry").click()
        await anna.sees("Now.")
        await anna.idle()
        prompt = anna.transcript.locator(".message.user").last
        await prompt.hover()
        await anna.button("Message actions", within=prompt).click()
        await prompt.get_by_role("menuitem", name="Edit and resend").click()
        await expect(switch(anna)).to_be_checked()
    assert [run["plan"] for run in await session.ledger()] == [True, True]


async def test_on_a_phone_it_is_in_the_row_of_options(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("plan-phone"))
    async with open_tab(chromium, site, session, size=NARROW, has_touch=True, is_mobile=True) as anna:
        row = anna.page.locator(".choices > :visible")
        await expect(switch(anna)).to_be_visible()
        boxes = await row.evaluate_all("(nodes) => nodes.map((node) => node.getBoundingClientRect())")
        assert max(box["right"] for box in boxes) <= NARROW[0], boxes
        assert len({round(box["y"] + box["height"] / 2) for box in boxes}) == 1, boxes
        await switch(anna).check()
        await expect(shown(anna)).to_be_visible()
        await anna.picture("page-plan-phone")
        await expect(anna.page.locator("kbd:visible")).to_have_count(0)
