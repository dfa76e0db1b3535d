"""The page on a phone and on a small screen, and without its server (F3)."""

from browser import MARKS, Tab, call, open_tab, open_wire
from imported import imported, text, turn
from playwright.async_api import Browser, expect
from processes import Site

from longboat.testing import Pause, Say

pytestmark = MARKS
pytest_plugins = ("chromium",)

PHONE = (360, 740)
FINGERS = {"has_touch": True, "is_mobile": True}

WIDE_CODE = "```python\n" + "x = " + "1 + " * 80 + "1\n```\n"

# What a finger must hit, but for links within a text. The label of a text field only says what it is.
SMALL = """() => [...document.querySelectorAll('button, a, select, summary, textarea, input:not([type=file]), label')]
  .filter((node) => node.offsetParent !== null && !node.closest('.prose p, .prose li, .banner, .skip'))
  .filter((node) => !(node.matches('[type=checkbox], [type=radio]') && node.closest('label')))
  .filter((node) => !(node.matches('label') && node.control && !node.control.matches('[type=checkbox], [type=radio]')))
  .map((node) => [node, node.getBoundingClientRect()])
  .filter(([, box]) => box.width > 0 && box.right > 0 && box.left < innerWidth)
  .filter(([, box]) => box.height < 43.5 || box.width < 43.5)
  .map(([node, box]) => `${Math.round(box.width)} x ${Math.round(box.height)}: ${node.outerHTML.slice(0, 120)}`)"""


async def small(tab: Tab) -> list[str]:
    found: list[str] = await tab.page.evaluate(SMALL)
    return found


async def test_f3_a_finger_can_hit_everything_and_the_options_take_one_row(chromium: Browser, site: Site) -> None:
    gate = site.model.gate("fingers")
    site.model.add([call("ls")], [Say(f"Like this:\n\n{WIDE_CODE}"), Pause(gate)], name="fingers")
    session = await site.session(site.project("fingers"))
    async with open_tab(chromium, site, session, size=PHONE, **FINGERS) as anna:
        assert await small(anna) == []
        await anna.say("[[fingers]]")
        await anna.sees("Like this:")
        await anna.delivery("Queue")
        await anna.say("later")
        await expect(anna.queue).to_be_visible()
        assert await small(anna) == []
        row = anna.page.locator(".choices > :visible")
        tops = await row.evaluate_all("(nodes) => nodes.map((node) => node.getBoundingClientRect())")
        middles = {round(box["y"] + box["height"] / 2) for box in tops}
        assert max(middles) - min(middles) < 22, f"one row: {middles}"
        frame = await anna.page.locator(".composer").evaluate("(node) => node.getBoundingClientRect()")
        assert max(box["right"] for box in tops) <= frame["right"] <= PHONE[0]
        await expect(anna.button("Send")).to_be_in_viewport(ratio=1)
        await anna.button("Stop all").click()
        await anna.idle()
        for button in ("#workspace", "#inbox", "#theme", "#toggle-aside"):
            await expect(anna.page.locator(button)).to_be_in_viewport(ratio=1)
        await expect(
            anna.page.locator("#notify"), "it is in the inbox, and the workspace needs the room"
        ).to_be_hidden()
        assert await anna.page.locator("#workspace .path").evaluate("(name) => name.scrollWidth <= name.clientWidth")
        await anna.page.locator("#workspace").click()
        await expect(anna.page.locator(".topbar .menu:visible")).to_be_in_viewport(ratio=1)
        await anna.page.keyboard.press("Escape")
        await anna.page.goto(anna.page.url.rpartition("/")[0])
        await expect(anna.page.get_by_role("heading", name="What should Longboat do?")).to_be_visible()
        await expect(anna.page.locator("main").get_by_role("link").first).to_be_visible()
        assert await small(anna) == []


async def test_f3_a_finger_can_hit_everything_at_the_door_in_the_stats_the_inbox_the_review_and_the_set_up(
    chromium: Browser, site: Site
) -> None:
    directory = site.project("fingers-all")
    (directory / "a.txt").write_text("one\n")
    site.model.add(
        [call("view", path="a.txt")],
        [call("edit", path="a.txt", old_text="one", new_text="two")],
        [Say("Changed.")],
        name="fingers-all",
    )
    site.model.add([call("question", text="Which one?", choices=["This", "That"])], name="fingers-ask")
    site.model.add([call("bash", command="mkdir here")], name="fingers-run")
    await (await site.session(directory)).submit("[[fingers-run]]", client_id="anna")
    session = await site.session(directory)
    await session.outcome(await session.submit("[[fingers-all]]", approve="all", client_id="anna"))
    await session.submit("[[fingers-ask]]", client_id="anna")
    async with open_tab(chromium, site, size=PHONE, logged_in=False, name="", **FINGERS) as stranger:
        await stranger.go()
        await expect(stranger.page.get_by_label("Token")).to_be_visible()
        assert await small(stranger) == []
    async with open_tab(chromium, site, size=PHONE, **FINGERS) as anna:
        await anna.page.goto(f"{anna.origin}/stats")
        await expect(anna.page.get_by_role("img", name="Tool calls")).to_be_visible()
        assert await small(anna) == []
        wide = await anna.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE[0]
        await anna.page.goto(f"{anna.origin}/#/inbox")
        await expect(anna.page.locator(".inbox-item.question").first).to_be_visible()
        await expect(anna.page.locator(".inbox-item.finished").first).to_be_visible()
        await expect(anna.page.locator(".inbox-item.permission .wider").first).to_be_visible()
        assert await small(anna) == []
        await anna.go(session)
        await anna.page.goto(f"{anna.page.url}/changes")
        await expect(anna.page.locator(".review-file table.diff")).to_be_visible()
        assert await small(anna) == []
        await anna.page.keyboard.press("Escape")
        await anna.button("Session").tap()
        assert await small(anna) == []
        await anna.page.get_by_role("menuitem", name="Connect a provider").tap()
        dialog = anna.page.get_by_role("dialog")
        await expect(dialog.get_by_role("button", name="Anthropic")).to_be_visible()
        assert await small(anna) == []
        await dialog.get_by_role("button", name="Anthropic").tap()
        await expect(dialog.get_by_label("API key")).to_be_visible()
        assert await small(anna) == []


