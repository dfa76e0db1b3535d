"""The inbox on the page: what waits in other workspaces, answered in place, counted in the title, and notifications."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from browser import MARKS, NARROW, Tab, open_tab
from browser import call as tool
from playwright.async_api import Browser, Locator, expect
from processes import Site, open_site
from sessions import SessionClient

from hostile import LINES
from longboat.testing import Say

pytestmark = MARKS
pytest_plugins = ("chromium",)

# Notifications are the system's: this keeps those that a page makes, so that a test can click them.
NOTIFICATIONS = """
window.__notes = [];
window.Notification = class {
  static permission = 'granted';
  static requestPermission = async () => 'granted';
  constructor(title, options) { Object.assign(this, { title, ...options }); window.__notes.push(this); }
  close() {}
};
Object.defineProperty(navigator, 'serviceWorker', { value: undefined });
"""
HIDE = "hidden => Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true })"


@pytest_asyncio.fixture(loop_scope="session")
async def own_site() -> AsyncIterator[Site]:
    """A server whose inbox is empty."""
    async with open_site("tcp") as found:
        await found.serve()
        yield found


def items(tab: Tab) -> Locator:
    return tab.page.locator(".inbox-item")


def badge(tab: Tab) -> Locator:
    return tab.page.locator("#inbox .badge")


async def asked_elsewhere(site: Site, name: str, *steps: Any) -> SessionClient:
    """A session in another workspace whose run waits for somebody."""
    site.model.add(*steps, name=name)
    session = await site.session(site.project(name))
    await session.submit(f"[[{name}]]", f"run-{name}")
    return session


async def test_f3_an_ask_in_another_workspace_is_counted_shown_and_answered_in_place(
    chromium: Browser, own_site: Site
) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    async with open_tab(chromium, site, here) as anna, open_tab(chromium, site, here, name="ben") as ben:
        there = await asked_elsewhere(site, "there", [tool("bash", command="touch made")], [Say("Made.")])
        await expect(badge(anna)).to_have_text("1")
        other = await asked_elsewhere(
            site, "other", [tool("question", text="Which?", choices=["a", "b"])], [Say("Ok.")]
        )
        await expect(badge(anna)).to_have_text("2")
        await expect(anna.page).to_have_title(re.compile(r"^\(2\) .* · Longboat$"))
        await anna.page.get_by_role("link", name="Inbox: 2 waiting").click()
        await expect(anna.page).to_have_title("(2) Inbox · Longboat")
        await expect(items(anna).locator(".kind")).to_have_text(["Question", "Approval needed"])
        await expect(items(anna).nth(1)).to_contain_text("touch made")
        await expect(items(anna).nth(1)).to_contain_text("there")
        await anna.picture("page-inbox")
        # Somebody is faster: told, and gone for both.
        await ben.page.goto(f"{ben.origin}/#/inbox")
        await ben.button("Allow once").click()
        await expect(items(anna)).to_have_count(2)  # the question, and the run that ended
        assert await there.outcome("run-there") == "end_turn"
        await expect(items(anna).locator(".kind")).to_have_text(["Run finished", "Question"])
        card = items(anna).nth(1)
        await card.get_by_role("radio", name="b").check()
        await anna.button("Answer", within=card).click()
        assert await other.outcome("run-other") == "end_turn"
        await expect(items(anna).locator(".kind")).to_have_text(["Run finished", "Run finished"])
        await expect(anna.page).to_have_title("(2) Inbox · Longboat")
        await anna.button("Mark all as seen").click()
        await expect(badge(anna)).to_be_hidden()
        await expect(anna.page).to_have_title("Inbox · Longboat")
        await expect(badge(ben)).to_have_text("2")


async def test_f3_an_answer_that_comes_too_late_says_who_was_faster(chromium: Browser, own_site: Site) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    async with open_tab(chromium, site, here) as anna:
        there = await asked_elsewhere(site, "late", [tool("bash", command="touch made")], [Say("Made.")])
        await anna.page.goto(f"{anna.origin}/#/inbox")
        await expect(items(anna)).to_have_count(1)
        # The page does not hear that ben has answered before anna clicks.
        await anna.page.route("**/v1/inbox**", lambda route: route.abort())
        await anna.page.route("**/permissions/*", answered_by_ben(there))
        await anna.button("Allow once").click()
        await expect(anna.toasts).to_contain_text("ben")


def answered_by_ben(session: SessionClient) -> Any:
    async def answer(route: Any) -> None:
        ask = (await session.http.get(f"{session.workspace}/permissions")).json()["items"][0]["id"]
        body = {"answer": "once", "client_id": "ben"}
        assert (await session.http.post(f"{session.workspace}/permissions/{ask}", json=body)).status_code == 200
        await route.continue_()

    return answer


async def test_f3_a_run_of_the_session_that_is_looked_at_is_no_news_and_one_elsewhere_is(
    chromium: Browser, own_site: Site
) -> None:
    site = own_site
    site.model.add([Say("Seen.")], name="seen")
    here = await site.session(site.project("here"))
    async with open_tab(chromium, site, here) as anna:
        await anna.say("[[seen]]")
        await anna.sees("Seen.")
        there = await asked_elsewhere(site, "news", [Say("Finished.")])
        assert await there.outcome("run-news") == "end_turn"
        await expect(badge(anna)).to_have_text("1")
        await anna.page.goto(f"{anna.origin}/#/inbox")
        await expect(items(anna)).to_have_count(2)
        await expect(items(anna).locator(".new")).to_have_count(1)
        await items(anna).first.get_by_role("link").click()
        await anna.sees("Finished.")
        await expect(badge(anna)).to_be_hidden()


async def test_f3_a_click_on_a_notification_leads_to_the_item(chromium: Browser, own_site: Site) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    async with open_tab(chromium, site, here) as anna:
        await anna.page.add_init_script(NOTIFICATIONS)
        await anna.page.reload()
        await anna.live()
        await anna.page.locator("#notify").click()
        await expect(anna.page.locator("#notify")).to_have_attribute("aria-pressed", "true")
        await anna.page.evaluate(HIDE, True)
        await asked_elsewhere(site, "told", [tool("bash", command="touch made")])
        await expect(badge(anna)).to_have_text("1")
        note = await anna.page.evaluate("(({ title, body }) => ({ title, body }))(window.__notes[0])")
        assert note == {"title": "Approval needed", "body": "Run touch made"}
        await anna.page.evaluate(HIDE, False)
        await anna.page.evaluate("window.__notes[0].onclick()")
        await expect(anna.page).to_have_url(re.compile(r"#/inbox/\d+$"))
        await expect(items(anna).get_by_role("link")).to_be_focused()
        await anna.button("Allow once").click()
        await expect(items(anna).locator(".kind")).to_have_text(["Run failed"])  # the script has no more steps


async def test_f3_a_push_message_is_shown_as_text_and_its_click_opens_the_inbox(
    chromium: Browser, own_site: Site
) -> None:
    """The worker itself, with a message as a push service delivers it."""
    site = own_site
    here = await site.session(site.project("here"))
    async with open_tab(chromium, site, here) as anna:
        context = anna.page.context
        await context.grant_permissions(["notifications"])
        await anna.page.evaluate(
            """import('/assets/js/trusted.js')
                .then(({ workerAddress }) => navigator.serviceWorker.register(workerAddress()))"""
        )
        known = context.service_workers
        worker = known[0] if known else await context.wait_for_event("serviceworker")
        await asked_elsewhere(site, "pushed", [tool("bash", command="touch made")])
        for text in (LINES[0], "x" * 5_000):
            shown = await worker.evaluate(
                """async (text) => {
                    clients.matchAll = async () => [];  // nobody looks
                    await show({ id: '1', title: text, body: text });
                    const [note] = await registration.getNotifications();
                    return { title: note.title, body: note.body, tag: note.tag };
                }""",
                text,
            )
            assert shown == {"title": text[:100], "body": text[:300], "tag": "longboat-1"}
        await worker.evaluate(
            """async () => {
                delete clients.matchAll;
                const [notification] = await registration.getNotifications();
                await open(notification.data.go).catch(() => {});  // the focus needs a real click
            }"""
        )
        await expect(anna.page).to_have_url(re.compile(r"#/inbox/1$"))


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_f3_axe_finds_nothing_in_the_inbox_wide_or_on_a_phone(
    chromium: Browser, own_site: Site, theme: str
) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    await asked_elsewhere(site, "one", [tool("bash", command="touch made")])
    await asked_elsewhere(site, "two", [tool("question", text="Which?", choices=["a", "b"])])
    await (await asked_elsewhere(site, "three", [Say("Done.")])).outcome("run-three")
    async with open_tab(chromium, site, here) as anna:
        await anna.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        await anna.page.goto(f"{anna.origin}/#/inbox")
        await expect(items(anna)).to_have_count(3)
        assert (await Axe().run(anna.page)).response["violations"] == []
        await anna.page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        await anna.picture(f"page-inbox-phone-{theme}")
        assert (await Axe().run(anna.page)).response["violations"] == []
        await expect(anna.page.locator("#inbox")).to_be_in_viewport()
        bell = anna.page.locator(".inbox .notify")
        await expect(bell).to_be_in_viewport()
        box = await bell.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        wide = await anna.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= NARROW[0]


async def test_f3_the_inbox_is_used_by_keyboard_alone(chromium: Browser, own_site: Site) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    there = await asked_elsewhere(site, "keys", [tool("bash", command="touch made")], [Say("Made.")])
    async with open_tab(chromium, site, here) as anna:
        await expect(badge(anna)).to_have_text("1")
        await anna.page.locator("#inbox").focus()
        await anna.page.keyboard.press("Enter")
        await expect(anna.page.get_by_role("heading", name="Inbox")).to_be_focused()
        for _ in range(12):
            await anna.page.keyboard.press("Tab")
            if await anna.button("Allow once").evaluate("button => button === document.activeElement"):
                break
        await anna.page.keyboard.press("Enter")
        assert await there.outcome("run-keys") == "end_turn"
        await expect(items(anna).locator(".kind")).to_have_text(["Run finished"])
        assert await anna.page.evaluate("document.activeElement !== document.body")


async def test_f3_what_others_wrote_is_text_in_the_inbox(chromium: Browser, own_site: Site) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    async with open_tab(chromium, site, here) as anna:
        await anna.page.goto(f"{anna.origin}/#/inbox")
        for number in range(0, len(LINES), 20):
            texts = LINES[number : number + 20]
            whole = "\n".join(texts)
            name = f"hostile{number}"
            site.model.add([tool("question", text=whole, choices=texts)], name=name)
            session = await site.session(site.project(name))
            await session.http.patch(f"{session.workspace}/sessions/{session.session_id}", json={"title": whole[:400]})
            await session.submit(f"[[{name}]] {whole}", name)
            await expect(items(anna).first).to_contain_text(texts[-1])
        assert await anna.page.evaluate("window.__pwned") is False


async def test_f3_the_tabs_of_a_browser_share_one_stream_of_the_inbox(chromium: Browser, own_site: Site) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    streams: list[str] = []
    async with open_tab(chromium, site, here) as anna:
        second = await anna.page.context.new_page()
        second.on("request", lambda request: streams.append(request.url))
        await second.goto(f"{anna.origin}/#/inbox")
        await expect(second.get_by_role("heading", name="Inbox")).to_be_visible()
        await asked_elsewhere(site, "shared", [tool("bash", command="touch made")])
        await expect(second.locator(".inbox-item")).to_have_count(1)
        assert not [url for url in streams if "/v1/inbox/events" in url]
        await anna.page.goto(f"{anna.origin}/stats")  # the other tab takes over
        await asked_elsewhere(site, "later", [tool("bash", command="touch made")])
        await expect(second.locator(".inbox-item")).to_have_count(2)
        await second.close()
        await anna.go(here)


async def test_f3_the_page_can_be_installed(chromium: Browser, own_site: Site) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    async with open_tab(chromium, site, here) as anna:
        session = await anna.page.context.new_cdp_session(anna.page)
        found = await session.send("Page.getAppManifest")
        assert found["errors"] == []
        manifest = json.loads(found["data"])
        assert (manifest["start_url"], manifest["display"]) == ("/", "standalone")
        for icon in manifest["icons"]:
            answer = await anna.page.request.get(anna.origin + icon["src"])
            assert answer.headers["content-type"].startswith(icon["type"])
