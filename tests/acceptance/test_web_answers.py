"""Answers by typing and by single keys on the page, and how dangerous calls look."""

import asyncio

import pytest
from browser import MARKS, NARROW, Tab, open_tab, open_wire
from browser import call as tool
from playwright.async_api import Browser, Locator, Route, expect
from processes import Site
from sessions import SessionClient

from longboat.testing import Pause, Say

pytestmark = MARKS
pytest_plugins = ("chromium",)

DANGEROUS = "mkdir -p build && rm -rf build/* && git push --force"
# A request counts as seen half a second after it appeared. The clock of the page is moved, not waited for.
SEEN_MS, ALONE_MS = 600, 500

# Keys that follow each other at once, whatever else this machine does.
TYPE = """(field, text) => {
  for (const key of text) {
    field.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    field.value += key;
    field.dispatchEvent(new InputEvent('input', { bubbles: true }));
  }
}"""

# What the badges of keys on buttons show; and how wide the buttons are.
SHOWN = """(badges) => badges.map((badge) => {
  const sign = getComputedStyle(badge, '::after');
  return badge.textContent + (sign.visibility === 'visible' && sign.content !== 'none' ? JSON.parse(sign.content) : '');
})"""
WIDTHS = "(row) => [...row.children].map((button) => button.getBoundingClientRect().x)"


def effect(tab: Tab) -> Locator:
    return tab.page.locator(".answering .effect")


async def asked(tab: Tab, text: str) -> Locator:
    """The card of a request, which the person has had the time to see."""
    card = tab.asks.filter(has_text=text)
    await expect(card).to_be_visible()
    await expect(effect(tab)).to_be_visible()
    await tab.page.clock.run_for(SEEN_MS)
    return card


async def press(tab: Tab, key: str) -> None:
    """A key, and the pause after it that makes it an answer."""
    await tab.prompt.press(key)
    await tab.page.clock.run_for(ALONE_MS)


async def pending(session: SessionClient, kind: str = "permissions") -> list[str]:
    return [ask["id"] for ask in (await session.http.get(f"{session.workspace}/{kind}")).json()["items"]]


def sent_back(site: Site) -> str:
    result: str = site.model.requests[-1].body["messages"][-1]["content"]
    return result


async def test_what_is_typed_while_a_question_waits_answers_it(chromium: Browser, site: Site) -> None:
    """It became a prompt that waited behind the question for ever."""
    site.model.add([tool("question", text="How to round?", choices=["Up", "Down"])], [Say("Rounded.")], name="typed")
    session = await site.session(site.project("typed"))
    async with open_tab(chromium, site, session) as anna:
        await anna.page.clock.install()
        await anna.say("[[typed]]")
        await asked(anna, "How to round?")
        await expect(effect(anna)).to_have_text("Press 1–2 to choose; or type your answer.")
        await anna.prompt.fill("Half-even please")
        await expect(effect(anna)).to_have_text("Enter answers the question with “Half-even please”.")
        await anna.prompt.press("Enter")
        await anna.sees("Rounded.")
        await anna.idle()
        assert sent_back(site) == "Half-even please"
        await expect(anna.prompt).to_have_value("")
        await expect(effect(anna)).to_be_hidden()
        await expect(anna.tools.locator(".tool-said")).to_have_text("answered by you: “Half-even please”")
        assert len(await session.ledger()) == 1


async def test_a_typed_text_denies_a_call_and_a_key_or_the_button_sends_it_as_a_prompt(
    chromium: Browser, site: Site
) -> None:
    site.model.add([tool("bash", command="touch a")], [tool("bash", command="touch b")], name="instead")
    directory = site.project("instead")
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna:
        await anna.page.clock.install()
        await anna.say("[[instead]]")
        await asked(anna, "touch a")
        await anna.prompt.fill("Use notes.txt instead")
        await expect(effect(anna)).to_have_text("Enter denies this call and tells the agent what to do instead.")
        await anna.prompt.press("Enter")
        await asked(anna, "touch b")
        assert "Use notes.txt instead" in sent_back(site)
        await anna.prompt.fill("First of all, hurry")
        await anna.prompt.press("Alt+Enter")
        await expect(anna.queue).to_contain_text("First of all, hurry")
        await anna.prompt.fill("And think")
        await anna.button("Send as a prompt instead").click()
        await expect(anna.queue).to_contain_text("And think")
        assert len(await pending(session)) == 1
        await anna.prompt.fill("yes")
        await expect(effect(anna)).to_have_text("Enter allows this call once.")
        await anna.prompt.press("Enter")
        await anna.sees("echo: First of all, hurry")
    assert not (directory / "a").exists()
    assert (directory / "b").exists()


