"""Two browsers and a command line at one session: the same text, the same queue, the same end (F3, F6)."""

import re

import pytest
from browser import MARKS, NARROW, WIDE, Tab, call, open_tab
from playwright.async_api import Browser, expect
from processes import Site, ended
from sessions import SessionClient

from longboat.cli.options import own_name
from longboat.testing import Pause, Say

pytestmark = MARKS
pytest_plugins = ("chromium",)


async def test_f6_two_pages_and_a_command_see_the_same_text_before_the_run_ends(chromium: Browser, site: Site) -> None:
    gate = site.model.gate("stream")
    answer = [Say("**Bold** first words"), Pause(gate), Say(" and the last.\n\n- one\n- two")]
    site.model.add(answer, name="stream")
    directory = site.project("stream")
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await expect(anna.page.get_by_text(re.compile("Connected:.* anna, ben"))).to_be_attached()
        run = await site.longboat("run", "-s", session.session_id, "[[stream]] from the shell", cwd=directory)
        for tab in (anna, ben):
            await tab.sees("[[stream]] from the shell", "first words")
            await expect(tab.working).to_contain_text("Working")
            await expect(tab.transcript).not_to_contain_text("and the last")
        gate.open()
        done = await ended(run)
        assert done.code == 0
        assert "first words and the last." in done.out
        for tab in (anna, ben):
            await tab.idle()
            await expect(tab.transcript.locator(".prose strong")).to_have_text("Bold")
            await expect(tab.transcript.locator(".prose li")).to_have_text(["one", "two"])
        assert await anna.texts() == await ben.texts()
        await anna.picture("page-stream")


async def test_f3_a_steer_joins_the_running_turn_and_a_queued_prompt_gets_its_own(
    chromium: Browser, site: Site
) -> None:
    gate = site.model.gate("steer")
    site.model.add([Say("Working on it."), Pause(gate), call("ls")], [Say("Steered.")], name="steer")
    session = await site.session(site.project("steer"))
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await anna.say("[[steer]] go")
        await ben.sees("Working on it.")
        await ben.delivery("Queue")
        await ben.say("later, please")
        await expect(anna.queue).to_contain_text("later, please")
        await expect(anna.queue).to_contain_text("ben")
        await anna.delivery("Steer")
        await anna.say("[[steer]] and this now")
        await expect(ben.queue).to_contain_text("and this now")
        gate.open()
        for tab in (anna, ben):
            await tab.sees("Steered.", "echo: later, please")
            await tab.idle()
            await expect(tab.queue).to_be_hidden()
        hers, his = await anna.texts(), await ben.texts()
        for texts in (hers, his):  # how much of the call's output is unfolded is each reader's own affair
            assert texts.pop(1).startswith("m: Working on it.")
        answers = ["m: Steered.", "m: echo: later, please"]
        assert hers == [
            "You: [[steer]] go",
            "You: [[steer]] and this now",
            answers[0],
            "ben: later, please",
            answers[1],
        ]
        assert his == [
            "anna: [[steer]] go",
            "anna: [[steer]] and this now",
            answers[0],
            "You: later, please",
            answers[1],
        ]
    runs = await session.ledger()
    assert [run["folded_into"] is not None for run in runs] == [False, False, True]


async def test_f3_queued_prompts_are_edited_deleted_and_cleared_by_whoever_looks(chromium: Browser, site: Site) -> None:
    gate = site.model.gate("queue")
    site.model.add([Say("Busy."), Pause(gate)], name="queue")
    session = await site.session(site.project("queue"))
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await anna.say("[[queue]]")
        await ben.sees("Busy.")
        await anna.delivery("Queue")
        for text in ("first thought", "second thought", "third thought"):
            await anna.say(text)
            await expect(ben.queue.get_by_text(text)).to_be_visible()
        await edit(ben, "first thought", "first thought, better")
        await expect(anna.queue.get_by_text("first thought, better")).to_be_visible()
        second = ben.queue.get_by_role("listitem").filter(has_text="second thought")
        await ben.button("Delete", within=second).click()
        await expect(anna.queue.get_by_role("listitem")).to_have_count(2)
        await anna.picture("page-queue")
        third = anna.queue.get_by_role("listitem").filter(has_text="third thought")
        await anna.button("Steer now", within=third).click()
        await expect(ben.queue).to_contain_text("steers, goes first")
        await ben.button("Clear queue", within=ben.queue).click()
        await ben.button("Delete all", within=ben.page.get_by_role("dialog")).click()
        for tab in (anna, ben):
            await expect(tab.queue).to_be_hidden()
        gate.open()
        await anna.idle()
    assert [run["outcome"] for run in await session.ledger()] == ["end_turn", "canceled", "canceled", "canceled"]
    assert [run["prompt"] for run in await session.ledger()][1] == "first thought, better"


async def edit(tab: Tab, before: str, after: str) -> None:
    item = tab.queue.get_by_role("listitem").filter(has_text=before)
    await tab.button("Edit", within=item).click()
    field = tab.queue.get_by_role("textbox")
    await expect(field).to_be_focused()
    await field.fill(after)
    await field.press("Enter")


async def test_f6_a_run_is_canceled_from_the_other_page_and_from_the_command_line(
    chromium: Browser, site: Site
) -> None:
    site.model.add([Say("Half of it"), Pause(site.model.gate("never"))], name="cancel", repeat=True)
    directory = site.project("cancel")
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await anna.say("[[cancel]] one")
        await ben.sees("Half of it")
        await expect(ben.working).to_contain_text("for anna")
        await ben.button("Stop").click()
        for tab, told in ((anna, "Canceled by ben"), (ben, "Canceled by you")):
            await tab.idle()
            await expect(tab.transcript.locator(".finish:visible")).to_have_text([told])
        await anna.say("[[cancel]] two")
        await ben.sees("[[cancel]] two")
        await expect(anna.transcript.get_by_text("Half of it")).to_have_count(2)
        await ben.delivery("Queue")
        await ben.say("[[cancel]] three")
        await expect(anna.button("Stop all")).to_be_visible()
        assert (await ended(await site.longboat("cancel", "-s", session.session_id, cwd=directory))).code == 0
        for tab in (anna, ben):
            await tab.idle()
            await expect(tab.transcript.locator(".finish:visible").last).to_have_text(f"Canceled by {own_name()}")
    assert await outcomes(session) == ["canceled"] * 3


async def outcomes(session: SessionClient) -> list[str]:
    return [run["outcome"] for run in await session.ledger()]


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
async def test_f3_a_session_starts_from_nothing_at_any_width(
    chromium: Browser, site: Site, size: tuple[int, int]
) -> None:
    directory = site.project(f"fresh-{size[0]}")
    for other in ("one", "two"):  # where there is but one, the page opens that
        await site.session(site.project(f"{other}-{size[0]}"))
    async with open_tab(chromium, site, size=size) as anna:
        await anna.go()
        await anna.page.get_by_label("Open a directory").fill(str(directory))
        await anna.button("Open").click()
        await anna.live()
        await anna.say("hello there")
        await anna.sees("echo: hello there")
        await anna.idle()
        wider = await anna.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider == 0
        await anna.picture(f"page-{size[0]}")
