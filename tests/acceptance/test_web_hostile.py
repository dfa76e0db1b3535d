"""Whatever others wrote is shown as text and does nothing: prompts, answers, output, names, titles, asks (F3).

The page's own policy would stop most of it too: that it was not needed is counted as well (see `browser`).
"""

import json
import re
from shlex import quote

import pytest
from browser import MARKS, NARROW, Tab, call, open_tab
from imported import called, imported, text
from inert import INERT, check_inert
from playwright.async_api import Browser, expect
from processes import Site
from sessions import SessionClient

from hostile import LINES, PAYLOADS
from longboat.testing import Pause, Refuse, Say

pytestmark = MARKS
pytest_plugins = ("chromium",)

RENDERED = "() => [...document.querySelectorAll('.prose > .tail')].every((tail) => !tail.textContent)"


def hostile_turn(number: int, payload: str) -> dict[str, object]:
    """The payload in every part that a message can have."""
    calls, results = called(f"c{number}", payload[:60] or "x", {"command": payload, payload[:50]: payload}, payload)
    shell, output = called(f"s{number}", "bash", {"command": payload}, payload)
    file = {"type": "file", "name": payload[:200], "media_type": "text/plain", "text": payload}
    finish = {"type": "finish", "reason": "error", "title": payload, "detail": payload}
    return {
        "run_id": f"r{number}",
        "client_id": payload[:100],
        "messages": [
            ("user", [*text(payload), file]),
            ("assistant", [{"type": "reasoning", "text": payload}, *text(payload), *calls, *shell]),
            ("tool", [*results, *output]),
            ("assistant", [*text(f"a {payload} b\n\n{payload}\n"), finish]),
        ],
    }


@pytest.fixture(params=["chromium", "desktop_chromium"])
def either_chromium(request: pytest.FixtureRequest) -> Browser:
    found: Browser = request.getfixturevalue(request.param)
    return found


async def test_the_watch_of_these_tests_sees_a_breach(either_chromium: Browser, site: Site) -> None:
    async with open_tab(either_chromium, site) as tab:
        await tab.go()
        async with tab.page.expect_console_message(lambda message: "img-src" in message.text):
            await tab.page.evaluate("() => void (new Image().src = 'http://127.0.0.1:1/x.png')")
        async with tab.page.expect_console_message(lambda message: "TrustedHTML" in message.text):
            await tab.page.evaluate("() => { try { document.body.innerHTML = '<b>x</b>'; } catch {} }")
        await tab.page.evaluate("() => document.body.append(document.createElement('iframe'))")
        assert len(await tab.page.evaluate(INERT)) == 1
        assert len(tab.faults) >= 2
        tab.faults.clear()


async def test_f3_a_transcript_full_of_markup_is_text(desktop_chromium: Browser, site: Site) -> None:
    assert len(PAYLOADS) >= 100
    beside = await site.session(site.project("hostile"))
    turns = [hostile_turn(number, payload) for number, payload in enumerate(PAYLOADS)]
    todos = [{"text": payload, "state": "pending"} for payload in LINES[:50]]
    session = await imported(beside, LINES[0], turns, todos=todos)
    for title in LINES[1:60]:
        await imported(beside, title, [])
    seen: set[str] = set()
    async with open_tab(desktop_chromium, site, session) as tab:
        await expect(tab.title).to_have_text(LINES[0])
        await expect(tab.page.locator(".todos li").first).to_contain_text(LINES[0])
        while PAYLOADS[0] not in seen:
            await tab.page.evaluate("for (const box of document.querySelectorAll('main details')) box.open = true")
            await tab.page.wait_for_function(RENDERED)
            await check_inert(tab)
            shown = set(await tab.page.locator(".said").all_text_contents())
            assert shown - seen, "nothing new came into view"
            seen |= shown
            if PAYLOADS[0] not in seen:
                await older(tab, shown)
        await search_for_markup(tab)
    assert {clean(payload) for payload in PAYLOADS} <= {clean(said) for said in seen}


