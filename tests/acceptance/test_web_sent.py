"""“What was sent” in the page: each request of a run to a model, with its numbers and its body as text (ADR 0047)."""

import pytest
from audit import Auditor
from browser import MARKS, NARROW, WIDE, Tab, call, open_tab
from inert import check_inert
from playwright.async_api import Browser, Locator, expect
from processes import Site

from hostile import LINES, PAYLOADS
from longboat.testing import Refuse, Say, Use

pytestmark = MARKS
pytest_plugins = ("chromium",)


def dialog(tab: Tab) -> Locator:
    return tab.page.get_by_role("dialog", name="What was sent to the model")


def requests(tab: Tab) -> Locator:
    return dialog(tab).locator(".sent-request")


async def test_each_request_of_a_run_is_listed_and_opens_to_its_body(chromium: Browser, site: Site) -> None:
    used = Use(input_tokens=3_200, output_tokens=410)
    site.model.add([call("ls"), used], [Say("Listed."), Use(input_tokens=4_100, output_tokens=20)], name="sent")
    site.model.add([Say("Another run.")], name="sent-after")
    session = await site.session(site.project("sent"))
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[sent]]")
        await anna.sees("Listed.")
        await anna.idle()
        await anna.say("[[sent-after]]")
        await anna.sees("Another run.")
        await anna.idle()
        prompt = anna.transcript.locator(".message.user").first
        await prompt.hover()
        await anna.button("Message actions", within=prompt).click()
        await anna.page.get_by_role("menuitem", name="What was sent").click()
        await expect(requests(anna)).to_have_count(2)
        await expect(requests(anna).first.locator("summary").first).to_contain_text("3.2K tokens in")
        await expect(requests(anna).last.locator("summary").first).to_contain_text("from the cache")
        await requests(anna).last.locator("summary").first.click()
        rows = dialog(anna).locator(".sent-parts tbody th:visible")
        await expect(rows.filter(has_text="System prompt")).to_have_count(1)
        await expect(rows.filter(has_text="Tools")).to_have_count(1)
        pieces = requests(anna).last.locator(".sent-piece")
        await expect(pieces.filter(has_text="[[sent]]").first).to_be_visible()
        opened = requests(anna).last.locator(".sent-piece[open] > summary")
        await expect(opened, "what was new in it").to_have_text([r"3. assistant", "4. tool"], use_inner_text=True)
        await expect(dialog(anna)).not_to_contain_text("sent-after")


async def test_a_key_and_the_palette_show_it_and_the_focus_returns(chromium: Browser, site: Site) -> None:
    site.model.add([Refuse(400, message="Not today.")], name="sent-key")
    session = await site.session(site.project("sent-key"))
    async with open_tab(chromium, site, session) as anna:
        keys = anna.page.keyboard
        await keys.press("ControlOrMeta+k")
        await keys.type("what was sent")
        await keys.press("Enter")
        await expect(anna.toasts).to_contain_text("Nothing was sent to a model yet.")
        await anna.say("[[sent-key]]")
        await anna.sees("Not today.")
        await anna.idle()
        await keys.press("Alt+ArrowUp")
        message = anna.page.locator("article.message:focus")
        await expect(message).to_be_visible()
        await keys.press("w")
        await expect(requests(anna)).to_contain_text("Not today.")
        await keys.press("Escape")
        await expect(dialog(anna)).to_have_count(0)
        await expect(message).to_be_focused()
        await keys.press("ControlOrMeta+k")
        await keys.type("what was sent")
        await keys.press("Enter")
        await expect(requests(anna)).to_have_count(1)


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
async def test_f3_markup_in_a_request_is_text_and_axe_finds_nothing(
    chromium: Browser, site: Site, size: tuple[int, int]
) -> None:
    name = f"sent-hostile-{size[0]}"
    tool = call("<svg onload=window.__pwned=1>", x=LINES[0])
    site.model.add([Say(PAYLOADS[0]), tool], [Refuse(400, message="".join(LINES[:20]))], name=name)
    directory = site.project(name)
    (directory / "AGENTS.md").write_text("\n\n".join(PAYLOADS))
    session = await site.session(directory)
    async with open_tab(chromium, site, session, size=size) as anna:
        auditor = Auditor(tab=anna, found=[])
        await anna.say("\n\n".join([f"[[{name}]]", *PAYLOADS]))
        await expect(anna.transcript.locator(".finish[data-reason=error]")).to_be_visible()
        await anna.idle()
        await anna.button("Session").click()
        await anna.page.get_by_role("menuitem", name="What was sent").click()
        await expect(requests(anna)).to_have_count(2)
        await anna.page.evaluate("for (const box of document.querySelectorAll('.sent-request')) box.open = true")
        await expect(dialog(anna).get_by_role("button", name="Copy as JSON")).to_have_count(2)
        await anna.page.evaluate("for (const box of document.querySelectorAll('.sent-piece')) box.open = true")
        await expect(dialog(anna).locator("pre").filter(has_text="onerror").first).to_be_visible()
        await check_inert(anna)
        assert await dialog(anna).locator("pre *").count() == 0
        await auditor.look("sent")
        assert auditor.found == []