async def test_a_letter_in_the_prompt_gives_no_lasting_answer_without_enter(chromium: Browser, site: Site) -> None:
    """Who types slowly may begin a sentence with it."""
    site.model.add([tool("bash", command="touch a")], [Say("Done.")], name="slow")
    session = await site.session(site.project("slow"))
    async with open_tab(chromium, site, session) as anna:
        await anna.page.clock.install()
        await anna.say("[[slow]]")
        await asked(anna, "touch a")
        badges = anna.asks.locator("button kbd")
        await anna.transcript.focus()
        assert await badges.evaluate_all(SHOWN) == ["y", "s", "a", "d"]
        width = await anna.asks.locator(".buttons").first.evaluate(WIDTHS)
        await anna.prompt.focus()
        assert await badges.evaluate_all(SHOWN) == ["y", "s ↵", "a ↵", "d"]
        assert await anna.asks.locator(".buttons").first.evaluate(WIDTHS) == width, "no button moves under the mouse"
        for key in ("a", "s"):
            await press(anna, key)
            await expect(anna.prompt).to_have_value(key)
            assert len(await pending(session)) == 1
            await anna.prompt.fill("")
        await press(anna, "s")
        await expect(effect(anna)).to_have_text("Enter allows it for this session.")
        await anna.prompt.press("Enter")
        await anna.sees("Done.")


async def test_single_keys_answer_when_the_prompt_is_empty(chromium: Browser, site: Site) -> None:
    calls = [[tool("bash", command=f"touch {name}")] for name in ("y", "s", "d")]
    site.model.add(
        *calls,
        [tool("question", text="Which colour?", choices=["red", "green"])],
        [tool("question", text="Which sizes?", choices=["S", "M", "L"], multiple=True)],
        [Say("All keys.")],
        name="keys",
    )
    directory = site.project("keys")
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna:
        await anna.page.clock.install()
        await anna.say("[[keys]]")
        await asked(anna, "touch y")
        await anna.prompt.evaluate(TYPE, "you should not")
        await anna.page.clock.run_for(ALONE_MS)
        await expect(anna.prompt).to_have_value("you should not")
        assert len(await pending(session)) == 1
        await anna.prompt.fill("")
        for key, place in (("y", anna.prompt), ("s", anna.transcript), ("d", anna.button("Allow once"))):
            await asked(anna, f"touch {key}")
            await place.focus()
            await place.press(key)
            await anna.page.clock.run_for(ALONE_MS)
            await expect(anna.asks.filter(has_text=f"touch {key}")).to_have_count(0)
        await asked(anna, "Which colour?")
        await press(anna, "2")
        card = await asked(anna, "Which sizes?")
        assert sent_back(site) == "green"
        await press(anna, "1")
        await press(anna, "3")
        await expect(card.get_by_role("checkbox", name="L")).to_be_checked()
        await anna.prompt.press("Enter")
        await anna.sees("All keys.")
        assert sent_back(site) == "S\nL"
    assert {path.name for path in directory.iterdir()} & {"y", "s", "d"} == {"s", "y"}


async def test_keys_that_come_before_a_request_can_be_seen_answer_nothing(chromium: Browser, site: Site) -> None:
    gate = site.model.gate("hasty")
    site.model.add([Say("One moment."), Pause(gate), tool("bash", command="touch hasty")], name="hasty")
    session = await site.session(site.project("hasty"))
    async with open_tab(chromium, site, session) as anna:
        await anna.page.evaluate("performance.now = () => 0")  # nobody has had the time to see anything
        await anna.say("[[hasty]]")
        await anna.sees("One moment.")
        await anna.prompt.fill("and then")
        gate.open()
        await expect(anna.asks).to_be_visible()
        await expect(effect(anna)).to_be_visible()
        await anna.prompt.press("Enter")
        await expect(anna.prompt).to_have_value("and then")
        assert len(await pending(session)) == 1
        await anna.page.evaluate(f"performance.now = () => {SEEN_MS}")
        await anna.prompt.press("Enter")
        await expect(anna.asks).to_have_count(0)
        await expect(anna.prompt).to_have_value("")


