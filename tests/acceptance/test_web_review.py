"""The review of a session's changes on the page: undo by file and hunk, comments, by keyboard alone; tree, preview."""

from pathlib import Path
from typing import Any

from axe_playwright_python.async_playwright import Axe
from browser import MARKS, NARROW, Tab, call, new_session, open_tab
from playwright.async_api import Browser, Locator, expect
from processes import Site
from sessions import SessionClient

from hostile import LINES
from longboat.testing import Say

pytestmark = MARKS
pytest_plugins = ("chromium",)

TEXT = "".join(f"line {number}\n" for number in range(40))


def edits(*numbers: int) -> list[dict[str, str]]:
    return [{"old_text": f"line {number}\n", "new_text": f"changed {number}\n"} for number in numbers]


async def reviewed(site: Site, name: str) -> tuple[Path, SessionClient]:
    """A session that changed two files, one of them in two places."""
    directory = site.project(name)
    for file in ("a.py", "b.py"):
        (directory / file).write_text(TEXT)
    site.model.add(
        [call("view", path="a.py"), call("view", path="b.py")],
        [call("multiedit", path="a.py", edits=edits(3, 30)), call("multiedit", path="b.py", edits=edits(7))],
        [Say("Changed.")],
        name=f"change-{name}",
    )
    session = await new_session(site, directory)
    await session.outcome(await session.submit(f"[[change-{name}]]", approve="all", client_id="ben"))
    return directory, session


def with_lines(*numbers: int) -> str:
    return "".join(f"{'changed' if number in numbers else 'line'} {number}\n" for number in range(40))


def section(tab: Tab, path: str) -> Locator:
    return tab.page.locator(".review-file").filter(has=tab.page.get_by_role("heading", name=path))


async def open_review(tab: Tab, session: SessionClient) -> None:
    await tab.go(session)
    await expect(tab.page.locator(".changes")).to_contain_text("2 files, +3 −3")
    await tab.page.get_by_title("Review a.py").click()
    await expect(tab.page.locator(".review")).to_be_visible()
    await expect(section(tab, "a.py").locator("table.diff")).to_be_visible()


async def test_f3_hunks_and_files_are_undone_and_everybody_sees_it(chromium: Browser, site: Site) -> None:
    directory, session = await reviewed(site, "review")
    async with open_tab(chromium, site) as anna, open_tab(chromium, site, name="ben") as ben:
        await open_review(anna, session)
        await open_review(ben, session)
        assert anna.page.url.endswith("/changes")
        await expect(anna.page.locator("#aside")).to_be_hidden()
        a, b = section(anna, "a.py"), section(anna, "b.py")
        await expect(a.locator("header")).to_contain_text("for ben")
        await anna.button("Undo hunk 1 of 2 in a.py").click()
        await anna.button("Undo", within=anna.page.get_by_role("dialog")).click()
        for tab in (anna, ben):
            await expect(section(tab, "a.py").locator("tr.hunk")).to_have_count(1)
            await expect(section(tab, "a.py").locator("header")).to_contain_text("partly undone by anna")
        assert (directory / "a.py").read_text() == with_lines(30)
        await anna.button("Undo all changes to b.py").click()
        await anna.button("Cancel", within=anna.page.get_by_role("dialog")).click()
        assert (directory / "b.py").read_text() == with_lines(7)
        await anna.button("Undo all changes to b.py").click()
        await anna.button("Undo", within=anna.page.get_by_role("dialog")).click()
        for tab in (anna, ben):
            await expect(section(tab, "b.py")).to_have_count(0)
            await expect(tab.page.locator(".review-bar")).to_contain_text("1 file, +1 −1")
        await expect(b).to_have_count(0)
        assert (directory / "b.py").read_text() == TEXT
        # An editor is faster than the click: nothing is lost, and the review shows what is there now.
        (directory / "a.py").write_text(with_lines(30) + "by hand\n")
        await ben.button("Undo all changes to a.py").click()
        await ben.button("Undo", within=ben.page.get_by_role("dialog")).click()
        await expect(ben.toasts).to_contain_text("a.py has changed since")
        assert (directory / "a.py").read_text() == with_lines(30) + "by hand\n"
        await expect(section(ben, "a.py").locator("header")).to_contain_text("also edited by others")
        await ben.button("Undo all changes to a.py").click()
        await ben.button("Undo", within=ben.page.get_by_role("dialog")).click()
        await expect(ben.page.locator(".review-bar")).to_contain_text("No changes.")
        assert (directory / "a.py").read_text() == TEXT + "by hand\n"
        await session.outcome(await session.submit("And now?", client_id="ben"))
    assert "a.py (1 of 2 hunks), b.py (all changes)" in str(site.model.requests[-1].body["messages"])


