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
from inert import check_inert
from playwright.async_api import Browser, Locator, Route, expect
from processes import Site, open_site
from push_service import Subscriber, open_push_service
from sessions import SessionClient

from hostile import LINES
from longboat.testing import Refuse, Say
from longboat.wire.plain import plain_line

pytestmark = MARKS
pytest_plugins = ("chromium",)

# Notifications are the system's: this keeps those that a page makes, so that a test can click them.
NOTIFICATIONS = """
window.__notes = [];
window.Notification = class {
  static permission = 'granted';
  static requestPermission = async () => 'granted';
  constructor(title, options) { Object.assign(this, { title, ...options }); window.__notes.push(this); }
  close() { this.closed = true; }
};
Object.defineProperty(navigator, 'serviceWorker', { value: undefined });
"""
HIDE = "hidden => Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true })"

# The push service of a browser's maker is out of reach: this one is on the loopback.
PUSH_SERVICE = """
const subscription = ({ endpoint, keys }) => ({
  endpoint,
  toJSON: () => ({ endpoint, keys }),
  unsubscribe: async () => localStorage.removeItem('subscribed'),
});
PushManager.prototype.subscribe = async (options) => {
  localStorage.setItem('subscribed', JSON.stringify(options));
  return subscription(%s);
};
PushManager.prototype.getSubscription = async () => (localStorage.getItem('subscribed') ? subscription(%s) : null);
"""


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


async def ran_elsewhere(site: Site, name: str, *steps: Any) -> SessionClient:
    """A session in another workspace whose run may have ended."""
    site.model.add(*steps, name=name)
    session = await site.session(site.project(name))
    await session.submit(f"[[{name}]]", f"run-{name}")
    return session


async def asked_elsewhere(site: Site, name: str, *steps: Any) -> SessionClient:
    """A session in another workspace whose run waits for somebody: what is asked next stands above it."""
    site.model.add(*steps, name=name)
    session = await site.session(site.project(name))
    async with session.watch() as watch:
        await session.submit(f"[[{name}]]", f"run-{name}")
        await watch.until(lambda event: event.type in ("permission_request", "question_request"))
    return session


async def turn_on_notifications(tab: Tab) -> None:
    """From the session, once the page knows its inbox: what it finds there at first is no news."""
    await tab.page.add_init_script(NOTIFICATIONS)
    await tab.page.reload()
    await tab.live()
    await tab.page.locator("#inbox").click()
    await expect(tab.page.get_by_text("Nothing new.")).to_be_visible()
    await tab.page.go_back()
    await tab.live()
    await tab.page.locator("#notify").click()
    await expect(tab.page.locator("#notify")).to_have_attribute("aria-pressed", "true")


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
        await expect(items(anna).locator(".kind")).to_have_text(["Question", "Run finished"])
        card = items(anna).first
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
    async def act(route: Any) -> None:
        await answer(session, "once")
        await route.continue_()

    return act


async def test_f3_a_run_of_the_session_that_is_looked_at_is_no_news_and_one_elsewhere_is(
    chromium: Browser, own_site: Site
) -> None:
    site = own_site
    site.model.add([Say("Seen.")], name="seen")
    here = await site.session(site.project("here"))
    async with open_tab(chromium, site, here) as anna:
        await anna.say("[[seen]]")
        await anna.sees("Seen.")
        there = await ran_elsewhere(site, "news", [Say("Finished.")])
        assert await there.outcome("run-news") == "end_turn"
        await expect(badge(anna)).to_have_text("1")
        await anna.page.goto(f"{anna.origin}/#/inbox")
        await expect(items(anna)).to_have_count(2)
        await expect(items(anna).locator(".new")).to_have_count(1)
        await items(anna).first.get_by_role("link").click()
        await anna.sees("Finished.")
        await expect(badge(anna)).to_be_hidden()


async def test_f3_a_click_on_a_notification_leads_to_the_item(desktop_chromium: Browser, own_site: Site) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    async with open_tab(desktop_chromium, site, here) as anna:
        await turn_on_notifications(anna)
        await anna.page.evaluate(HIDE, True)
        await asked_elsewhere(site, "told", [tool("bash", command="touch made")])
        await anna.page.wait_for_function("() => window.__notes.length === 1")
        await expect(badge(anna)).to_have_text("1")
        note = await anna.page.evaluate("(({ title, body }) => ({ title, body }))(window.__notes[0])")
        assert note == {"title": "Approval needed", "body": "Run touch made"}
        await anna.page.evaluate(HIDE, False)
        await anna.page.evaluate("window.__notes[0].onclick()")
        await expect(anna.page).to_have_url(re.compile(r"#/inbox/\d+$"))
        await expect(items(anna).get_by_role("link")).to_be_focused()
        await anna.button("Allow once").click()
        await expect(items(anna).locator(".kind")).to_have_text(["Run failed"])  # the script has no more steps


