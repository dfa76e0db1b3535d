"""The page without a mouse, and as assistive technology has it, at every width and in both colours (F3)."""

import json

import pytest
from audit import Auditor, walk_to
from browser import MARKS, NARROW, TOKEN, WIDE, Tab, call, new_session, open_tab
from playwright.async_api import Browser, expect
from processes import Site
from sessions import SessionClient

from longboat.testing import Pause, Say, Think, Use

pytestmark = MARKS
pytest_plugins = ("chromium",)


@pytest.mark.shows_secrets("server token", reason="the test types the token into the form")
async def test_f3_everything_is_done_by_keyboard_alone(chromium: Browser, site: Site) -> None:
    site.model.add([call("write", path="k.txt", content="k\n")], [Say("Written by keys.")], name="keys")
    site.model.add([Say("Hanging."), Pause(site.model.gate("keys"))], name="hang")
    directory = site.project("keys")
    session = await site.session(directory)
    for title in ("Older boat", "Newer boat"):
        made = await session.http.post(f"{session.workspace}/sessions", json={"title": title})
        assert made.status_code == 201
    async with open_tab(chromium, site, logged_in=False, name="") as tab:
        keys = tab.page.keyboard
        await tab.go()
        await expect(tab.page.get_by_label("Token")).to_be_focused()
        await keys.type(TOKEN)
        await keys.press("Enter")
        await expect(tab.page.get_by_label("Your name")).to_be_focused()
        await keys.press("Escape")
        await expect(tab.page.get_by_label("Your name")).to_be_focused()
        await keys.press("ControlOrMeta+a")
        await keys.type("vera")
        await keys.press("Enter")
        await expect(tab.page.locator("#me")).to_have_text("vera")
        await choose_workspace(tab, str(directory))
        await choose_session(tab)
        await prompt_and_answer(tab)
        assert (directory / "k.txt").read_text() == "k\n"
        await cancel(tab)
        await dialogs(tab)


async def choose_workspace(tab: Tab, directory: str) -> None:
    field = tab.page.get_by_label("Open a directory")
    if not await field.count():
        await walk_to(tab, tab.page.locator("#workspace"))
        await tab.page.keyboard.press("Enter")
        await expect(tab.page.get_by_role("menuitemradio").first).to_be_focused()
        await tab.page.keyboard.press("End")
        await tab.page.keyboard.press("Enter")
    await walk_to(tab, field)
    await tab.page.keyboard.type(directory)
    await tab.page.keyboard.press("Enter")
    await tab.live()


async def choose_session(tab: Tab) -> None:
    links = tab.page.get_by_role("navigation", name="Sessions").get_by_role("link")
    await expect(links).to_have_count(3)
    await walk_to(tab, links.first)
    await tab.page.keyboard.press("ArrowDown")
    await expect(links.nth(1)).to_be_focused()
    await tab.page.keyboard.press("Home")
    await tab.page.keyboard.press("Enter")
    await expect(tab.title).to_have_text("Newer boat")


async def prompt_and_answer(tab: Tab) -> None:
    keys = tab.page.keyboard
    await walk_to(tab, tab.prompt)
    await keys.type("[[keys]]")
    await keys.press("Shift+Enter")
    await keys.type("in two lines")
    await keys.press("Enter")
    await expect(tab.asks).to_be_visible()
    await expect(tab.prompt).to_be_focused()
    await walk_to(tab, tab.button("Allow once"), "Shift+Tab")
    await keys.press("Enter")
    await tab.sees("Written by keys.")
    await expect(tab.prompt).to_be_focused()


async def cancel(tab: Tab) -> None:
    keys = tab.page.keyboard
    await keys.type("[[hang]]")
    await keys.press("Enter")
    await tab.sees("Hanging.")
    await walk_to(tab, tab.page.get_by_role("radio", name="Steer"))
    await keys.press("ArrowRight")
    await walk_to(tab, tab.prompt, "Shift+Tab")
    await keys.type("later")
    await keys.press("Enter")
    await walk_to(tab, tab.button("Delete", within=tab.queue), "Shift+Tab")
    await keys.press("Enter")
    await expect(tab.queue).to_be_hidden()
    await expect(tab.prompt, "the focus is not lost with the queue").to_be_focused()
    await walk_to(tab, tab.button("Stop"), "Shift+Tab")
    await keys.press("Enter")
    await tab.idle()
    await expect(tab.transcript.locator(".finish:visible")).to_have_text(["Canceled by you"])
    await expect(tab.prompt, "the focus is not lost with the button").to_be_focused()


async def dialogs(tab: Tab) -> None:
    keys = tab.page.keyboard
    button = tab.button("Session")
    await walk_to(tab, button, "Shift+Tab")
    await keys.press("Enter")
    item = tab.page.get_by_role("menuitem", name="Rename…")
    await walk_to(tab, item, "ArrowDown")
    await keys.press("Enter")
    await expect(tab.page.get_by_role("dialog").get_by_label("Title")).to_be_focused()
    await keys.press("Escape")
    await expect(tab.page.get_by_role("dialog")).to_have_count(0)
    await expect(button).to_be_focused()
    await keys.press("Enter")
    await keys.press("Escape")
    await expect(tab.page.get_by_role("menu")).to_be_hidden()
    await expect(button).to_be_focused()
    me = tab.page.locator("#me")
    await walk_to(tab, me, "Shift+Tab")
    await keys.press("Enter")
    await expect(tab.page.get_by_role("dialog", name="Choose a name")).to_be_visible()
    await keys.press("Escape")
    await expect(me).to_be_focused()


