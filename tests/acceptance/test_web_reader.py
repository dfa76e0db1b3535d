"""What a screen reader tells of the page: what at once, what in a pause, what never; and where the focus is (F3).

All that the two regions were given is kept, word by word, so that nothing is told besides.
"""

import json

from browser import MARKS, Tab, call, open_tab, open_wire
from imported import imported, text, turn
from playwright.async_api import Browser, Route, expect
from processes import Site
from sessions import SessionClient

from longboat.testing import Pause, Refuse, Say

pytestmark = MARKS
pytest_plugins = ("chromium",)

KEEP = """
window.__told = { polite: [], assertive: [], toasts: [] };
for (const id of Object.keys(window.__told))
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) for (const node of addedNodes) window.__told[id].push(node.textContent);
  }).observe(document.getElementById(id), { childList: true });
"""


async def listen(tab: Tab) -> None:
    assert await tab.page.locator("#polite").get_attribute("aria-live") == "polite"
    assert await tab.page.locator("#assertive").get_attribute("role") == "alert"
    assert await tab.page.locator("#toasts").get_attribute("role") == "status"
    await tab.page.evaluate(KEEP)


async def told(tab: Tab, region: str) -> list[str]:
    said: list[str] = await tab.page.evaluate(f"window.__told[{json.dumps(region)}]")
    return said


async def hears(tab: Tab, region: str, *words: str) -> None:
    """All that was told there so far, in order."""
    await tab.page.wait_for_function(
        "([region, count]) => window.__told[region].length >= count", arg=[region, len(words)]
    )
    assert await told(tab, region) == list(words)


async def test_f3_an_ask_is_told_at_once_and_the_answer_when_it_is_whole(chromium: Browser, site: Site) -> None:
    gate = site.model.gate("reader")
    site.model.add(
        [Say("I make it."), call("bash", command="touch made")],
        [call("question", text="Which colour?", choices=["red", "green"])],
        [Say("It is "), Pause(gate), Say("**done**.")],
        name="reader",
    )
    session = await site.session(site.project("reader"))
    async with open_tab(chromium, site, session) as anna:
        await listen(anna)
        keys = anna.page.keyboard
        await anna.say("[[reader]]")
        await expect(anna.asks).to_have_count(1)
        await expect(anna.prompt, "an ask does not take the focus").to_be_focused()
        (asked,) = (await session.http.get(f"{session.workspace}/permissions")).json()["items"]
        await hears(anna, "assertive", f"Approval needed: {asked['title']}")
        assert await told(anna, "polite") == [], "words that stream are not told"
        await anna.button("Allow once").focus()
        await keys.press("Enter")
        await expect(anna.prompt, "after an answer the focus is in the prompt").to_be_focused()
        allowed = f"{asked['title']}: allowed once by you."
        await hears(anna, "polite", allowed)
        await hears(anna, "assertive", f"Approval needed: {asked['title']}", "Question: Which colour?")
        await anna.asks.get_by_role("radio", name="green").focus()
        await keys.press("Space")
        await keys.press("Enter")
        await expect(anna.prompt).to_be_focused()
        answered = "Answered by you: “green” (Which colour?)"
        await hears(anna, "polite", allowed, answered)
        await gate.reached()
        await anna.sees("It is")
        await hears(anna, "polite", allowed, answered)
        gate.open()
        await anna.idle()
        await hears(anna, "polite", allowed, answered, "Answer: It is **done**.")
        assert len(await told(anna, "assertive")) == 2


async def test_f3_who_was_faster_is_told_and_the_focus_is_not_lost(chromium: Browser, site: Site) -> None:
    site.model.add([call("question", text="Who is it?")], [Say("Fine.")], name="faster")
    session = await site.session(site.project("faster"))
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await listen(anna)
        await anna.say("[[faster]]")
        await anna.asks.get_by_label("Your answer").press_sequentially("not y")
        await ben.asks.get_by_label("Your answer").fill("ben")
        await ben.button("Answer").click()
        await expect(anna.prompt).to_be_focused()
        await hears(anna, "polite", "Answered by ben: “ben” (Who is it?)", "Answer: Fine.")


async def test_f3_a_lost_connection_is_told_once_and_that_it_is_back(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("reader-line"))
    async with open_wire(site.port) as wire, open_tab(chromium, site, session, port=wire.port) as anna:
        await listen(anna)
        lost, back = "Connection lost. Reconnecting.", "Reconnected. The page is up to date."
        await wire.cut()
        await hears(anna, "polite", lost)
        for _ in range(2):  # attempts
            await anna.page.wait_for_event("requestfailed", lambda request: "/events" in request.url)
        await hears(anna, "polite", lost)
        await wire.mend()
        await hears(anna, "polite", lost, back)
        assert await told(anna, "assertive") == []


