"""What a conversation shows while it goes on, and what can be done with its messages (F3)."""

import re

import pytest
from browser import MARKS, Tab, call, once, open_tab
from imported import called, imported, text, turn
from playwright.async_api import Browser, Locator, Route, expect
from processes import Site

from longboat.testing import Pause, Refuse, Say, Use

pytestmark = MARKS
pytest_plugins = ("chromium",)

CLIPBOARD = ["clipboard-read", "clipboard-write"]


async def clipboard(tab: Tab) -> str:
    return str(await tab.page.evaluate("navigator.clipboard.readText()"))


async def act(tab: Tab, message: Locator, action: str) -> None:
    """Choose an action from the menu of a message."""
    await message.hover()
    await tab.button("Message actions", within=message).click()
    await message.get_by_role("menuitem", name=action).click()


# While it streams


async def test_code_that_streams_is_shown_as_code_before_its_fence_closes(chromium: Browser, site: Site) -> None:
    gate = site.model.gate("fence")
    pieces = ["Here it is:\n\n``", "`py", "thon\nfor x in y:\n    pri", "nt(x)\n"]
    site.model.add([*map(Say, pieces), Pause(gate), Say("```\n\nThat is **all**.")], name="fence")
    session = await site.session(site.project("fence"))
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[fence]]")
        code = anna.transcript.locator("pre")
        await expect(code).to_have_text("for x in y:\n    print(x)\n", use_inner_text=True)
        await expect(anna.transcript).not_to_contain_text("```")
        await expect(code).to_have_css("font-family", re.compile("mono"))
        gate.open()
        await expect(anna.transcript.locator(".prose strong")).to_have_text("all")
        await expect(code).to_have_count(1)
        await expect(anna.transcript).not_to_contain_text("```")


async def test_f3_while_it_works_the_page_says_since_when_and_with_how_many_tokens(
    chromium: Browser, site: Site
) -> None:
    gate = site.model.gate("counted-run")
    site.model.add([call("ls"), Use(input_tokens=1200, output_tokens=34)], [Say("Now."), Pause(gate)], name="used")
    session = await site.session(site.project("used"))
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[used]]")
        await expect(anna.working).to_contain_text(re.compile(r"Working… · \d+ s · 1\.2K tokens"))
        await expect(anna.working).to_contain_text("Esc")
        gate.open()
        await anna.idle()


async def test_notices_of_retries_go_when_the_answer_comes(chromium: Browser, site: Site) -> None:
    before, during = site.model.gate("before"), site.model.gate("during")
    answer = [Pause(before), Say("Here it "), Pause(during), Say("is.")]
    site.model.add([Refuse(503)], [Refuse(503)], answer, name="retried")
    session = await site.session(site.project("retried"))
    async with open_tab(chromium, site, session) as anna:
        notices = anna.transcript.locator(".notice")
        await anna.say("[[retried]]")
        await expect(notices.last).to_contain_text("(3 of")
        await expect(notices).to_have_count(1)
        before.open()
        await anna.sees("Here it")
        await expect(notices).to_have_count(0)
        during.open()
        await anna.idle()
        await expect(notices).to_have_count(0)


async def test_an_error_is_shown_once_even_if_the_transcript_comes_after_it(chromium: Browser, site: Site) -> None:
    directory = site.project("once", providers={}, models={"large": "anthropic/claude-sonnet-4-5"})
    session = await site.session(directory)
    async with open_tab(chromium, site) as anna:
        notice = anna.transcript.locator(".notice")

        async def late(route: Route) -> None:
            await expect(notice).to_be_visible()
            await route.continue_()

        await once(anna.page, "**/messages?*", late)
        await anna.page.goto(f"{anna.origin}/#/{session.workspace.rpartition('/')[2]}")
        await anna.live()
        await anna.say("hello")
        await expect(anna.transcript.locator(".finish:visible")).to_have_count(1)
        await anna.idle()
        await expect(notice).to_have_count(0)
        shown = await anna.transcript.inner_text()
        assert shown.count("ANTHROPIC_API_KEY") == 1, shown
        await expect(anna.toasts).to_be_empty()


# Stopping, undoing, the queue


async def test_f3_a_run_is_stopped_once_and_the_page_says_by_whom(chromium: Browser, site: Site) -> None:
    gate = site.model.gate("stop-once")
    site.model.add([Say("Half"), Pause(gate)], name="stopped")
    session = await site.session(site.project("stopped"))
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await anna.say("[[stopped]]")
        await ben.sees("Half")
        await expect(anna.working.get_by_role("button")).to_have_count(1)
        await ben.page.keyboard.press("Escape")
        await expect(anna.transcript.locator(".finish:visible")).to_have_text("Canceled by ben")
        await expect(ben.transcript.locator(".finish:visible")).to_have_text("Canceled by you")