def redo(tab: Tab) -> Locator:
    return tab.page.locator(".review-bar").get_by_role("button", name="Redo")


async def test_f3_what_was_undone_last_is_redone_by_button_and_by_key(chromium: Browser, site: Site) -> None:
    directory, session = await reviewed(site, "redo")
    async with open_tab(chromium, site) as anna, open_tab(chromium, site, name="ben") as ben:
        keys = anna.page.keyboard
        await open_review(anna, session)
        await open_review(ben, session)
        await expect(redo(anna)).to_be_hidden()
        await keys.press("r")
        await anna.button("Undo hunk 1 of 2 in a.py").click()
        await anna.button("Undo", within=anna.page.get_by_role("dialog")).click()
        await expect(redo(ben)).to_have_text("Redo 1 of 2 hunks in a.py")
        await expect(redo(ben)).to_have_attribute("title", "a.py. Undone by anna.")
        await anna.button("Undo all changes to b.py").click()
        await anna.button("Undo", within=anna.page.get_by_role("dialog")).click()
        await expect(redo(anna)).to_have_text("Redo all changes in b.py")
        await expect(section(anna, "b.py")).to_have_count(0)
        await redo(anna).click()
        for tab in (anna, ben):
            await expect(section(tab, "b.py").locator("tr.hunk")).to_have_count(1)
            await expect(redo(tab)).to_have_text("Redo 1 of 2 hunks in a.py")
        assert (directory / "b.py").read_text() == with_lines(7)
        await expect(anna.page.locator(".review")).to_be_focused()
        # What somebody else undid is asked about.
        await ben.page.keyboard.press("r")
        await expect(ben.page.get_by_role("dialog")).to_contain_text("anna undid this.")
        await ben.button("Cancel", within=ben.page.get_by_role("dialog")).click()
        assert (directory / "a.py").read_text() == with_lines(30)
        await keys.press("r")
        for tab in (anna, ben):
            await expect(section(tab, "a.py").locator("tr.hunk")).to_have_count(2)
            await expect(redo(tab)).to_be_hidden()
        assert (directory / "a.py").read_text() == with_lines(3, 30)


async def test_f3_when_everything_is_undone_the_review_still_offers_to_redo_it(chromium: Browser, site: Site) -> None:
    directory, session = await reviewed(site, "redo-all")
    async with open_tab(chromium, site) as anna:
        await open_review(anna, session)
        for name in ("a.py", "b.py"):
            await anna.button(f"Undo all changes to {name}").click()
            await anna.button("Undo", within=anna.page.get_by_role("dialog")).click()
            await expect(section(anna, name)).to_have_count(0)
        await anna.page.keyboard.press("Escape")
        await anna.button("Review", within=anna.page.locator("#aside")).click()
        await expect(redo(anna)).to_have_text("Redo all changes in b.py")
        await anna.page.keyboard.press("r")
        await expect(section(anna, "b.py").locator("tr.hunk")).to_have_count(1)
        await expect(redo(anna)).to_have_text("Redo all changes in a.py")
        # An editor was faster: nothing is redone, and it says why.
        (directory / "a.py").write_text(with_lines().replace("line 3\n", "by hand\n"))
        await anna.page.keyboard.press("r")
        await expect(anna.toasts).to_contain_text("a.py")
        assert (directory / "a.py").read_text() == with_lines().replace("line 3\n", "by hand\n")


async def test_f3_split_works_wherever_there_is_room(chromium: Browser, site: Site) -> None:
    _, session = await reviewed(site, "split")
    async with open_tab(chromium, site) as tab:
        await open_review(tab, session)
        await tab.page.set_viewport_size({"width": 1000, "height": 800})
        await tab.button("Split").click()
        await expect(section(tab, "a.py").locator("table.diff.split")).to_be_visible()
        await expect(tab.button("Unified")).to_be_visible()
        await expect(section(tab, "a.py").get_by_role("button", name="Undo hunk 2 of 2 in a.py")).to_be_visible()
        # Without room there is no button that would do nothing.
        await tab.page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        await expect(tab.button("Unified")).to_be_hidden()
        await expect(section(tab, "a.py").locator("table.diff:not(.split)")).to_be_visible()
        await tab.page.set_viewport_size({"width": 2560, "height": 1200})
        await expect(section(tab, "a.py").locator("table.diff.split")).to_be_visible()
        await tab.button("Unified").click()
        await expect(section(tab, "a.py").locator("table.diff:not(.split)")).to_be_visible()


