"""The list of sessions, the search, the switcher, the panels and the people of the page (F3, faces 8, 19, 20)."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from browser import MARKS, NARROW, WIDE, Tab, call, open_tab
from imported import called, imported, text, turn
from playwright.async_api import Browser, Locator, expect
from processes import Site
from sessions import SessionClient
from test_web_access import Auditor, walk_to

from longboat.testing import Say

pytestmark = MARKS
pytest_plugins = ("chromium",)


def listed(tab: Tab) -> Locator:
    return tab.page.locator(".session-list .session-title")


def groups(tab: Tab) -> Locator:
    return tab.page.locator(".session-list h3")


def results(tab: Tab) -> Locator:
    return tab.page.get_by_role("region", name="In messages")


async def act(tab: Tab, title: str, action: str) -> None:
    """An action of a session's menu in the list."""
    row = tab.page.locator(".session-list li").filter(has_text=title)
    await row.hover()
    await row.get_by_role("button", name=f"Actions for {title}").click()
    await row.get_by_role("menuitem", name=action, exact=True).click()


async def titled(site: Site, directory_name: str, *titles: str) -> SessionClient:
    """Sessions with these titles; the last one is given back."""
    beside = await site.session(site.project(directory_name))
    await beside.http.delete(f"{beside.workspace}/sessions/{beside.session_id}")
    for number, title in enumerate(titles):
        made = await imported(beside, title, [turn(1, text(f"Prompt of {title}"), text(f"Answer {number} to {title}"))])
    return made


# Search


async def test_f3_what_was_said_is_found_and_opens_at_its_message(chromium: Browser, site: Site) -> None:
    beside = await site.session(site.project("said"))
    turns = [turn(number, text(f"Prompt {number}"), text(f"Answer {number}")) for number in range(150)]
    turns[3] = turn(3, text("Where is the Träumerei?"), text("Under the keel."))
    far = await imported(beside, "Long ago", turns)
    elsewhere = await imported(
        await site.session(site.project("said-elsewhere")), "Elsewhere", [turn(1, text("traumerei too"), text("Yes."))]
    )
    async with open_tab(chromium, site, beside) as tab:
        await tab.page.get_by_role("searchbox", name="Search sessions").fill("traumer")
        hits = results(tab).get_by_role("link")
        await expect(hits).to_have_count(2)
        await expect(hits.first).to_contain_text("Elsewhere")
        await expect(hits.first).to_contain_text("said-elsewhere")
        await expect(hits.nth(1)).to_contain_text("Prompt: Where is the Träumerei?")
        await expect(hits.nth(1).locator("mark")).to_have_text(["Träumerei"])
        await expect(tab.page.get_by_text("No matching sessions.")).to_be_visible()
        await tab.picture("search")
        await hits.nth(1).click()
        await expect(tab.title).to_have_text("Long ago")
        row = tab.page.locator(".message").filter(has_text="Where is the Träumerei?")
        await expect(row).to_be_in_viewport()
        await expect(row).to_be_focused()
        assert tab.page.url.partition("#")[2].startswith(f"/{far.workspace.rpartition('/')[2]}/{far.session_id}/")
        await tab.page.reload()
        await expect(row, "a link to a message works by itself").to_be_in_viewport()
        await tab.page.get_by_role("searchbox", name="Search sessions").fill("traumer")
        await hits.first.click()
        await expect(tab.title).to_have_text("Elsewhere")
        await tab.live()
        assert elsewhere.workspace.rpartition("/")[2] in tab.page.url


async def test_a_hit_in_the_text_of_a_question_opens_at_it(chromium: Browser, site: Site) -> None:
    beside = await site.session(site.project("asked-once"))
    asking, answered = called("c1", "question", {"text": "Which lighthouse keeper?", "choices": ["Ida", "Joe"]}, "Ida")
    rows = [("user", text("Ask me")), ("assistant", [*text("Tall words.\n\n" * 60), *asking]), ("tool", answered)]
    await imported(
        beside, "Keepers", [{"run_id": "r1", "client_id": "anna", "prompt": text("Ask me"), "messages": rows}]
    )
    async with open_tab(chromium, site, beside) as tab:
        await tab.page.get_by_role("searchbox", name="Search sessions").fill("lighthouse")
        await results(tab).get_by_role("link").click()
        await expect(tab.title).to_have_text("Keepers")
        await expect(tab.transcript.locator("p.said")).to_be_in_viewport()