async def test_no_toast_covers_send(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("copied"))
    async with open_tab(chromium, site, session, size=(1440, 900)) as anna:
        await anna.say("/copy")
        toast = anna.toasts.locator(".toast")
        await expect(toast).to_be_visible()
        # Both in one look: the toast goes by itself.
        above = await toast.evaluate("""(toast) => toast.getBoundingClientRect().bottom
            <= document.querySelector('.composer button[type=submit]').getBoundingClientRect().top""")
        assert above, "it is above the prompt"


async def test_undone_turns_can_be_redone_from_a_line_that_stays(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("undone"))
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        for word in ("one", "two"):
            await anna.say(word)
            await anna.sees(f"echo: {word}")
            await anna.idle()
        await anna.say("/undo")
        line = anna.transcript.locator(".undone")
        await expect(line).to_have_text("1 turn undone — Redo")
        await expect(ben.transcript.locator(".undone")).to_have_text("1 turn undone — Redo")
        await expect(anna.prompt).to_have_value("two")
        await anna.prompt.fill("")
        await anna.say("/undo")
        await expect(line).to_have_text("2 turns undone — Redo")
        await expect(anna.transcript).not_to_contain_text("echo: one")
        await anna.page.reload()  # unlike a toast, it does not go
        await expect(line).to_have_text("2 turns undone — Redo")
        await anna.prompt.fill("")
        await anna.button("Redo", within=line).click()
        await anna.sees("echo: one")
        await expect(line).to_have_text("1 turn undone — Redo")
        await ben.button("Redo", within=ben.transcript).click()
        await anna.sees("echo: two")
        await expect(line).to_be_hidden()
        await anna.say("/undo")
        await expect(line).to_be_visible()
        await anna.say("three")
        await anna.sees("echo: three")
        await expect(line).to_be_hidden()  # nothing can be redone after a prompt


async def test_undoing_the_turn_of_another_person_asks_first(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("theirs"))
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await ben.say("from ben")
        await anna.sees("echo: from ben")
        await anna.idle()
        await anna.say("/undo")
        dialog = anna.page.get_by_role("dialog", name="Undo the turn of ben?")
        await expect(dialog).to_contain_text("“from ben” is from ben.")
        await anna.button("Cancel", within=dialog).click()
        await anna.sees("echo: from ben")
        await anna.say("/undo")
        await anna.button("Undo", within=dialog).click()
        await expect(anna.transcript).not_to_contain_text("echo: from ben")
        await expect(anna.prompt).to_have_value("")  # it was not anna's
        await anna.button("Redo", within=anna.transcript).click()
        await ben.sees("echo: from ben")
        await ben.idle()
        await ben.say("/undo")  # one's own turn: no question
        await expect(ben.transcript.locator(".undone")).to_be_visible()


async def test_clear_asks_before_it_deletes_the_prompts_of_others(chromium: Browser, site: Site) -> None:
    gate = site.model.gate("clear")
    site.model.add([Say("Busy."), Pause(gate)], name="cleared")
    session = await site.session(site.project("cleared"))
    async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
        await anna.say("[[cleared]]")
        await ben.sees("Busy.")
        await ben.delivery("Queue")
        await ben.say("mine, please")
        await anna.delivery("Queue")
        await anna.say("and mine")
        await expect(anna.queue.get_by_role("listitem")).to_have_count(2)
        await anna.button("Clear queue", within=anna.queue).click()
        dialog = anna.page.get_by_role("dialog")
        await expect(dialog).to_contain_text("1 prompt of 2 waiting prompts from ben")
        await anna.button("Cancel", within=dialog).click()
        await expect(ben.queue.get_by_role("listitem")).to_have_count(2)
        await anna.button("Clear queue", within=anna.queue).click()
        await anna.button("Delete all", within=dialog).click()
        await expect(ben.queue).to_be_hidden()
        await anna.say("only mine")
        await expect(anna.queue.get_by_role("listitem")).to_have_count(1)
        await anna.button("Clear queue", within=anna.queue).click()
        await expect(anna.queue).to_be_hidden()
        gate.open()
        await anna.idle()


async def test_f3_prompts_that_steer_are_listed_first_and_buttons_have_words(chromium: Browser, site: Site) -> None:
    gate = site.model.gate("order")
    site.model.add([Say("Busy."), Pause(gate)], name="order")
    session = await site.session(site.project("order"))
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[order]]")
        await anna.sees("Busy.")
        await anna.delivery("Queue")
        await anna.say("later")
        await anna.delivery("Steer")
        await anna.say("now")
        items = anna.queue.get_by_role("listitem")
        await expect(items).to_have_text([re.compile("now.*steers, goes first"), re.compile("later.*Steer now")])
        await anna.button("Stop all").click()
        await anna.idle()