async def test_f3_a_review_by_keyboard_alone_and_comments_become_the_prompt(chromium: Browser, site: Site) -> None:
    directory, session = await reviewed(site, "keyboard")
    async with open_tab(chromium, site) as tab:
        keys = tab.page.keyboard
        await tab.go(session)
        changed = tab.page.get_by_title("Review a.py")
        await expect(changed).to_be_visible()
        await changed.focus()
        await keys.press("Enter")
        await expect(tab.page.locator(".review")).to_be_focused()
        await expect(section(tab, "a.py").locator("table.diff")).to_be_visible()
        at = tab.page.locator(".review-file.at")
        await expect(at).to_have_attribute("aria-label", "a.py")
        await keys.press("j")
        await expect(at).to_have_attribute("aria-label", "b.py")
        await expect(section(tab, "b.py").locator("table.diff")).to_be_visible()
        await keys.press("k")
        await expect(at).to_have_attribute("aria-label", "a.py")
        await keys.press("n")
        await keys.press("n")
        row = tab.page.locator("tr.at")
        await expect(row).to_have_class("hunk at")
        await expect(row).to_contain_text("Undo hunk")
        for _ in range(4):
            await keys.press("ArrowDown")
        await expect(row).to_contain_text("line 30")
        await keys.press("c")
        await keys.type("why this?")
        await keys.press("Enter")
        await expect(section(tab, "a.py").locator(".comment")).to_contain_text("why this?")
        await keys.press("u")
        await expect(tab.page.get_by_role("dialog")).to_contain_text("Undo hunk 2 of 2 in a.py?")
        await expect(tab.button("Cancel", within=tab.page.get_by_role("dialog"))).to_be_focused()
        await keys.press("Tab")
        await keys.press("Enter")
        await expect(section(tab, "a.py").locator("tr.hunk")).to_have_count(1)
        assert (directory / "a.py").read_text() == with_lines(3)
        await expect(tab.page.locator(".review")).to_be_focused()
        await keys.press("o")
        dialog = tab.page.get_by_role("dialog")
        await expect(dialog).to_contain_text("changed 3")
        await keys.press("Escape")
        await expect(dialog).to_have_count(0)
        await keys.press("j")
        await keys.press("U")
        await expect(dialog).to_contain_text("Undo all changes to b.py?")
        await keys.press("Escape")
        await tab.button("Add 1 comment to the prompt").press("Enter")
        await expect(tab.prompt).to_be_focused()
        await expect(tab.prompt).to_have_value("In a.py line 31: why this?")
        await expect(tab.page.locator(".review")).to_be_hidden()


async def test_f3_a_changed_file_keeps_the_focus_when_the_list_is_drawn_again(chromium: Browser, site: Site) -> None:
    _, session = await reviewed(site, "focus")
    site.model.add([call("multiedit", path="a.py", edits=edits(5))], [Say("One more.")], name="one-more")
    async with open_tab(chromium, site) as tab:
        await tab.go(session)
        row = tab.page.get_by_title("Review b.py")
        await row.focus()
        await session.outcome(await session.submit("[[one-more]]", approve="all", client_id="ben"))
        await expect(tab.page.locator(".changes")).to_contain_text("2 files, +4 −4")
        await expect(row).to_be_focused()


async def test_f3_files_are_browsed_shown_and_put_into_the_prompt(chromium: Browser, site: Site) -> None:
    directory, session = await reviewed(site, "tree")
    (directory / "src").mkdir()
    (directory / "src" / "deep.py").write_text("def deep():\n    return 1\n")
    async with open_tab(chromium, site, size=(1600, 1000)) as tab:
        await tab.go(session)
        tree = tab.page.locator("section", has=tab.page.get_by_role("heading", name="Files"))
        await tree.get_by_text("Browse files").click()
        await tree.get_by_role("button", name="src", exact=True).click()
        await tree.get_by_role("button", name="deep.py", exact=True).click()
        dialog = tab.page.get_by_role("dialog")
        await expect(dialog.locator("code")).to_contain_text("def deep():")
        await expect(dialog.locator(".hl-k").first).to_be_visible()
        await tab.button("Insert into the prompt", within=dialog).click()
        await expect(tab.prompt).to_have_value("@src/deep.py ")
        await expect(tab.prompt).to_be_focused()
        await tree.get_by_role("button", name="src", exact=True).focus()
        await tab.page.keyboard.press("ArrowDown")
        await tab.page.keyboard.press("@")
        await expect(tab.prompt).to_have_value("@src/deep.py @src/deep.py ")
        await tab.tools.filter(has_text="a.py").locator(".tool-about").first.click()
        await expect(dialog).to_contain_text("changed 3")
        await tab.button("Close", within=dialog).click()
        await expect(dialog).to_have_count(0)