MORE_OR_ALL = """(shown) =>
    document.querySelectorAll('.hits li').length > shown || document.querySelector('.results > button').hidden"""


async def search_for_markup(tab: Tab) -> None:
    """What was said, found again: in titles, snippets and marks."""
    hits = tab.page.locator(".hits li")
    for words in ("window", "img onerror", '"window pwned"', "svg"):
        await tab.page.get_by_role("searchbox", name="Search sessions").fill(words)
        await expect(hits.locator("mark").first).to_have_text(re.compile(words.strip('"').replace(" ", ".*|"), re.I))
        more = tab.page.locator(".results").get_by_role("button", name="Show more")
        while await more.is_visible():
            shown = await hits.count()
            await more.click()
            await tab.page.wait_for_function(MORE_OR_ALL, arg=shown)
        await check_inert(tab)


def clean(said: str) -> str:
    return "".join(char for char in said if char.isprintable() and char not in "\ufffd\ufeff\u202e␀␛␇").strip()


async def older(tab: Tab, shown: set[str]) -> None:
    """Scroll up until others are there."""
    await tab.page.wait_for_function(
        """(known) => {
          const scroller = document.querySelector('.scroller');
          const rows = [...scroller.querySelectorAll('.said')];
          if (rows.some((row) => !known.includes(row.textContent))) return true;
          scroller.scrollTop = 0;
          return false;
        }""",
        arg=[*shown],
    )


async def test_f3_markup_that_streams_in_asks_or_names_a_file_is_text(desktop_chromium: Browser, site: Site) -> None:
    gate = site.model.gate("hostile")
    everything = "\n\n".join(PAYLOADS)
    halves = [Say(piece) for payload in PAYLOADS for piece in (payload[:7], payload[7:] + "\n\n") if piece]
    directory = site.project("hostile <img src=x onerror=window.__pwned=1>")
    name = "<img src=x onerror=window.__pwned=1>.txt"
    (directory / name).write_text(everything)
    removes = f"mkdir {quote(LINES[1])}; rm -f '{name}' {' '.join(map(quote, LINES))} # {LINES[0]}"
    site.model.add([*halves, Pause(gate), call("bash", command=removes)], name="h0")
    site.model.add([call("view", path=name)], [call("<svg onload=window.__pwned=1>", x=1)], [Say("Seen.")], name="h1")
    site.model.add([call("write", path="<b>x.html", content=everything)], [Say("Written.")], name="h2")
    site.model.add([call("question", text=everything[:3900], choices=LINES[:15])], [Say("Told.")], name="h3")
    site.model.add([call("todos", items=[{"text": line} for line in LINES[:40]])], [Say("Planned.")], name="h4")
    site.model.add([Refuse(400, message="".join(LINES[:20]))], name="h5")
    site.model.add([call("agent", prompt=f"{LINES[0]} [[h7]]")], [Say("Sent.")], name="h6")
    site.model.add([Say(everything)], name="h7")
    session = await site.session(directory)
    async with open_tab(desktop_chromium, site, session) as tab:
        await tab.say("[[h0]]")
        await tab.sees(clean(PAYLOADS[-1])[:20])
        await check_inert(tab)
        await tab.delivery("Queue")
        await tab.say(everything)
        await expect(tab.queue).to_be_visible()
        await check_inert(tab)
        await tab.button("Clear queue", within=tab.queue).click()
        gate.open()
        await expect(tab.asks).to_be_visible()
        await expect(tab.asks.locator("mark.risky")).to_contain_text(clean(quote(LINES[-1])))
        await tab.prompt.fill(everything)
        await expect(tab.page.locator(".answering .effect")).to_contain_text("Enter denies this call")
        await check_inert(tab)
        await tab.prompt.fill("")
        await tab.button("Stop").click()
        await tab.idle()
        await seen(tab, "[[h1]]", "Seen.")
        await tab.say("[[h2]]")
        await expect(tab.asks.locator("table.diff")).to_be_visible()
        await check_inert(tab)
        await tab.button("Allow once").click()
        await tab.sees("Written.")
        await expect(tab.page.locator(".changed")).to_be_visible()
        await tab.page.locator(".changed").click()
        await expect(tab.page.locator(".review-body")).to_contain_text("No lines to show")  # it has a NUL
        await check_inert(tab)
        await tab.page.keyboard.press("Escape")
        await tab.say("[[h3]]")
        await tab.asks.get_by_role("radio").first.check()
        await tab.prompt.fill("2")
        await expect(tab.page.locator(".answering .effect")).to_contain_text("Enter answers the question with")
        await check_inert(tab)
        await tab.prompt.fill("")
        await tab.button("Answer").click()
        await tab.sees("Told.")
        for prompt, wanted in (("[[h4]]", "Planned."), ("[[h5]]", LINES[0]), ("[[h6]]", "Sent.")):
            await seen(tab, prompt, wanted)
        await tab.page.wait_for_function(
            """() => {
              for (const box of document.querySelectorAll('main details')) box.open = true;
              return document.querySelector('.nested .prose > .blocks')?.textContent;
            }"""
        )
        await check_inert(tab)
        await tab.prompt.press_sequentially("@<img")
        await expect(tab.page.get_by_role("listbox").get_by_role("option").first).to_contain_text("<img src=x")
        await check_inert(tab)
        await tab.prompt.fill("")
        await names(tab, session)