# Messages


async def test_f3_code_and_messages_are_copied(chromium: Browser, site: Site) -> None:
    answer = "Use this:\n\n```sh\nmake all\nmake test\n```\n\nand **that** is all."
    session = await imported(
        await site.session(site.project("copied")), "Copied", [turn(1, text("How?"), text(answer))]
    )
    async with open_tab(chromium, site, session, permissions=CLIPBOARD) as anna:
        block = anna.transcript.locator(".code-block")
        await block.hover()
        await anna.button("Copy code", within=block).click()
        await expect(anna.page.locator("#polite")).to_have_text("Copied.")
        assert await clipboard(anna) == "make all\nmake test"
        message = anna.transcript.locator(".message.assistant")
        await message.hover()
        await anna.button("Copy", within=message).click()
        await anna.page.wait_for_function("async (want) => (await navigator.clipboard.readText()) === want", arg=answer)


async def test_f3_a_failed_run_is_retried(chromium: Browser, site: Site) -> None:
    site.model.add([Refuse(401, message="no such key")], [Say("Better now.")], name="again")
    session = await site.session(site.project("again"))
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[again]] please")
        await anna.button("Retry", within=anna.transcript).click()
        await anna.sees("Better now.")
        await anna.idle()
        await expect(anna.button("Retry", within=anna.transcript)).to_have_count(0)
        await expect(anna.prompt).to_be_focused()
    assert [run["prompt"] for run in await session.ledger()] == ["[[again]] please"] * 2


async def test_f3_a_prompt_is_edited_and_sent_again(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("edited"))
    async with open_tab(chromium, site, session) as anna:
        for prompt in ("first thing", "second thing"):
            await anna.say(prompt)
            await anna.sees(f"echo: {prompt}")
            await anna.idle()
        prompts = anna.transcript.locator(".message.user")
        await act(anna, prompts.last, "Edit and resend")
        await expect(anna.page).not_to_have_url(re.compile(session.session_id))
        await expect(prompts).to_have_count(1)
        await expect(anna.prompt).to_have_value("second thing")
        await anna.go(session)
        await anna.sees("echo: second thing")
        await anna.say("third thing")
        await anna.sees("echo: third thing")
        await anna.idle()
        await act(anna, prompts.last.locator("xpath=preceding-sibling::*[1]"), "Fork from here")
        await expect(anna.page).not_to_have_url(re.compile(session.session_id))
        await expect(anna.transcript.locator(".message")).to_have_count(4)
        assert (await anna.texts())[-1].endswith("echo: second thing"), "a fork ends with the message"
        await anna.page.go_back()
        await anna.sees("echo: third thing")
        await act(anna, prompts.last, "Fork from here")
        await expect(anna.page).not_to_have_url(re.compile(session.session_id))
        await expect(prompts).to_have_count(3)
        await anna.page.go_back()
        await anna.sees("echo: third thing")
        await act(anna, prompts.first, "Edit and resend")
        await expect(anna.page.get_by_role("heading", name="What should Longboat do?")).to_be_visible()
        await expect(anna.prompt).to_have_value("first thing")
    assert [run["prompt"] for run in await session.ledger()][-1] == "third thing"


async def test_f3_an_earlier_prompt_is_edited_in_a_fork_that_ends_before_it(chromium: Browser, site: Site) -> None:
    turns = [turn(number, text(f"Prompt {number}"), text(f"Answer {number}")) for number in range(1, 4)]
    session = await imported(await site.session(site.project("branch")), "Branch", turns)
    async with open_tab(chromium, site, session) as anna:
        await anna.sees("Answer 3")
        prompts = anna.transcript.locator(".message.user")
        await act(anna, prompts.nth(1), "Edit and resend")
        await expect(prompts).to_have_text([re.compile("Prompt 1")])
        await expect(anna.prompt).to_have_value("Prompt 2")
        await anna.go(session)
        await anna.sees("Answer 3")


# Tool calls


async def test_f3_calls_that_only_read_are_one_line_until_someone_opens_it(chromium: Browser, site: Site) -> None:
    rows = [("user", text("look around"))]
    for number in range(5):
        said, result = called(f"c{number}", "view", {"path": f"src/file{number}.py"}, f"contents {number}")
        rows += [("assistant", said), ("tool", result)]
    said, result = called("run", "bash", {"command": "make"}, "made\n[exit code 0 after 1 s]")
    rows += [("assistant", said), ("tool", result), ("assistant", text("The end."))]
    run = {"run_id": "r1", "client_id": "anna", "messages": rows}
    session = await imported(await site.session(site.project("grouped")), "Grouped", [run])
    async with open_tab(chromium, site, session) as anna:
        await anna.sees("The end.")
        group = anna.transcript.get_by_role("button", name=re.compile("^Read 5 files"))
        await expect(group).to_have_attribute("aria-expanded", "false")
        await expect(anna.transcript.locator("details.tool:visible")).to_have_count(1)
        await group.click()
        await expect(anna.transcript.locator("details.tool:visible")).to_have_count(6)
        await group.click()
        await anna.say("/expand")
        await expect(anna.transcript.locator("details.tool[open]:visible")).to_have_count(6)
        await anna.say("/collapse")
        await expect(anna.transcript.locator("details.tool:visible")).to_have_count(1)
        await expect(anna.transcript.locator("details.tool[open]")).to_have_count(0)