async def test_f3_a_search_without_a_hit_and_one_for_nothing(chromium: Browser, site: Site) -> None:
    session = await titled(site, "no-hit", "Boat")
    async with open_tab(chromium, site, session) as tab:
        search = tab.page.get_by_role("searchbox", name="Search sessions")
        for typed in ("nowhere-to-be-found", '"""', "* AND ("):
            await search.fill(typed)
            await expect(results(tab)).to_contain_text("No matching messages.")
        await search.fill("")
        await expect(results(tab)).to_be_hidden()
        await expect(listed(tab)).to_have_text(["Boat"])
        gone = f"{tab.origin}/#/{session.workspace.rpartition('/')[2]}/{session.session_id}/no-such-message"
        await tab.page.goto(gone)
        await expect(tab.toasts).to_contain_text("no longer in the session")


# Pin, archive, days


async def test_f3_sessions_are_pinned_and_archived_for_everybody(chromium: Browser, site: Site) -> None:
    session = await titled(site, "pins", "One", "Two", "Three")
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await expect(listed(anna)).to_have_text(["Three", "Two", "One"])
        await expect(groups(anna)).to_have_text(["Today"])
        await act(anna, "One", "Pin")
        for tab in (anna, ben):
            await expect(groups(tab)).to_have_text(["Pinned", "Today"])
            await expect(listed(tab)).to_have_text(["One", "Three", "Two"])
        await act(anna, "Two", "Archive")
        for tab in (anna, ben):
            await expect(listed(tab)).to_have_text(["One", "Three"])
        await anna.page.reload()
        await anna.live()
        await expect(listed(anna)).to_have_text(["One", "Three"])
        await anna.button("Archived sessions").click()
        await expect(listed(anna)).to_have_text(["Two"])
        await act(anna, "Two", "Unarchive")
        await expect(anna.page.get_by_text("No archived sessions.")).to_be_visible()
        await anna.button("Back to all sessions").click()
        for tab in (anna, ben):
            await expect(listed(tab)).to_have_text(["One", "Three", "Two"])
        await act(ben, "One", "Unpin")
        await expect(groups(anna)).to_have_text(["Today"])


async def test_f3_a_prompt_brings_an_archived_session_back(chromium: Browser, site: Site) -> None:
    session = await titled(site, "comes-back", "Boat")
    async with open_tab(chromium, site, session) as tab:
        await act(tab, "Boat", "Archive")
        await expect(listed(tab)).to_have_count(0)
        await tab.say("Still there?")
        await tab.sees("echo: Still there?")
        await expect(listed(tab)).to_have_text(["Boat"])


@pytest.mark.parametrize(
    ("days", "heading"), [(0, "Today"), (1, "Yesterday"), (3, r"\w+day"), (20, r"\w+ \d+"), (800, r"\w+ \d+, \d{4}")]
)
async def test_f3_sessions_are_grouped_by_day(chromium: Browser, site: Site, days: int, heading: str) -> None:
    session = await titled(site, f"days-{days}", "Boat")
    async with open_tab(chromium, site, session, locale="en-US", timezone_id="UTC") as tab:
        noon = datetime.now(UTC).replace(hour=12) + timedelta(days=days)
        await tab.page.clock.set_fixed_time(noon)
        await tab.page.reload()
        await expect(groups(tab)).to_have_text([re.compile(f"^{heading}$")])
        await expect(tab.page.locator(".session-list time").first).to_have_text(re.compile(r"^\d\d:\d\d$"))


async def test_f3_the_title_gets_the_width_of_its_row(chromium: Browser, site: Site) -> None:
    """faces 19: titles were cut at 22 characters while the time took a third of the row."""
    session = await titled(site, "row", "A title of thirty characters..", "Other")
    async with open_tab(chromium, site, session, locale="en-US") as tab:
        title = listed(tab).filter(has_text="thirty")
        assert await title.evaluate("(node) => node.scrollWidth <= node.clientWidth"), "nothing of it is cut"