async def test_f3_markup_in_the_palette_and_the_search_is_text(desktop_chromium: Browser, site: Site) -> None:
    directory = site.project("hostile palette")
    commands = directory / ".agents" / "commands"
    commands.mkdir(parents=True)
    described = json.dumps(LINES[0][:200])
    (commands / "attack.md").write_text(f"---\ndescription: {described}\n---\nDo nothing.\n")
    beside = await site.session(directory)
    for title in LINES[1:8]:
        await imported(beside, title, [])
    rows = [hostile_turn(number, payload) for number, payload in enumerate(PAYLOADS)]
    session = await imported(beside, LINES[0], rows)
    async with open_tab(desktop_chromium, site, session) as tab:
        await expect(tab.title).to_have_text(LINES[0])
        await tab.page.keyboard.press("ControlOrMeta+k")
        palette = tab.page.get_by_role("dialog", name="Command palette")
        await expect(palette.get_by_text(LINES[7])).to_be_visible()
        await check_inert(tab)
        await tab.page.keyboard.type("/attack")
        await expect(palette.get_by_role("option")).to_contain_text([LINES[0][:30]])
        for line in LINES[:30]:
            await palette.get_by_role("combobox").fill(line)
            await check_inert(tab)
        await tab.page.keyboard.press("Escape")
        await tab.page.keyboard.press("ControlOrMeta+f")
        field = tab.page.get_by_role("searchbox", name="Search this session")
        for line in LINES[:30]:
            await field.fill(line)
            await expect(tab.page.locator(".finder [role=status]")).to_contain_text(" of ")
            await check_inert(tab)