async def test_who_was_faster_is_told_and_the_draft_stays(chromium: Browser, site: Site) -> None:
    """Somebody else answers while our answer is on its way: 409."""
    site.model.add(
        [tool("question", text="Which?")], [tool("question", text="Why?")], [Say("Both told.")], name="faster"
    )
    session = await site.session(site.project("faster"))
    async with open_tab(chromium, site, session) as anna:
        await anna.page.clock.install()
        await anna.say("[[faster]]")
        await asked(anna, "Which?")
        (first,) = await pending(session, "questions")

        async def later(route: Route) -> None:
            await session.http.post(
                f"{session.workspace}/questions/{first}", json={"answer": ["b"], "client_id": "ben"}
            )
            await route.continue_()

        await anna.page.route(f"**/questions/{first}", later)
        await anna.prompt.fill("my long answer")
        await anna.prompt.press("Enter")
        await expect(effect(anna)).to_contain_text("ben answered first")
        await expect(effect(anna)).to_contain_text("Your text is still here.")
        await expect(anna.prompt).to_have_value("my long answer")
        await asked(anna, "Why?")
        (second,) = await pending(session, "questions")
        await anna.page.evaluate("performance.now = () => 0")
        await session.http.post(f"{session.workspace}/questions/{second}", json={"answer": ["c"], "client_id": "ben"})
        await expect(effect(anna)).to_contain_text("Answered by ben: “c” (Why?)")
        await anna.prompt.press("Enter")  # it was meant for the question, and becomes no prompt
        await anna.sees("Both told.")
        await expect(anna.prompt).to_have_value("my long answer")
        assert len(await session.ledger()) == 1


@pytest.mark.parametrize("first", ["event", "refusal"])
async def test_the_draft_stays_whichever_comes_first_the_event_or_the_refusal(
    chromium: Browser, site: Site, first: str
) -> None:
    """Ben was faster. The page hears of it by an event, and by the 409 to its own answer, in either order."""
    name = f"race-{first}"
    site.model.add([tool("question", text="Which?")], [Say("Told.")], name=name)
    session = await site.session(site.project(name))
    async with open_wire(site.port) as wire, open_tab(chromium, site, session, port=wire.port) as anna:
        await anna.page.clock.install()
        await anna.say(f"[[{name}]]")
        await asked(anna, "Which?")
        (ask,) = await pending(session, "questions")
        if first == "refusal":  # the stream ends, and no new one opens
            await anna.page.route("**/events**", lambda route: route.abort())
            await wire.cut()
            await expect(anna.connection).not_to_have_attribute("data-state", "live")
            await wire.mend()

        async def faster(route: Route) -> None:
            answer = {"answer": ["b"], "client_id": "ben"}
            await session.http.post(f"{session.workspace}/questions/{ask}", json=answer)
            if first == "event":
                # Not what is announced: the end of the run may have replaced that already.
                await expect(anna.page.locator("article.ask.leaving")).to_contain_text("Answered by ben")
            await route.continue_()

        await anna.page.route(f"**/questions/{ask}", faster)
        await anna.prompt.fill("my long answer")
        await anna.prompt.press("Enter")
        await expect(effect(anna)).to_contain_text("Your text is still here.")
        await expect(anna.prompt).to_have_value("my long answer")
        if first == "refusal":
            await anna.page.unroute("**/events**")
            await anna.page.clock.run_for(10_000)  # until the next attempt to connect
            await anna.live()
        await anna.sees("Told.")
        await expect(anna.asks).to_have_count(0)
        await expect(anna.prompt).to_have_value("my long answer")
        assert len(await session.ledger()) == 1, "it became no prompt either"