async def test_f3_names_of_files_are_text_in_the_tree_and_the_review(chromium: Browser, site: Site) -> None:
    directory = site.project("names")
    names = [f"{number}{line.replace('/', '∕')[:80]}" for number, line in enumerate(LINES[:40])]
    steps: list[Any] = [call("write", path=name, content=f"{line}\n") for name, line in zip(names, LINES, strict=False)]
    site.model.add(steps, [Say("Written.")], name="names")
    session = await new_session(site, directory)
    await session.outcome(await session.submit("[[names]]", approve="all", client_id="ben"))
    async with open_tab(chromium, site, size=(1600, 1000)) as tab:
        await tab.go(session)
        await tab.page.get_by_text("Browse files").click()
        await expect(tab.page.locator(".tree .entry")).to_have_count(len(names) + 1)  # and longboat.json
        await tab.page.get_by_role("button", name="Review", exact=True).click()
        await expect(tab.page.locator(".review-file")).to_have_count(len(names))
        for place in range(len(names)):
            await tab.page.keyboard.press("j" if place else "k")
            await expect(tab.page.locator(".review-file.at table.diff")).to_be_visible()
        await tab.page.keyboard.press("o")
        await expect(tab.page.get_by_role("dialog").locator("code")).to_be_visible()
        await inert(tab)
        await tab.page.keyboard.press("Escape")
        await tab.page.keyboard.press("u")
        await expect(tab.page.get_by_role("dialog")).to_contain_text("Undo all changes to")
        await inert(tab)


async def inert(tab: Tab) -> None:
    """Nothing but what the page makes itself: no element or handler came with a name or a text."""
    found = await tab.page.evaluate(
        """() => [...document.querySelectorAll('.review *, .tree *, dialog *, .changes *')].filter((node) =>
          ['SCRIPT', 'IFRAME', 'IMG', 'OBJECT', 'EMBED', 'VIDEO', 'AUDIO', 'LINK', 'STYLE'].includes(node.tagName)
          || [...node.attributes].some(({ name }) => name.startsWith('on') || name === 'style'))
          .map((node) => node.outerHTML.slice(0, 200))"""
    )
    assert found == []


async def test_f3_axe_finds_nothing_in_the_review_and_the_preview(chromium: Browser, site: Site) -> None:
    _, session = await reviewed(site, "axe")
    for size in (NARROW, (1600, 1000)):
        async with open_tab(chromium, site, size=size) as tab:
            await tab.go(session)
            await tab.page.evaluate("location.hash += '/changes'")
            await expect(section(tab, "a.py").locator("table.diff")).to_be_visible()
            await section(tab, "a.py").locator("tr.add td.number").nth(1).click()
            await expect(tab.page.get_by_role("textbox", name="Comment on line 4 of a.py")).to_be_focused()
            for scheme in ("light", "dark"):
                await tab.page.emulate_media(color_scheme=scheme)
                await audit(tab)
            if size == NARROW:
                await fits(tab)
            await tab.button("Open a.py").click()
            await expect(tab.page.get_by_role("dialog").locator("code")).to_be_visible()
            await audit(tab)
            await tab.button("Close", within=tab.page.get_by_role("dialog")).click()


async def audit(tab: Tab) -> None:
    results = await Axe().run(tab.page, options={"resultTypes": ["violations"]})
    found = [
        f"{violation['id']}: {node['html'][:160]}"
        for violation in results.response["violations"]
        for node in violation["nodes"]
    ]
    assert found == []


async def fits(tab: Tab) -> None:
    """On a phone nothing sticks out, and buttons are large enough for a finger."""
    assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = await tab.page.evaluate(
        """() => [...document.querySelectorAll('.review button')]
          .filter((button) => button.offsetParent && button.getBoundingClientRect().height < 44)
          .map((button) => button.outerHTML)"""
    )
    assert small == []
