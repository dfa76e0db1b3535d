"""The keys of the page: where the focus is, the palette, search, and all that is done with a message (F3)."""

import re

import pytest
from audit import Auditor, walk_to
from browser import MARKS, NARROW, WIDE, Tab, open_tab
from imported import imported, text, turn
from playwright.async_api import Browser, Locator, expect
from processes import Site
from sessions import SessionClient

from longboat.testing import Pause, Refuse, Say

pytestmark = MARKS
pytest_plugins = ("chromium",)

CLIPBOARD = ["clipboard-read", "clipboard-write"]


def palette(tab: Tab) -> Locator:
    return tab.page.get_by_role("dialog", name="Command palette")


async def from_palette(tab: Tab, words: str) -> None:
    """Press Ctrl+K, type, and take the first item."""
    await tab.page.keyboard.press("ControlOrMeta+k")
    await expect(palette(tab).get_by_role("combobox")).to_be_focused()
    await tab.page.keyboard.type(words)
    await tab.page.keyboard.press("Enter")
    await expect(palette(tab)).to_have_count(0)


async def talked(site: Site, name: str) -> SessionClient:
    code = "Try:\n\n```sh\nmake all\n```\n"
    turns = [turn(1, text("Prompt 1"), text("Answer 1")), turn(2, text("Prompt 2"), text(code))]
    return await imported(await site.session(site.project(name)), f"About {name}", turns)


async def test_the_focus_is_in_the_prompt_after_loading_and_choosing(chromium: Browser, site: Site) -> None:
    session = await talked(site, "focus")
    async with open_tab(chromium, site, session) as anna:
        await expect(anna.prompt).to_be_focused()
        await anna.button("New session").click()
        await expect(anna.title).to_have_text("New session")
        await expect(anna.prompt).to_be_focused()
        await anna.button("New session").click()
        await expect(anna.prompt, "also if there is one already").to_be_focused()
        await anna.page.locator("#nav").get_by_role("link", name="About focus").click()
        await expect(anna.title).to_have_text("About focus")
        await expect(anna.prompt).to_be_focused()


async def test_f3_a_session_is_one_tab_stop_and_its_menu_opens_with_an_arrow(chromium: Browser, site: Site) -> None:
    session = await talked(site, "stops")
    for _ in range(3):
        await session.http.post(f"{session.workspace}/sessions", json={})
    async with open_tab(chromium, site, session) as anna:
        rows = anna.page.locator(".session-list li")
        await expect(rows).to_have_count(5)
        stops = await rows.evaluate_all(
            "(rows) => rows.flatMap((row) => [...row.querySelectorAll('a, button')])"
            ".filter((node) => node.tabIndex >= 0).length"
        )
        assert stops == 1, "for the whole list"
        await walk_to(anna, rows.get_by_role("link", name="About stops"), "Shift+Tab")
        await anna.page.keyboard.press("ArrowRight")
        await expect(rows.get_by_role("menuitem", name="Rename…")).to_be_focused()
        await anna.page.keyboard.press("Escape")
        await expect(rows.get_by_role("menu")).to_be_hidden()


async def test_f3_escape_closes_what_is_open_and_then_stops_the_run(chromium: Browser, site: Site) -> None:
    gate = site.model.gate("escape")
    site.model.add([Say("Half of it"), Pause(gate)], name="escape")
    session = await site.session(site.project("escape"))
    async with open_tab(chromium, site, session) as anna:
        keys = anna.page.keyboard
        await anna.say("[[escape]]")
        await anna.sees("Half of it")
        await expect(anna.button("Stop")).to_contain_text("Esc")
        for opened, key in (
            (anna.page.get_by_role("searchbox", name="Search this session"), "ControlOrMeta+f"),
            (palette(anna), "ControlOrMeta+k"),
            (anna.page.get_by_role("dialog", name="Keys"), "?"),
            (anna.page.get_by_role("listbox", name="Suggestions"), "/"),
        ):
            await keys.press(key)
            await expect(opened).to_be_visible()
            await keys.press("Escape")
            await expect(opened).to_be_hidden()
            await expect(anna.prompt).to_be_focused()
        await keys.press("Backspace")
        assert (await session.ledger())[0]["cancel_requested"] is False
        await keys.press("Escape")
        await anna.idle()
        await expect(anna.transcript.locator(".finish:visible")).to_have_text("Canceled by you")


async def test_f3_all_keys_are_listed_and_a_question_mark_in_a_text_is_one(chromium: Browser, site: Site) -> None:
    session = await talked(site, "listed")
    async with open_tab(chromium, site, session) as anna:
        await expect(anna.prompt).to_be_focused()
        await anna.page.keyboard.type("why?")
        await expect(anna.prompt).to_have_value("why?")
        await anna.prompt.fill("")
        await anna.page.keyboard.press("?")
        dialog = anna.page.get_by_role("dialog", name="Keys")
        for words in ("Ctrl+K", "Open the command palette", "stop the run", "Fork the session from here"):
            await expect(dialog).to_contain_text(words)
        await anna.page.keyboard.press("Enter")
        await expect(dialog).to_have_count(0)
        await expect(anna.prompt).to_be_focused()


async def test_f3_the_keys_that_work_anywhere_work_in_the_stats(chromium: Browser, site: Site) -> None:
    session = await talked(site, "stats-keys")
    async with open_tab(chromium, site, session) as anna:
        keys = anna.page.keyboard
        await anna.page.goto(f"{anna.origin}/stats")
        await expect(anna.page.locator("#charts")).not_to_be_empty()
        await keys.press("?")
        dialog = anna.page.get_by_role("dialog", name="Keys")
        await expect(dialog).to_be_visible()
        auditor = Auditor(tab=anna, found=[])
        await auditor.look("stats keys")
        await keys.press("Escape")
        await expect(dialog).to_have_count(0)
        await keys.press("ControlOrMeta+k")
        await expect(palette(anna).get_by_role("option")).to_have_count(3)  # keys, sessions, theme
        await auditor.look("stats palette")
        assert auditor.found == []
        await keys.type("sessions")
        await keys.press("Enter")
        await expect(anna.page.locator("#charts")).to_have_count(0)
        await expect(anna.page.locator("#main")).to_be_visible()