@pytest.mark.parametrize("size", [None, NARROW], ids=["wide", "phone"])
async def test_a_dangerous_call_looks_different_and_enter_never_allows_it(
    chromium: Browser, site: Site, size: tuple[int, int] | None
) -> None:
    name = f"danger-{'phone' if size else 'wide'}"
    site.model.add([tool("bash", command=DANGEROUS)], [Say("Denied.")], name=name)
    session = await site.session(site.project(name))
    async with open_tab(chromium, site, session, **({"size": size} if size else {})) as anna:
        await anna.page.clock.install()
        await anna.say(f"[[{name}]]")
        card = await asked(anna, "rm -rf")
        await expect(card.locator("button kbd")).to_have_text(["d"])
        await expect(card).to_have_class("ask permission dangerous next")
        await expect(card.locator(".why-danger")).to_contain_text(
            "It overwrites or deletes work in a remote repository."
        )
        await expect(card.locator("mark.risky")).to_have_text(["rm -rf build/*", "git push --force"])
        await expect(card.locator("mark.asked")).to_have_text(["mkdir -p build"])
        assert (await card.inner_text()).count("rm -rf build/*") == 1
        sign = await card.locator("mark.risky").first.evaluate("(mark) => getComputedStyle(mark, '::before').content")
        assert "⚠" in sign, "a mark is more than a color"
        how = "To allow this once, type yes and press Enter, or use a button. No single key allows it."
        await expect(card.locator(".how")).to_have_text(how)
        first = card.locator(".buttons button").first
        await expect(first).to_have_accessible_name("Deny")
        for button in await card.locator(".buttons button:visible").all():
            await expect(button).to_be_in_viewport(ratio=1)
            assert not await button.evaluate("(button) => button.classList.contains('primary')")
        focused = await anna.page.evaluate("document.activeElement.textContent")
        assert "Allow" not in focused
        await anna.prompt.focus()
        await anna.prompt.press("Enter")
        for key in ("y", "a", "s"):
            await press(anna, key)
            await anna.prompt.fill("")
        assert len(await pending(session)) == 1
        await anna.prompt.fill("yes")
        await expect(effect(anna)).to_have_text("Enter allows this call once.")
        await anna.prompt.fill("")
        await anna.picture(name)
        if not size:
            await expect(effect(anna)).to_have_text("Press d to deny; or type what to do instead.")
            await anna.page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
            await expect(effect(anna)).to_have_text("Choose an answer, or type what to do instead.")
            await anna.page.set_viewport_size({"width": 1280, "height": 800})
        # Nor do keys outside the prompt, whatever has the focus.
        for place in (anna.transcript, card.get_by_role("group", name="Command"), first):
            await place.focus()
            for key in ("y", "s", "a", "1"):
                await anna.page.keyboard.press(key)
                await anna.page.clock.run_for(ALONE_MS)
        assert len(await pending(session)) == 1
        # Who thinks better of denying it is back at Deny, not at what allows it.
        await first.click()
        await anna.button("Cancel", within=card).click()
        await expect(first).to_be_focused()
        await anna.prompt.focus()
        await press(anna, "d")
        await anna.sees("Denied.")


async def test_the_rule_of_always_says_what_it_allows_and_where_it_is_written(chromium: Browser, site: Site) -> None:
    site.model.add([tool("write", path="src/a.py", content="x\n")], [Say("Written.")], name="always")
    directory = site.project("always")
    session = await site.session(directory)
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[always]]")
        rules = anna.asks.locator(".rules").first
        await expect(rules).to_contain_text("will allow: write(src/a.py)")
        told = await rules.locator("code").last.inner_text()
        assert told.endswith(f"{directory.name}/longboat.json")
        await anna.asks.get_by_label("Use the wider rules").check()
        await expect(rules).to_contain_text("will allow: write(src/**)")
        await anna.button("Always allow").click()
        await anna.sees("Written.")
    assert "write(src/**)" in (directory / "longboat.json").read_text()


async def test_a_slow_answer_is_sent_once(chromium: Browser, site: Site) -> None:
    site.model.add([tool("question", text="Once?")], [Say("Once.")], name="once")
    session = await site.session(site.project("once"))
    sent: list[str] = []
    async with open_tab(chromium, site, session) as anna:
        await anna.page.clock.install()
        go = asyncio.Event()

        async def held(route: Route) -> None:
            sent.append(route.request.url)
            await go.wait()
            await route.continue_()

        await anna.page.route("**/questions/*", held)
        await anna.say("[[once]]")
        await asked(anna, "Once?")
        await anna.prompt.fill("yes")
        await anna.prompt.press("Enter")
        await anna.prompt.press("Enter")
        go.set()
        await anna.sees("Once.")
        assert len(sent) == 1
        assert len(await session.ledger()) == 1