async def test_f3_a_drawer_does_not_open_the_keyboard_of_a_phone(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("drawer"))
    async with open_tab(chromium, site, session, size=PHONE, **FINGERS) as anna:
        await expect(anna.prompt).not_to_be_focused()
        button = anna.page.get_by_role("banner").get_by_role("button", name="Sessions", exact=True)
        await button.tap()
        await expect(anna.page.locator("#nav")).to_be_in_viewport()
        await expect(anna.page.locator("#nav")).to_be_focused()
        assert await small(anna) == []
        await anna.page.keyboard.press("Escape")
        await expect(button).to_be_focused()


async def test_a_phone_mentions_no_keys_and_every_session_has_its_menu(chromium: Browser, site: Site) -> None:
    site.model.add(
        [call("bash", command="rm -rf ../x")], [call("question", text="Which?", choices=["a", "b"])], name="no-keys"
    )
    session = await site.session(site.project("no-keys"))
    other = await imported(session, "Another", [turn(1, text("Show"), text("Shown."))])
    async with open_tab(chromium, site, session, size=PHONE, **FINGERS) as anna:
        await anna.say("[[no-keys]]")
        await expect(anna.asks).to_contain_text("Allow this command?")
        keys = anna.page.locator("kbd:visible, .how:visible")
        hint = anna.page.locator(".answering .effect")
        await expect(hint).to_have_text("Choose an answer, or type what to do instead.")
        await expect(keys).to_have_count(0)
        await anna.button("Deny", within=anna.asks).tap()
        await anna.button("Deny", within=anna.asks).tap()
        await expect(hint).to_have_text("Choose an answer, or type your own.")
        await expect(keys).to_have_count(0)
        await anna.page.get_by_role("banner").get_by_role("button", name="Sessions", exact=True).tap()
        row = anna.page.locator(f"#nav li[data-id='{other.session_id}']")
        await expect(row.locator("time")).to_be_visible()
        await row.get_by_role("button", name="Actions for Another").tap()
        await anna.page.get_by_role("menuitem", name="Pin").tap()
        await expect(anna.page.locator("#nav").get_by_role("list", name="Pinned")).to_contain_text("Another")
        await anna.page.goto(f"{anna.origin}/#/{session.workspace.rpartition('/')[2]}")
        await expect(anna.page.get_by_role("heading", name="What should Longboat do?")).to_be_visible()
        await expect(keys).to_have_count(0)


async def test_f3_at_768_the_sessions_leave_the_width_to_the_conversation_and_code_shows_that_it_scrolls(
    chromium: Browser, site: Site
) -> None:
    table = "| a | b |\n|---|---|\n| " + "wide " * 60 + " | 1 |\n"
    answer = f"{WIDE_CODE}\n{table}"
    session = await imported(
        await site.session(site.project("middle")), "Middle", [turn(1, text("Show"), text(answer))]
    )
    async with open_tab(chromium, site, session, size=(768, 1000)) as anna:
        await expect(anna.transcript.locator(".prose table")).to_be_visible()
        width = await anna.page.locator("main").evaluate("(node) => node.clientWidth")
        assert width == 768
        code = anna.transcript.locator(".prose pre")
        assert await code.evaluate("(node) => node.scrollWidth > node.clientWidth")
        shades = await code.evaluate("(node) => getComputedStyle(node).backgroundAttachment")
        assert {"local", "scroll"} <= set(shades.split(", ")), "a shadow at the edge that goes at the end"


async def test_f3_without_its_server_the_page_says_so_and_shows_nobody_as_present(
    chromium: Browser, site: Site
) -> None:
    session = await site.session(site.project("away"))
    async with open_wire(site.port) as wire, open_tab(chromium, site, session, port=wire.port) as anna:
        banner = anna.page.get_by_role("region", name="Connection")
        present = anna.page.locator("#clients .avatar").first
        listed = anna.page.locator(".clients li").first
        await expect(present).to_be_visible()
        await expect(banner).to_be_hidden()
        await wire.cut()
        await expect(banner).to_contain_text("longboat web")
        await expect(present).to_be_hidden()
        await expect(listed).to_be_hidden()
        await anna.say("/summarize")
        await expect(anna.page.locator("#polite")).to_have_text("Cannot reach the server.")
        await expect(anna.toasts).to_be_empty()  # the banner says it
        await wire.mend()
        await anna.live()
        await expect(banner).to_be_hidden()
        await expect(present).to_be_visible()
        await expect(listed).to_be_visible()