async def test_f3_on_a_phone_the_drawers_open_close_and_give_the_focus_back(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("drawers"))
    async with open_tab(chromium, site, session, size=NARROW, has_touch=True, is_mobile=True) as tab:
        for name, inside in (("Sessions", "#nav"), ("Details", "#aside")):
            button = tab.page.get_by_role("banner").get_by_role("button", name=name, exact=True)
            await walk_to(tab, button)
            await tab.page.keyboard.press("Enter")
            await expect(button).to_have_attribute("aria-expanded", "true")
            await expect(tab.page.locator(inside)).to_be_in_viewport()
            await tab.page.keyboard.press("Escape")
            await expect(button).to_have_attribute("aria-expanded", "false")
            await expect(tab.page.locator(inside)).not_to_be_in_viewport()
        await tab.page.reload()
        await tab.page.keyboard.press("Tab")
        await expect(tab.page.get_by_role("link", name="Skip to the prompt")).to_be_focused()
        await tab.page.keyboard.press("Enter")
        await expect(tab.prompt).to_be_focused()


# Assistive technology


MARKDOWN = """# Found it

The **sum** was *wrong*: see [the rule](https://example.org/rule).

1. one
2. two

| a | b |
|---|---|
| 1 | 2 |

> quoted

```python
def add(a: int, b: int) -> int:
    return a + b  # not minus
```

- [x] done
- [ ] to do
"""


async def session_with_everything(site: Site, name: str) -> SessionClient:
    """A session with everything a transcript can hold; its agent waits for a permission, and a prompt waits for it."""
    directory = site.project(name)
    (directory / "sums.py").write_text("def add(a, b):\n    return a - b\n")
    plan = [{"text": "Look", "state": "completed"}, {"text": "Mend", "state": "in_progress"}, {"text": "Tell"}]
    session = await new_session(site, directory)
    site.model.add(
        [Think("Where is it?"), Say("I look."), call("todos", items=plan), call("view", path="sums.py")],
        [call("edit", path="sums.py", old_text="a - b", new_text="a + b"), call("bash", command="exit 3")],
        [Say(MARKDOWN), Use(input_tokens=3_200, output_tokens=410)],
        [call("bash", command="rm -rf build && make all")],
    )
    mended = await session.submit("Why are the sums wrong?", approve="all", client_id="anna")
    await session.outcome(mended)
    await session.submit("Now build it.", client_id="ben")
    await session.submit("And then write a test.", f"{name}-queued", delivery="queue", client_id="ben")
    return session


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
async def test_f3_axe_finds_nothing_in_any_view_light_or_dark(
    chromium: Browser, site: Site, size: tuple[int, int]
) -> None:
    name = f"boat-{size[0]}"
    session = await session_with_everything(site, name)
    async with open_tab(chromium, site, size=size, color_scheme="light") as tab:
        auditor = Auditor(tab=tab, found=[])
        await tab.go()
        await expect(tab.page.locator("#main").get_by_role("heading", level=1)).to_be_visible()
        await auditor.look("start")
        await tab.go(session)
        await expect(tab.asks).to_be_visible()
        await expect(tab.queue).to_be_visible()
        await tab.page.evaluate("for (const box of document.querySelectorAll('details')) box.open = true")
        await expect(tab.transcript.locator(".prose table")).to_be_visible()
        await auditor.look("session")
        await tab.button("Deny").click()
        await tab.prompt.press_sequentially("@su")
        await expect(tab.page.get_by_role("option", name="sums.py")).to_be_visible()
        await auditor.look("completion")
        await tab.prompt.fill("")
        await tab.button("Cancel", within=tab.asks).click()
        await tab.button("Session").click()
        await auditor.look("menu")
        await tab.page.get_by_role("menuitem", name="Delete…").click()
        await auditor.look("dialog")
        await tab.button("Cancel").click()
        if size == NARROW:
            for drawer in ("Sessions", "Details"):
                await tab.page.get_by_role("banner").get_by_role("button", name=drawer, exact=True).click()
                await auditor.look(drawer)
                await tab.page.keyboard.press("Escape")
        await session.cancel()
        await tab.idle()
        site.model.add([call("question", text="Which tests shall run?", choices=["All of them", "Only the new one"])])
        await session.submit("Then test it.", client_id="ben")
        await expect(tab.asks.get_by_role("radio", name="All of them")).to_be_visible()
        await auditor.look("question")
        await session.cancel()
        await tab.page.goto(f"{tab.origin}/stats")
        await expect(tab.page.get_by_role("img", name="Tool calls")).to_be_visible()
        await auditor.look("stats")
    assert auditor.found == [], json.dumps(auditor.found, indent=1)


async def test_f3_axe_finds_nothing_at_the_door(chromium: Browser, site: Site) -> None:
    async with open_tab(chromium, site, size=NARROW, logged_in=False, name="") as tab:
        auditor = Auditor(tab=tab, found=[])
        await tab.go()
        await tab.page.get_by_label("Token").fill("wrong")
        await tab.page.get_by_label("Token").press("Enter")
        await expect(tab.page.get_by_role("alert")).to_be_visible()
        await auditor.look("login")
        assert auditor.found == []
        await tab.page.evaluate("document.querySelector('label').remove()")
        await auditor.audit("login without a label")
        assert [found for found in auditor.found if " label: " in found], "the auditor sees what is wrong"