async def test_f3_a_prompt_that_is_refused_is_told_with_the_reason_and_the_focus_follows_it(
    chromium: Browser, site: Site
) -> None:
    session = await site.session(site.project("reader-refused"))
    async with open_tab(chromium, site, session) as anna:
        await listen(anna)

        async def refuse(route: Route) -> None:
            await route.fulfill(status=413, body='{"code": "body_too_large", "message": "It is too large."}')

        await anna.page.route("**/agent", refuse)
        for number, (name, typed) in enumerate((("Discard", ""), ("Edit", "precious")), 1):
            await anna.say("precious")
            await hears(anna, "polite", *["Not sent. It is too large."] * number)
            refused = anna.page.locator(".outgoing > li.refused")
            await anna.button(name, within=refused).focus()
            await anna.page.keyboard.press("Enter")
            await expect(refused).to_have_count(0)
            await expect(anna.prompt).to_be_focused()
            await expect(anna.prompt).to_have_value(typed)
        assert (await told(anna, "toasts"), await told(anna, "assertive")) == ([], [])  # it stands at the prompt


async def test_f3_a_dialog_gives_the_focus_back_however_it_is_closed(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("reader-dialog"))
    async with open_tab(chromium, site, session) as anna:
        keys = anna.page.keyboard
        for item, how in (("Rename…", "Escape"), ("Rename…", "Enter"), ("Delete…", "Escape"), ("Delete…", "Enter")):
            await anna.button("Session").focus()
            await keys.press("Enter")
            await anna.page.get_by_role("menuitem", name=item).focus()
            await keys.press("Enter")
            dialog = anna.page.get_by_role("dialog")
            await expect(dialog).to_be_visible()
            assert await dialog.evaluate("(dialog) => dialog.contains(document.activeElement)")
            if item == "Rename…":
                await keys.type("Another title")
            await keys.press(how)  # Enter deletes nothing: Cancel has the focus
            await expect(dialog).to_have_count(0)
            await expect(anna.button("Session")).to_be_focused()
        await expect(anna.title).to_have_text("Another title")


# How a run ended, in one sentence


async def test_f3_a_failed_run_is_told_once_in_the_transcript_and_in_the_pause(chromium: Browser, site: Site) -> None:
    site.model.add([Refuse(401, message="no such key")], name="fails")
    session = await site.session(site.project("fails"))
    async with open_tab(chromium, site, session) as anna:
        await listen(anna)
        await anna.say("[[fails]]")
        await expect(anna.transcript.locator(".finish:visible")).to_have_count(1)
        await anna.idle()
        (run,) = await session.ledger()
        assert run["error"].count("failed") + run["error"].count("refused") <= 1, run["error"]
        await expect(anna.transcript.locator(".finish:visible > span")).to_have_text(run["error"])
        await hears(anna, "polite", run["error"])


async def ends(session: SessionClient) -> SessionClient:
    finishes = [
        {"reason": "error", "title": "Longboat failed", "detail": "ValueError. See the server's log for details."},
        {"reason": "error", "title": "", "detail": "Nobody knows."},
        {"reason": "error", "title": "", "detail": ""},
        {"reason": "error", "title": "<b>The model</b>", "detail": ""},
        {"reason": "interrupted", "title": "Interrupted", "detail": "The server stopped."},
        {"reason": "max_tokens", "title": "", "detail": ""},
        {"reason": "canceled", "title": "", "detail": "by ben"},
        {"reason": "canceled", "title": "", "detail": "by anna"},
    ]
    return await imported(
        session,
        "Ends",
        [turn(number, text("go"), [{"type": "finish"} | each]) for number, each in enumerate(finishes)],
    )


async def test_f3_every_end_is_one_sentence(chromium: Browser, site: Site) -> None:
    session = await ends(await site.session(site.project("ends")))
    async with open_tab(chromium, site, session) as anna:
        await expect(anna.transcript.locator(".finish:visible")).to_have_text(
            [
                "Longboat failed: ValueError. See the server's log for details.",
                "Failed: Nobody knows.",
                "Failed",
                "<b>The model</b>",
                "Interrupted: The server stopped.",
                "Cut off: the answer reached the model’s length limit",
                "Canceled by ben",
                "Canceled by you",
            ]
        )