async def test_f3_every_item_of_a_menu_can_be_seen_wherever_it_opens(chromium: Browser, site: Site) -> None:
    session = await titled(site, "low", *(f"Session {number:02}" for number in range(20)))
    async with open_tab(chromium, site, session, size=(1280, 620)) as tab:
        row = tab.page.locator(".session-list li").filter(has_text="Session 04")
        await row.hover()
        await row.get_by_role("button", name="Actions for").click()
        for name in ("Rename…", "Delete…"):
            await expect(row.get_by_role("menuitem", name=name)).to_be_in_viewport(ratio=1)
        await tab.page.keyboard.press("Escape")
        await tab.page.set_viewport_size({"width": NARROW[0], "height": 500})
        await tab.page.get_by_role("button", name="Session", exact=True).click()
        menu = tab.page.locator(".session-bar").get_by_role("menu")
        await expect(menu).to_be_in_viewport(ratio=1)
        await menu.get_by_role("menuitem").last.scroll_into_view_if_needed()
        await expect(menu.get_by_role("menuitem", name="Delete…")).to_be_in_viewport(ratio=1)


async def test_f3_the_link_of_a_session_is_copied(chromium: Browser, site: Site) -> None:
    session = await titled(site, "links", "Boat")
    granted = ["clipboard-read", "clipboard-write"]
    async with open_tab(chromium, site, session, permissions=granted) as tab:
        await act(tab, "Boat", "Copy link")
        await expect(tab.toasts).to_contain_text("Link copied")
        link = await tab.page.evaluate("navigator.clipboard.readText()")
        assert link == f"{tab.origin}/#/{session.workspace.rpartition('/')[2]}/{session.session_id}"
        await tab.page.evaluate("() => void (navigator.clipboard.writeText = () => Promise.reject(new Error('no')))")
        await act(tab, "Boat", "Copy link")
        await expect(tab.page.get_by_role("dialog").get_by_label("Link")).to_have_value(link)


async def test_f3_redo_is_offered_only_if_something_was_undone(chromium: Browser, site: Site) -> None:
    """faces: "Redo always enabled"."""
    session = await site.session(site.project("redo"))
    async with open_tab(chromium, site, session) as tab:
        await tab.say("hello")
        await tab.sees("echo: hello")
        await tab.idle()
        redo = tab.page.get_by_role("menuitem", name="Redo")
        await tab.button("Session").click()
        await expect(redo).to_be_disabled()
        await tab.page.get_by_role("menuitem", name="Undo the last turn").click()
        await expect(tab.transcript).not_to_contain_text("echo: hello")
        await tab.button("Session").click()
        await expect(redo).to_be_enabled()
        await redo.click()
        await tab.sees("echo: hello")


# Workspaces


async def test_f3_workspaces_are_switched_in_the_top_bar(chromium: Browser, site: Site) -> None:
    here = await titled(site, "switch-here", "Here")
    there = await titled(site, "switch-there", "There")
    assert await there.outcome(await there.submit("hello", client_id="ben")) == "end_turn"
    async with open_tab(chromium, site, here) as tab:
        switch = tab.page.locator("#workspace")
        await expect(switch).to_have_text("switch-here")
        await walk_to(tab, switch)
        await tab.page.keyboard.press("Enter")
        choices = tab.page.get_by_role("menuitemradio")
        await expect(choices.filter(has_text="switch-here")).to_have_attribute("aria-checked", "true")
        await expect(choices.first).to_contain_text("switch-there")
        await tab.picture("switcher")
        await walk_to(tab, choices.filter(has_text="switch-there"), "ArrowDown")
        await tab.page.keyboard.press("Enter")
        await expect(switch).to_have_text("switch-there")
        await expect(listed(tab)).to_have_text(["There"])
        await switch.click()
        await tab.page.get_by_role("menuitem", name="All workspaces…").click()
        await expect(tab.page.get_by_role("heading", name="Choose a workspace")).to_be_visible()
        await expect(tab.page.locator(".workspace-list a").first).to_contain_text("switch-there")