async def test_f3_plans_and_questions_are_shown_as_such_and_not_as_json(chromium: Browser, site: Site) -> None:
    plan = [{"text": "Look", "state": "completed"}, {"text": "Mend", "state": "in_progress"}]
    first, planned = called("c1", "todos", {"items": plan}, "Noted.")
    second, answered = called("c2", "question", {"text": "Which?", "choices": ["red", "green"]}, "green")
    rows = [("user", text("go")), ("assistant", [*first, *second]), ("tool", [*planned, *answered])]
    run = {"run_id": "r1", "client_id": "anna", "messages": rows}
    session = await imported(await site.session(site.project("cards")), "Cards", [run])
    async with open_tab(chromium, site, session) as anna:
        await expect(anna.tools).to_have_count(2)
        for summary in await anna.tools.locator("summary").all():
            await summary.click()
        await expect(anna.tools.first.locator("li")).to_have_text(["✓Look", "◐Mend"])
        await expect(anna.tools.last.locator(".tool-body")).to_contain_text("Which?")
        await expect(anna.tools.last.locator("li")).to_have_text(["○ red", "● green"])
        await expect(anna.tools.last.locator(".answer")).to_have_text("Answer: green")
        await expect(anna.transcript).not_to_contain_text('{"')


async def test_f3_the_answer_of_a_sub_agent_is_shown_once(chromium: Browser, site: Site) -> None:
    site.model.add([call("agent", prompt="[[spy]] look")], [Say("Sent.")], name="chief")
    site.model.add([Say("All quiet.")], name="spy")
    session = await site.session(site.project("spies"))
    async with open_tab(chromium, site, session) as anna:
        await anna.say("[[chief]]")
        await anna.sees("Sent.")
        await anna.idle()
        card = anna.tools.first
        if await card.get_attribute("open") is None:
            await card.locator("summary").first.click()
        answer = card.get_by_text("All quiet.").locator("visible=true")
        await expect(answer).to_have_count(1)
        await card.get_by_text("Sub-agent transcript").click()
        await expect(card.locator(".nested")).to_contain_text("All quiet.")
        await expect(answer).to_have_count(1)
        await expect(card.locator(".nested .who").first).to_have_text("Main agent")


# Search


@pytest.mark.parametrize("words", ["needle 3", "NEEDLE 3"])
async def test_f3_search_finds_what_is_not_loaded_and_opens_what_is_folded(
    chromium: Browser, site: Site, words: str
) -> None:
    said, result = called("c1", "bash", {"command": "ls"}, "a needle 3 in the output")
    rows = [("user", text("go")), ("assistant", said), ("tool", result)]
    turns = [{"run_id": "r0", "client_id": "anna", "messages": rows}]
    turns += [turn(number, text(f"Prompt {number}"), text(f"Answer {number}")) for number in range(1, 150)]
    turns.append(turn(150, text("a needle 3 at the end"), text("Found?")))
    session = await imported(await site.session(site.project(f"find-{words[:1]}")), "Find", turns)
    async with open_tab(chromium, site, session) as anna:
        await anna.sees("Found?")
        await anna.page.keyboard.press("ControlOrMeta+f")
        field = anna.page.get_by_role("searchbox", name="Search this session")
        await expect(field).to_be_focused()
        await field.fill(words)
        count = anna.page.locator(".finder [role=status]")
        await expect(count).to_have_text("2 of 2")
        await expect(anna.transcript.get_by_text("a needle 3 at the end")).to_be_in_viewport()
        await expect(anna.button("Jump to latest")).to_be_hidden()
        await field.press("Enter")
        await expect(count).to_have_text("1 of 2")
        await expect(anna.transcript.get_by_text("a needle 3 in the output")).to_be_in_viewport()
        await expect(anna.button("Jump to latest")).to_be_visible()
        await anna.page.wait_for_function("() => CSS.highlights.get('found').size === 1")
        await field.press("Shift+Enter")
        await expect(anna.transcript.get_by_text("a needle 3 at the end")).to_be_in_viewport()
        await field.press("Escape")
        await expect(field).to_be_hidden()
        await expect(anna.prompt).to_be_focused()
        await anna.page.wait_for_function("() => !CSS.highlights.has('found')")