async def test_a_notification_goes_when_somebody_else_answers(desktop_chromium: Browser, own_site: Site) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    async with open_tab(desktop_chromium, site, here) as anna:
        await turn_on_notifications(anna)
        await anna.page.evaluate(HIDE, True)
        first = await asked_elsewhere(site, "first", [tool("bash", command="touch one")], [Say("Made.")])
        await anna.page.wait_for_function("() => window.__notes.length === 1")
        await asked_elsewhere(site, "second", [tool("bash", command="touch two")], [Say("Made.")])
        await anna.page.wait_for_function("() => window.__notes.length === 2")
        await answer(first, "once")
        await anna.page.wait_for_function("() => window.__notes[0].closed")
        assert not await anna.page.evaluate("window.__notes[1].closed")


async def test_f3_a_push_message_is_shown_as_text_and_its_click_opens_the_inbox(
    desktop_chromium: Browser, own_site: Site
) -> None:
    """The worker itself, with a message as a push service delivers it."""
    site = own_site
    here = await site.session(site.project("here"))
    async with open_tab(desktop_chromium, site, here) as anna:
        context = anna.page.context
        await context.grant_permissions(["notifications"])
        await anna.page.evaluate(
            """import('/assets/js/trusted.js')
                .then(({ workerAddress }) => navigator.serviceWorker.register(workerAddress()))
                .then(({ active, installing, waiting }) => active || new Promise((done) => {
                  const worker = installing ?? waiting;
                  worker.addEventListener('statechange', () => worker.state === 'activated' && done());
                }))
                .then(() => {})  // only an active worker can show anything"""
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
        silent = await worker.evaluate(
            """async () => {
                await show({ id: '2', title: 'Approval needed', body: 'Run touch made' });
                clients.matchAll = async () => [{ visibilityState: 'visible' }];
                await show({ id: '3', title: 'Approval needed', body: 'Run touch made' });
                await show({ id: '../3' });
                await show(told(null));
                const shown = await registration.getNotifications();
                return Object.fromEntries(shown.map(({ tag, silent }) => [tag, silent]));
            }"""
        )
        # Whatever is pushed is shown: a browser takes the subscription away if a push shows nothing.
        assert silent == {"longboat-1": False, "longboat-2": False, "longboat-3": True, "longboat-null": True}
        await worker.evaluate(
            """async () => {
                delete clients.matchAll;
                const [notification] = await registration.getNotifications({ tag: 'longboat-1' });
                await open(notification.data.go).catch(() => {});  // the focus needs a real click
            }"""
        )
        await expect(anna.page).to_have_url(re.compile(r"#/inbox/1$"))


async def test_the_bell_subscribes_this_browser_and_unsubscribes_it(desktop_chromium: Browser) -> None:
    async with open_site("tcp") as site, open_push_service() as service:
        config = {"server": {"drain_s": 1, "push": {"allowed_networks": ["127.0.0.0/8"]}}}
        (site.path / "config" / "longboat" / "longboat.json").write_text(json.dumps(config))
        await site.serve()
        here, phone, other = await site.session(site.project("here")), Subscriber(), Subscriber()
        async with open_tab(desktop_chromium, site, here) as anna:
            await anna.page.context.grant_permissions(["notifications"])
            about = json.dumps({"endpoint": f"{service.url}/phone", "keys": phone.keys})
            await anna.page.add_init_script(PUSH_SERVICE % (about, about))
            await anna.page.reload()
            await anna.live()
            bell = anna.page.locator("#notify")
            async with anna.page.expect_response("**/v1/push/subscriptions") as stored:
                await bell.click()
            assert (await stored.value).ok
            await expect(bell).to_have_attribute("aria-pressed", "true")
            wanted = json.loads(await anna.page.evaluate("localStorage.getItem('subscribed')"))
            key = (await here.http.get("/v1/push")).json()["public_key"]
            assert wanted == {"userVisibleOnly": True, "applicationServerKey": key}
            await asked_elsewhere(site, "pushed-one", [tool("bash", command="touch one")])
            pushed = await service.pushed.get()
            assert (pushed.path, phone.decrypt(pushed.body)["body"]) == ("/phone", "pushed-one: Run touch one")
            async with anna.page.expect_response("**/v1/push/subscriptions?*") as deleted:
                await bell.click()
            assert (await deleted.value).ok
            assert (await deleted.value).request.method == "DELETE"
            await expect(bell).to_have_attribute("aria-pressed", "false")
            assert await anna.page.evaluate("localStorage.getItem('subscribed')") is None
            # Only a browser that is still subscribed hears of the next one.
            body = {"client_id": "ben", "endpoint": f"{service.url}/other", "keys": other.keys}
            assert (await here.http.post("/v1/push/subscriptions", json=body)).is_success
            await asked_elsewhere(site, "pushed-two", [tool("bash", command="touch two")])
            assert (await service.pushed.get()).path == "/other"
            assert service.pushed.empty()


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_f3_axe_finds_nothing_in_the_inbox_wide_or_on_a_phone(
    chromium: Browser, own_site: Site, theme: str
) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    await asked_elsewhere(site, "one", [tool("bash", command="touch made")])
    await asked_elsewhere(site, "two", [tool("question", text="Which?", choices=["a", "b"])])
    await (await ran_elsewhere(site, "three", [Say("Done.")])).outcome("run-three")
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
        await expect(anna.button("Allow once")).to_be_visible()
        for _ in range(12):
            await anna.page.keyboard.press("Tab")
            if await anna.button("Allow once").evaluate("button => button === document.activeElement"):
                break
        await anna.page.keyboard.press("Enter")
        assert await there.outcome("run-keys") == "end_turn"
        await expect(items(anna).locator(".kind")).to_have_text(["Run finished"])
        await anna.page.wait_for_function("() => document.activeElement !== document.body")


async def test_what_waits_stands_above_what_ended_however_old_it_is(chromium: Browser, own_site: Site) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    await asked_elsewhere(site, "oldest", [tool("bash", command="touch made")])
    for name in ("one", "two", "three"):
        await (await ran_elsewhere(site, name, [Say("Done.")])).outcome(f"run-{name}")
    asking = await asked_elsewhere(site, "newer", [tool("question", text="Which?", choices=["a", "b"])], [Say("Ok.")])
    await (await ran_elsewhere(site, "newest", [Say("Done.")])).outcome("run-newest")

    async def two_at_a_time(route: Route) -> None:
        url = route.request.url
        await route.continue_(url=url if "limit=" in url else f"{url}&limit=2")

    async with open_tab(chromium, site) as anna:
        await anna.page.route("**/v1/inbox/events**", lambda route: route.abort())  # its first page has 50 items
        await anna.page.route(re.compile(r"/v1/inbox\?"), two_at_a_time)
        await anna.go(here)
        await anna.page.locator("#inbox").click()
        kinds = items(anna).locator(".kind")
        await expect(kinds).to_have_text(["Question", "Approval needed", "Run finished"])
        await anna.button("Show more").click()
        await expect(kinds).to_have_text(
            ["Question", "Approval needed", "Run finished", "Run finished", "Run finished"]
        )
        await anna.button("Show more").click()
        await expect(kinds).to_have_count(6)
        await expect(kinds.last).to_have_text("Run finished")
        await anna.button("Deny", within=items(anna).nth(1)).click()
        await anna.button("Deny", within=items(anna).nth(1)).click()
        await items(anna).first.get_by_role("radio", name="b").check()
        await anna.button("Answer").click()
        assert await asking.outcome("run-newer") == "end_turn"


async def test_the_inbox_has_keys_to_move_answer_open_and_go_back(chromium: Browser, own_site: Site) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    ended = await ran_elsewhere(site, "ended", [Say("Finished.")])
    await ended.outcome("run-ended")
    shell = await asked_elsewhere(site, "shell", [tool("bash", command="touch made")], [Say("Made.")])
    asking = await asked_elsewhere(site, "asking", [tool("question", text="Which?", choices=["a", "b"])], [Say("Ok.")])
    risky = await asked_elsewhere(site, "risky", [tool("bash", command="rm -rf ../other")], [Say("Gone.")])
    async with open_tab(chromium, site, here) as anna:
        keys = anna.page.keyboard
        link = items(anna).get_by_role("link")
        await anna.page.locator("#inbox").click()
        await expect(items(anna).locator(".kind")).to_have_text(
            ["Approval needed", "Question", "Approval needed", "Run finished"]
        )
        await keys.press("j")
        await expect(link.nth(0)).to_be_focused()
        hint = items(anna).nth(0).locator(".inbox-keys")
        await expect(hint).to_contain_text("type yes and press Enter")
        await keys.press("ArrowDown")
        await expect(link.nth(1)).to_be_focused()
        await expect(hint).to_be_hidden()
        await keys.press("ArrowDown")
        await keys.press("k")
        await expect(link.nth(1)).to_be_focused()
        await keys.press("2")
        assert await asking.outcome("run-asking") == "end_turn"
        assert site.model.requests[-1].body["messages"][-1]["content"].endswith("b")
        await expect(items(anna).locator(".kind")).to_have_text(
            ["Approval needed", "Approval needed", "Run finished", "Run finished"]
        )
        await expect(link.nth(1)).to_be_focused()  # the item after it
        await keys.press("k")
        await keys.press("j")
        await keys.press("y")
        assert await shell.outcome("run-shell") == "end_turn"
        # No single key allows a dangerous call; yes and Enter do.
        await expect(items(anna).locator(".kind").nth(1)).to_have_text("Run finished")
        await link.nth(0).focus()
        for key in "ysa":
            await keys.press(key)
        await expect(items(anna).nth(0).locator(".kind")).to_have_text("Approval needed")
        await keys.type("yes")
        await expect(hint).to_have_text("Press Enter to allow this call once.")
        await keys.press("Enter")
        assert await risky.outcome("run-risky") == "end_turn"
        # Enter opens a session; Back returns to its item, and Escape to where the inbox was opened.
        await expect(items(anna).locator(".kind")).to_have_text(["Run finished"] * 4)
        await link.nth(2).focus()
        await keys.press("j")
        await keys.press("Enter")
        await anna.sees("Finished.")
        await anna.page.go_back()
        await expect(link.nth(3)).to_be_focused()
        await keys.press("Escape")
        await expect(anna.page).to_have_url(re.compile(f"{ended.session_id}$"))
        await anna.go(here)
        await anna.page.locator("#inbox").click()
        await expect(anna.page.get_by_role("heading", name="Inbox")).to_be_focused()
        await keys.press("Escape")
        await expect(anna.page).to_have_url(re.compile(f"{here.session_id}$"))


async def test_a_key_that_was_meant_for_an_item_that_has_gone_answers_nothing(
    chromium: Browser, own_site: Site
) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    first = await asked_elsewhere(site, "first", [tool("bash", command="touch one")], [Say("Made.")])
    second = await asked_elsewhere(site, "second", [tool("bash", command="touch two")], [Say("Made.")])
    async with open_tab(chromium, site, here) as anna:
        await anna.page.goto(f"{anna.origin}/#/inbox")
        await expect(items(anna)).to_have_count(2)
        await anna.page.evaluate("performance.now = () => 0")  # no time passes
        await anna.page.keyboard.press("j")
        await expect(items(anna).get_by_role("link").first).to_be_focused()
        await answer(second, "once")
        await expect(items(anna).first).to_contain_text("touch one")
        await expect(items(anna).get_by_role("link").first).to_be_focused()
        await anna.page.keyboard.press("y")
        assert len((await first.http.get(f"{first.workspace}/permissions")).json()["items"]) == 1
        await anna.page.evaluate("performance.now = () => 600")
        await anna.page.keyboard.press("y")
        assert await first.outcome("run-first") == "end_turn"


async def answer(session: SessionClient, word: str) -> None:
    """Ben's answer to the permission that waits."""
    ask = (await session.http.get(f"{session.workspace}/permissions")).json()["items"][0]["id"]
    body = {"answer": word, "client_id": "ben"}
    assert (await session.http.post(f"{session.workspace}/permissions/{ask}", json=body)).status_code == 200


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
        await check_inert(anna)


async def test_f3_the_errors_of_failed_runs_are_text_in_the_inbox(chromium: Browser, own_site: Site) -> None:
    """Providers and their proxies write them."""
    site = own_site
    here = await site.session(site.project("here"))
    session = await site.session(site.project("failing"))
    seen = 0
    async with open_tab(chromium, site, here) as anna:
        await anna.page.goto(f"{anna.origin}/#/inbox")
        for number, payload in enumerate(LINES):
            name = f"failing{number}"
            site.model.add([Refuse(400, message=f"{name}: `code` {payload}")], name=name)
            assert await session.outcome(await session.submit(f"[[{name}]] {payload}", name)) == "error"
            error = items(anna).first.locator(".wrong")
            await expect(error).to_contain_text(f"{name}: code")
            shown = await error.text_content() or ""
            seen += plain_line(payload)[:60].strip() in shown
        await check_inert(anna)
        assert seen > 0.9 * len(LINES), "they did come through"


async def test_f3_the_tabs_of_a_browser_share_one_stream_of_the_inbox(chromium: Browser, own_site: Site) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    streams: list[str] = []
    async with open_tab(chromium, site) as anna:
        async with anna.page.expect_request("**/v1/inbox/events**"):
            await anna.go(here)
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


async def test_f3_the_page_can_be_installed(desktop_chromium: Browser, own_site: Site) -> None:
    site = own_site
    here = await site.session(site.project("here"))
    async with open_tab(desktop_chromium, site, here) as anna:
        session = await anna.page.context.new_cdp_session(anna.page)
        found = await session.send("Page.getAppManifest")
        assert found["errors"] == []
        manifest = json.loads(found["data"])
        assert (manifest["start_url"], manifest["display"]) == ("/", "standalone")
        for icon in manifest["icons"]:
            answer = await anna.page.request.get(anna.origin + icon["src"])
            assert answer.headers["content-type"].startswith(icon["type"])