async def test_f3_a_workspace_in_which_something_waits_is_marked(chromium: Browser, site: Site) -> None:
    here = await titled(site, "waits-here", "Here")
    there = await site.session(site.project("waits-there"))
    site.model.add([call("bash", command="touch x")], [Say("Made.")], name="waits")
    async with there.watch() as watch:
        run = await there.submit("[[waits]] Make it.", client_id="ben")
        await watch.until(lambda event: event.type == "permission_request")
    async with open_tab(chromium, site, here) as tab:
        await tab.page.locator("#workspace").click()
        row = tab.page.get_by_role("menuitemradio").filter(has_text="waits-there")
        await expect(row.get_by_role("img", name="1 answer needed")).to_be_visible()
        await tab.page.get_by_role("menuitem", name="All workspaces…").click()
        await expect(tab.page.locator(".workspace-list a").filter(has_text="waits-there")).to_contain_text(
            "1 answer needed"
        )
    await there.cancel_run(run)


# Panels and theme


PANELS = (("nav", "Width of sessions", "ArrowRight"), ("aside", "Width of details", "ArrowLeft"))


async def test_f3_panels_fold_and_resize_by_keyboard_and_the_browser_remembers(chromium: Browser, site: Site) -> None:
    session = await titled(site, "panels", "Boat")
    async with open_tab(chromium, site, session, size=WIDE) as tab:
        for panel, label, wider in (
            ("nav", "Width of sessions", "ArrowRight"),
            ("aside", "Width of details", "ArrowLeft"),
        ):
            part = tab.page.locator(f"#{panel}")
            before = await width(part)
            edge = tab.page.get_by_role("separator", name=label)
            await walk_to(tab, edge)
            await tab.page.keyboard.press(wider)
            await tab.page.keyboard.press(wider)
            assert await width(part) == before + 32
            await expect(edge).to_have_attribute("aria-valuenow", str(round(before + 32)))
            await tab.page.keyboard.press("End")
            await tab.page.keyboard.press(wider)
            assert await width(part) == float(await edge.get_attribute("aria-valuemax") or 0)
            await tab.page.keyboard.press("Home")
            assert await width(part) == float(await edge.get_attribute("aria-valuemin") or 0)
            await tab.page.reload()
            await tab.live()
            assert await width(part) == float(await edge.get_attribute("aria-valuemin") or 0)
            await walk_to(tab, edge)
            await tab.page.keyboard.press("Enter")
            await expect(part).to_be_hidden()
            fold = tab.page.locator(f"#fold-{panel}")
            await expect(fold, "the focus is not lost with the edge").to_be_focused()
            await expect(fold).to_have_attribute("aria-expanded", "false")
            await tab.page.reload()
            await expect(part).to_be_hidden()
            await fold.click()
            await expect(part).to_be_visible()
            await edge.dblclick()
            assert await width(part) == before


async def test_f3_a_panel_is_resized_by_dragging_its_edge(chromium: Browser, site: Site) -> None:
    session = await titled(site, "drag", "Boat")
    async with open_tab(chromium, site, session, size=WIDE) as tab:
        part = tab.page.locator("#nav")
        before = await width(part)
        await tab.page.mouse.move(before, 400)
        await tab.page.mouse.down()
        await tab.page.mouse.move(before + 60, 400, steps=4)
        await tab.page.mouse.up()
        assert abs(await width(part) - before - 60) <= 1
        await tab.page.mouse.move(before + 200, 400)
        assert abs(await width(part) - before - 60) <= 1


async def test_f3_folded_panels_are_drawers_on_a_phone(chromium: Browser, site: Site) -> None:
    session = await titled(site, "phone", "Boat")
    async with open_tab(chromium, site, session, size=WIDE) as tab:
        for panel in ("nav", "aside"):
            await tab.page.locator(f"#fold-{panel}").click()
            await expect(tab.page.locator(f"#{panel}")).to_be_hidden()
        await tab.page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        for name, panel in (("Sessions", "nav"), ("Details", "aside")):
            await tab.page.get_by_role("banner").get_by_role("button", name=name, exact=True).click()
            await expect(tab.page.locator(f"#{panel}")).to_be_in_viewport()
            await tab.page.keyboard.press("Escape")