async def test_f3_markup_in_the_set_up_and_on_a_new_session_is_text(desktop_chromium: Browser, site: Site) -> None:
    """What providers, the repository and titles say: names, refusals, models, a branch."""
    session = await site.session(site.project("hostile set-up"))
    await imported(session, LINES[2], [])
    providers = [
        {"id": f"p{number}", "name": line, "connected": True, "source": line, "key": "optional", "url": "required"}
        | {"base_url": line, "key_page": f"javascript:window.__pwned=1//{line}"}
        for number, line in enumerate(LINES)
    ]
    models = [{"name": f"p1/{line}", "ready": True, "context_window": 1} for line in LINES[:50]]
    told: list[dict[str, object]] = [{"ok": False, "problem": "\n".join(LINES)}, {"ok": True, "models": models}]
    welcome = {"branch": LINES[3], "suggestions": [{"title": line, "prompt": line} for line in LINES]}
    async with open_tab(desktop_chromium, site) as tab:
        answers = iter(told)
        await tab.page.route("**/welcome", lambda route: route.fulfill(json=welcome))
        await tab.page.route("**/v1/providers", lambda route: route.fulfill(json={"items": providers, "model": None}))
        await tab.page.route("**/check", lambda route: route.fulfill(json=next(answers)))
        await tab.page.goto(f"{tab.origin}/#/{session.workspace.rpartition('/')[2]}")
        main, dialog = tab.page.locator("#main"), tab.page.get_by_role("dialog")
        await expect(main).to_contain_text(LINES[2])
        await expect(main).to_contain_text(LINES[3])
        await check_inert(tab)
        await tab.say("/connect")
        await dialog.get_by_role("list", name="Providers").get_by_role("button").nth(1).click()
        await check_inert(tab)
        await dialog.get_by_label("Base URL").fill("http://127.0.0.1:1/v1")
        await tab.button("Test", within=dialog).click()
        await expect(dialog.get_by_role("alert")).to_contain_text(LINES[0])
        await check_inert(tab)
        await tab.button("Test", within=dialog).click()
        await expect(dialog).to_contain_text(LINES[0])
        await expect(dialog.get_by_role("radio")).to_have_count(50)
        await check_inert(tab)


async def seen(tab: Tab, prompt: str, wanted: str) -> None:
    await tab.say(prompt)
    await tab.sees(wanted)
    await tab.idle()
    await tab.page.evaluate("for (const box of document.querySelectorAll('main details')) box.open = true")
    await check_inert(tab)


async def names(tab: Tab, session: SessionClient) -> None:
    """Titles of sessions, the names of clients, the list of workspaces, the page of numbers."""
    for line in LINES[:5]:
        answer = await session.http.patch(f"{session.workspace}/sessions/{session.session_id}", json={"title": line})
        assert answer.status_code == 200, answer.text
        await expect(tab.title).to_have_text(line)
        refused = await session.http.get(f"{session.workspace}/events", params={"client_id": line})
        assert refused.status_code == 400
    await check_inert(tab)
    await tab.button("Session").click()
    await tab.page.get_by_role("menuitem", name="Delete…").click()
    await check_dialog(tab, LINES[4])
    await tab.page.goto(f"{tab.origin}/#/")
    await expect(tab.page.locator(".workspace-list")).to_contain_text("hostile <img")
    await check_inert(tab)
    await tab.page.goto(f"{tab.origin}/stats")
    await expect(tab.page.locator("#charts")).to_contain_text(LINES[4])
    await check_inert(tab)


async def check_dialog(tab: Tab, said: str) -> None:
    dialog = tab.page.get_by_role("dialog")
    await expect(dialog).to_contain_text(said)
    assert await dialog.locator("img, svg, script, iframe").count() == 0
    await tab.button("Cancel", within=dialog).click()


async def test_f3_markup_in_the_address_and_in_what_the_browser_keeps_is_text(
    desktop_chromium: Browser, site: Site
) -> None:
    async with open_tab(desktop_chromium, site, size=NARROW) as tab:
        await tab.go()
        for key, value in (("theme", LINES[0]), ("split", LINES[1]), ("prompts", LINES[:20]), ("name", LINES[2])):
            await tab.page.evaluate(
                "([key, value]) => localStorage.setItem(key, value)", [f"longboat.{key}", json.dumps(value)]
            )
        await tab.page.reload()
        await expect(tab.page.get_by_role("dialog", name="Choose a name")).to_be_visible()
        assert await tab.page.evaluate("window.__pwned") is False
        await tab.page.get_by_label("Your name").fill("vera")
        await tab.page.get_by_label("Your name").press("Enter")
        for payload in LINES[::12]:
            await tab.page.evaluate("(hash) => { location.hash = hash }", f"#/{payload}/{payload}")
            await expect(tab.page.locator("#connection")).to_have_attribute("data-state", "refused")
            assert await tab.page.evaluate("window.__pwned") is False
        assert tab.faults == []