async def test_f3_the_palette_finds_actions_sessions_and_commands(chromium: Browser, site: Site) -> None:
    session = await talked(site, "palette")
    await imported(session, "Quite another matter", [])
    async with open_tab(chromium, site, session) as anna:
        keys = anna.page.keyboard
        await from_palette(anna, "another matter")
        await expect(anna.title).to_have_text("Quite another matter")
        await from_palette(anna, "rename")
        await expect(anna.page.get_by_role("dialog").get_by_label("Title")).to_be_focused()
        await keys.press("Escape")
        await from_palette(anna, "/new")
        await expect(anna.title).to_have_text("New session")
        await from_palette(anna, "theme")
        await walk_to(anna, anna.page.get_by_role("menu").get_by_text("Dark", exact=True), "ArrowDown")
        await keys.press("Enter")
        await expect(anna.page.locator("html")).to_have_attribute("data-theme", "dark")
        await keys.press("i")
        await expect(anna.prompt).to_be_focused()
        await keys.press("ControlOrMeta+k")
        await keys.type("nothing is called this")
        await expect(palette(anna).get_by_role("status")).to_have_text("Nothing found.")
        await keys.press("Escape")
        await expect(anna.prompt).to_be_focused()


async def test_f3_messages_are_walked_copied_forked_and_edited_by_keys(chromium: Browser, site: Site) -> None:
    session = await talked(site, "walked")
    async with open_tab(chromium, site, session, permissions=CLIPBOARD) as anna:
        keys = anna.page.keyboard
        await anna.sees("make all")
        rows = anna.transcript.locator("article.message")
        await keys.press("Alt+ArrowUp")
        await expect(rows.nth(3)).to_be_focused()
        for key, place in (("k", 2), ("k", 1), ("k", 0), ("k", 0), ("j", 1)):
            await keys.press(key)
            await expect(rows.nth(place)).to_be_focused()
        await keys.press("c")
        await expect(anna.toasts).to_contain_text("Copied.")
        assert await anna.page.evaluate("navigator.clipboard.readText()") == "Answer 1"
        await keys.press("Enter")
        await expect(rows.nth(1).get_by_role("menuitem", name="Copy")).to_be_focused()
        await keys.press("Escape")
        await keys.press("j")
        await expect(rows.nth(2)).to_be_focused()
        await keys.press("e")
        await expect(anna.prompt).to_be_focused()
        await expect(anna.prompt).to_have_value("Prompt 2")


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
async def test_f3_a_whole_conversation_without_a_mouse(chromium: Browser, site: Site, size: tuple[int, int]) -> None:
    name = f"mouseless-{size[0]}"
    gate = site.model.gate(name)
    site.model.add(
        [Refuse(401, message="no such key")], [Say("Found the needle.")], [Say("More "), Pause(gate)], name=name
    )
    session = await site.session(site.project(name))
    async with open_tab(chromium, site, session, size=size, permissions=CLIPBOARD) as anna:
        keys = anna.page.keyboard
        await expect(anna.prompt).to_be_focused()
        await keys.type(f"[[{name}]] go")
        await keys.press("Enter")
        await expect(anna.button("Retry", within=anna.transcript)).to_be_visible()
        await keys.press("Alt+ArrowUp")
        await keys.press("r")
        await anna.sees("Found the needle.")
        await anna.idle()
        await keys.press("ControlOrMeta+f")
        await keys.type("needle")
        await expect(anna.page.locator(".finder [role=status]")).to_have_text("1 of 1")
        await keys.press("Escape")
        await from_palette(anna, "/copy")
        await expect(anna.toasts).to_contain_text("Copied the last answer.")
        await keys.type(f"[[{name}]] more")
        await keys.press("Enter")
        await anna.sees("More")
        await keys.press("Escape")
        await anna.idle()
        await expect(anna.transcript.locator(".finish:visible").last).to_have_text("Canceled by you")
        await keys.press("Alt+ArrowUp")
        await keys.press("f")
        await expect(anna.page).not_to_have_url(re.compile(session.session_id))
        await anna.sees("More")
        await expect(anna.prompt).to_be_focused()


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
async def test_f3_axe_finds_nothing_in_what_the_keys_open(chromium: Browser, site: Site, size: tuple[int, int]) -> None:
    session = await talked(site, f"audited-{size[0]}")
    async with open_tab(chromium, site, session, size=size) as anna:
        auditor = Auditor(tab=anna, found=[])
        keys = anna.page.keyboard
        await anna.sees("make all")
        await keys.press("ControlOrMeta+k")
        await expect(palette(anna).get_by_role("option", name="Command").first).to_be_visible()
        await auditor.look("palette")
        await keys.press("Escape")
        await keys.press("?")
        await auditor.look("keys")
        await keys.press("Escape")
        await keys.press("ControlOrMeta+f")
        await keys.type("make")
        await expect(anna.page.locator(".finder [role=status]")).to_have_text("1 of 1")
        await auditor.look("finder")
        await keys.press("Escape")
        await keys.press("Alt+ArrowUp")
        await keys.press("Enter")
        await expect(anna.transcript.get_by_role("menuitem", name="Copy")).to_be_focused()
        await auditor.look("message")
    assert auditor.found == []