async def width(part: Locator) -> float:
    box = await part.bounding_box()
    assert box is not None
    return box["width"]


async def test_f3_the_theme_of_the_system_can_be_chosen_again(chromium: Browser, site: Site) -> None:
    """faces: "Theme system after a choice: cannot be chosen again"."""
    session = await titled(site, "theme", "Boat")
    async with open_tab(chromium, site, session, color_scheme="dark") as tab:
        root = tab.page.locator("html")
        button = tab.page.locator("#theme")
        await expect(button).to_have_attribute("aria-label", "Theme: system")
        for theme in ("Light", "Dark"):
            await button.click()
            await tab.page.get_by_role("menuitemradio", name=theme).click()
            await expect(root).to_have_attribute("data-theme", theme.lower())
        await button.click()
        await expect(tab.page.get_by_role("menuitemradio", name="Dark")).to_have_attribute("aria-checked", "true")
        await tab.page.get_by_role("menuitemradio", name="System").click()
        await tab.page.reload()
        await expect(button).to_have_attribute("aria-label", "Theme: system")
        assert await root.get_attribute("data-theme") is None


# People


async def test_f3_windows_of_one_person_are_one_person(chromium: Browser, site: Site) -> None:
    """faces 20. The second window is another tab of the same browser."""
    session = await site.session(site.project("windows"))
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        second = await anna.page.context.new_page()
        await second.goto(anna.page.url)
        people = ben.page.locator(".clients li")
        await expect(people).to_have_count(2)
        await expect(people.first).to_contain_text("anna (2 windows)")
        await expect(people.nth(1)).to_contain_text("ben (you)")
        await expect(anna.page.locator(".clients li").first).to_contain_text("anna (you, 2 windows)")
        await expect(ben.page.locator("#clients .avatar")).to_have_count(2)
        await anna.say("hello")
        await ben.sees("echo: hello")
        await expect(ben.page.locator(".message .who").first).to_have_text("anna")
        await expect(second.locator(".message .who").first).to_have_text("You")
        clients = {client["client_id"] for client in (await about(session))["clients"]}
        assert {name.partition(":")[0] for name in clients} == {"anna", "ben"}
        assert len(clients) == 3
        await second.close()
        await expect(people.first).to_have_text(re.compile("^ANanna"))


async def test_f3_the_name_that_an_older_version_kept_is_the_person(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("older-name"))
    async with open_tab(chromium, site, session, name="anna:web") as tab:
        await expect(tab.page.locator("#me")).to_have_text("anna")
        await tab.page.locator("#me").click()
        name = tab.page.get_by_label("Your name")
        await expect(name).to_have_value("anna")
        await name.fill("anna:web")
        await tab.button("Continue").click()
        await expect(tab.page.locator("#dialog-wrong")).to_contain_text("letters, digits")


async def about(session: SessionClient) -> dict[str, list[dict[str, str]]]:
    answer = await session.http.get(session.workspace)
    found: dict[str, list[dict[str, str]]] = answer.json()
    return found


# Assistive technology


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
async def test_f3_axe_finds_nothing_in_the_search_the_switcher_and_the_theme_menu(
    chromium: Browser, site: Site, size: tuple[int, int]
) -> None:
    session = await titled(site, f"axe-{size[0]}", "One boat", "Two boats")
    async with open_tab(chromium, site, session, size=size, color_scheme="light") as tab:
        auditor = Auditor(tab=tab, found=[])
        if size == NARROW:
            await tab.page.get_by_role("banner").get_by_role("button", name="Sessions", exact=True).click()
        await tab.page.get_by_role("searchbox", name="Search sessions").fill("boat")
        await expect(results(tab).locator("mark").first).to_be_visible()
        await auditor.look("results")
        if size == NARROW:
            await tab.page.keyboard.press("Escape")
        for name in ("#workspace", "#theme"):
            await tab.page.locator(name).click()
            await expect(tab.page.get_by_role("menuitemradio").first).to_be_visible()
            await auditor.look(f"menu {name}")
            await tab.page.keyboard.press("Escape")
        assert auditor.found == []
