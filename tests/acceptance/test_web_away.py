"""Prompts on their way while the line is cut, slow or refuses them; the page after a gap in its events (F6)."""

import asyncio
import re

from browser import MARKS, Tab, call, once, open_tab, open_wire
from imported import called, imported, text
from playwright.async_api import Browser, FilePayload, Locator, Route, expect
from processes import Site, open_site
from sessions import SessionClient

from longboat.testing import Hang, Pause, Say

pytestmark = MARKS
pytest_plugins = ("chromium",)


def outgoing(tab: Tab) -> Locator:
    """Prompts that the server does not have yet."""
    return tab.page.locator(".outgoing > li")


async def offline(tab: Tab) -> None:
    await expect(tab.connection).to_have_attribute("data-state", re.compile("waiting|reconnecting"))


async def prompts(session: SessionClient) -> list[str]:
    return [run["prompt"] for run in await session.ledger()]


async def forget_the_cursor(tab: Tab) -> None:
    """The next connection gets a snapshot, as after a log that was cut."""

    async def ask(route: Route) -> None:
        headers = {name: value for name, value in route.request.headers.items() if name != "last-event-id"}
        await route.continue_(headers=headers)

    await tab.page.route("**/events?*", ask)


async def test_f6_prompts_sent_while_away_arrive_in_their_order(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("order"))
    sent = [f"prompt {number}" for number in range(6)]
    async with open_wire(site.port) as wire, open_tab(chromium, site, session, port=wire.port) as anna:
        await wire.cut()
        await offline(anna)
        for number, prompt in enumerate(sent, 1):
            await anna.say(prompt)
            await expect(outgoing(anna)).to_have_count(number)
        await wire.mend()
        await expect(outgoing(anna)).to_have_count(0)
        await anna.sees(*sent)
        await anna.idle()
        assert await prompts(session) == sent


async def test_f6_a_reload_while_away_keeps_every_prompt_and_the_draft(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("reload"))
    async with open_tab(chromium, site, session) as anna:
        await anna.page.route("**/agent", lambda route: route.abort())
        for number, prompt in enumerate(["one", "two", "three"], 1):
            await anna.say(prompt)
            await expect(outgoing(anna)).to_have_count(number)
        await anna.prompt.fill("half a dra")
        await anna.page.reload()
        await anna.live()
        await expect(outgoing(anna)).to_have_text([re.compile("one"), re.compile("two"), re.compile("three")])
        await expect(anna.prompt).to_have_value("half a dra")
        await anna.page.unroute("**/agent")
        await expect(outgoing(anna)).to_have_count(0)
        await anna.sees("one", "two", "three")
        await anna.idle()
        assert await prompts(session) == ["one", "two", "three"]
        await expect(anna.prompt).to_have_value("half a dra")


async def test_f6_a_prompt_that_waits_is_taken_back_and_never_runs(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("take-back"))
    async with open_wire(site.port) as wire, open_tab(chromium, site, session, port=wire.port) as anna:
        await wire.cut()
        await offline(anna)
        await anna.say("not this one")
        await anna.say("this one")
        await expect(outgoing(anna)).to_have_count(2)
        await anna.prompt.fill("typed since")
        await anna.button("Undo send", within=outgoing(anna).first).click()
        await expect(outgoing(anna)).to_have_count(1)
        await expect(anna.prompt).to_have_value("not this one\n\ntyped since")
        await wire.mend()
        await anna.sees("echo: this one")
        await anna.idle()
        assert await prompts(session) == ["this one"]


async def test_f6_a_prompt_taken_back_when_the_server_had_it_already_is_canceled(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("take-back-late"))
    site.model.add([Say("Begun."), Pause(site.model.gate("take-back"))], name="held")
    async with open_tab(chromium, site, session) as anna:
        arrived, answered = asyncio.Event(), asyncio.Event()

        async def slowly(route: Route) -> None:
            answer = await route.fetch()
            arrived.set()
            await answered.wait()
            await route.fulfill(response=answer)

        await anna.page.route("**/agent", slowly)
        await anna.say("[[held]]")
        await arrived.wait()
        await anna.button("Undo send", within=outgoing(anna).first).click()
        await expect(anna.prompt).to_have_value("[[held]]")
        answered.set()
        await expect(anna.transcript.locator(".finish:visible")).to_contain_text("Canceled")
        assert [run["outcome"] for run in await session.ledger()] == ["canceled"]


async def test_f6_a_cancel_whose_answer_is_lost_is_sent_again_and_covers_nothing_newer(
    chromium: Browser, site: Site
) -> None:
    session = await site.session(site.project("cancel-again"))
    for name in ("first", "second"):
        site.model.add([Say(f"{name} begun"), Hang()], name=name)
    async with open_tab(chromium, site, session) as anna:
        await session.submit("[[first]]", "r1")
        await session.submit("later", "r2", delivery="queue")
        await anna.sees("first begun")

        async def lose(route: Route) -> None:
            await route.fetch()
            await session.submit("[[second]]", "r3", delivery="queue")
            await route.abort()

        await once(anna.page, "**/cancel*", lose)
        async with anna.page.expect_response("**/cancel*") as answered:
            await anna.button("Stop all").click()
        await anna.sees("second begun")
        assert (await (await answered.value).json())["canceled"] == ["r1", "r2"]
        assert (await session.run("r3"))["cancel_requested"] is False
        await anna.button("Stop").click()
        assert await session.outcome("r3") == "canceled"


async def test_f6_a_read_that_fails_after_a_gap_is_made_again_until_nothing_is_missing(
    chromium: Browser, site: Site
) -> None:
    session = await site.session(site.project("gap"))
    async with open_wire(site.port) as wire, open_tab(chromium, site, session, port=wire.port) as anna:
        await anna.say("before")
        await anna.sees("echo: before")
        await anna.idle()
        await forget_the_cursor(anna)
        failed = 0

        async def twice(route: Route) -> None:
            nonlocal failed
            failed += 1
            if failed > 2:
                return await route.continue_()
            if failed == 2:
                await session.outcome(await session.submit("while it is read"))
            return await route.fulfill(status=503, body="{}")

        await anna.page.route("**/messages?*", twice)
        await wire.cut()
        await offline(anna)
        await session.outcome(await session.submit("in the gap"))
        await wire.mend()
        await anna.sees("echo: in the gap", "echo: while it is read")
        await session.outcome(await session.submit("after"))
        await anna.sees("echo: after")
        shown = [row.partition(": ")[2] for row in await anna.texts()]
        assert shown[::2] == ["before", "in the gap", "while it is read", "after"]
        assert failed >= 3


async def test_f6_a_page_asked_for_before_the_gap_is_not_taken_after_it(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("old-read"))
    await session.outcome(await session.submit("before"))
    async with open_wire(site.port) as wire, open_tab(chromium, site, port=wire.port) as anna:
        asked, answered = asyncio.Event(), asyncio.Event()

        async def slowly(route: Route) -> None:
            if asked.is_set():
                return await route.continue_()
            old = await route.fetch()
            asked.set()
            await answered.wait()
            return await route.fulfill(response=old)

        await anna.page.route("**/messages?*", slowly)
        await forget_the_cursor(anna)
        await anna.go(session)
        await asked.wait()
        async with anna.page.expect_request(lambda request: "/events" in request.url):
            await wire.cut()
            await session.outcome(await session.submit("in the gap"))
            await wire.mend()
        await anna.live()
        answered.set()
        await anna.sees("echo: in the gap")


async def test_f6_a_session_deleted_while_away_is_told_to_be_gone_and_its_prompt_is_kept(
    chromium: Browser, site: Site
) -> None:
    session = await site.session(site.project("deleted"))
    async with open_wire(site.port) as wire, open_tab(chromium, site, session, port=wire.port) as anna:
        await anna.say("one")
        await anna.sees("echo: one")
        await anna.idle()
        await forget_the_cursor(anna)
        await wire.cut()
        await offline(anna)
        await anna.say("anybody?")
        await expect(outgoing(anna)).to_have_count(1)
        await session.http.delete(f"{session.workspace}/sessions/{session.session_id}")
        await wire.mend()
        await expect(anna.page.get_by_role("heading", name="Session not found")).to_be_visible()
        await expect(anna.page.locator(".dock")).to_be_hidden()
        await expect(anna.title).to_have_text("Not found")
        await expect(outgoing(anna)).to_contain_text("anybody?")
        await anna.button("Edit", within=outgoing(anna)).click()
        await expect(anna.title).to_have_text("New session")
        await expect(anna.prompt).to_have_value("anybody?")
        await anna.prompt.press("Enter")
        await anna.sees("echo: anybody?")


async def test_f6_a_refused_prompt_keeps_its_text_and_files_and_what_is_typed(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("refused"))
    async with open_tab(chromium, site, session) as anna:
        answered = asyncio.Event()

        async def refuse(route: Route) -> None:
            await answered.wait()
            await route.fulfill(status=413, body='{"code": "body_too_large", "message": "It is too large."}')

        await anna.page.route("**/agent", refuse)
        notes = FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"The mast is oak.")
        await anna.page.locator("input[type=file]").set_input_files(notes)
        await expect(anna.page.locator(".attachments")).to_contain_text("notes.txt")
        await anna.say("long and precious")
        await anna.prompt.fill("next")
        answered.set()
        refused = anna.page.locator(".outgoing > li.refused")
        await expect(refused).to_contain_text("long and precious")
        await expect(refused).to_contain_text("notes.txt")
        await expect(refused).to_contain_text("It is too large.")
        await expect(anna.prompt).to_have_value("next")
        await anna.page.reload()
        await expect(refused).to_contain_text("long and precious")
        await anna.button("Edit", within=refused).click()
        await expect(anna.prompt).to_have_value("long and precious\n\nnext")
        await expect(anna.page.locator(".attachments")).to_contain_text("notes.txt")
        await expect(outgoing(anna)).to_have_count(0)
        await anna.page.unroute("**/agent")
        await anna.prompt.press("Enter")
        await anna.sees("echo: long and precious")
        await expect(anna.transcript).to_contain_text("notes.txt")


async def test_f6_a_refused_prompt_is_sent_again_or_discarded(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("again"))
    async with open_tab(chromium, site, session) as anna:
        await anna.page.route("**/agent", lambda route: route.fulfill(status=409, body='{"message": "Not now."}'))
        await anna.say("first")
        await anna.say("second")
        await expect(anna.page.locator(".outgoing > li.refused")).to_have_count(2)
        await anna.page.unroute("**/agent")
        await anna.button("Discard", within=outgoing(anna).first).click()
        await anna.button("Resend", within=outgoing(anna)).click()
        await anna.sees("echo: second")
        await expect(outgoing(anna)).to_have_count(0)
        assert await prompts(session) == ["second"]


async def test_f6_two_tabs_of_one_person_share_a_draft_and_neither_hinders_the_other(
    chromium: Browser, site: Site
) -> None:
    session = await site.session(site.project("two-tabs"))
    async with open_tab(chromium, site, session) as anna:
        await anna.prompt.fill("draft text")
        await anna.page.wait_for_function("Object.keys(localStorage).some((key) => key.startsWith('longboat.draft.'))")
        other = Tab(page=await anna.page.context.new_page(), name=anna.name, origin=anna.origin)
        other.listen()
        await other.go(session)
        await expect(other.prompt).to_have_value("draft text")
        await anna.prompt.press("Enter")
        await anna.sees("echo: draft text")
        await other.say("something else")
        await other.sees("echo: something else")
        await anna.page.context.route("**/agent", lambda route: route.abort())
        for number, tab in enumerate([anna, other, anna, other], 1):
            await tab.say(f"from tab {number}")
            await expect(outgoing(other)).to_have_count(number)
        await anna.page.context.unroute("**/agent")
        for tab in (anna, other):
            await expect(outgoing(tab)).to_have_count(0)
            await tab.sees("from tab 4")
        sent = ["draft text", "something else", *(f"from tab {number}" for number in range(1, 5))]
        assert await prompts(session) == sent
        assert other.faults == []


async def test_f6_what_is_typed_while_the_first_prompt_makes_its_session_stays(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("typing"))
    async with open_tab(chromium, site) as anna:
        await anna.go(path=f"/#/{session.workspace.rpartition('/')[2]}")
        await anna.live()
        asked, answered = asyncio.Event(), asyncio.Event()

        async def slowly(route: Route) -> None:
            if route.request.method == "POST":
                asked.set()
                await answered.wait()
            await route.continue_()

        await anna.page.route("**/sessions", slowly)
        await anna.say("first")
        await asked.wait()
        await anna.prompt.press_sequentially("and my ")
        answered.set()
        await anna.prompt.press_sequentially("second thought")
        await anna.sees("echo: first")
        await expect(anna.prompt).to_have_value("and my second thought")
        await expect(anna.prompt).to_be_focused()
        await anna.prompt.press("Enter")
        await anna.sees("echo: and my second thought")
        made = (await session.http.get(f"{session.workspace}/sessions")).json()["items"]
        assert len(made) == 2


async def test_f6_a_first_prompt_sent_while_away_makes_its_session_later_and_only_one(
    chromium: Browser, site: Site
) -> None:
    session = await site.session(site.project("first-away"))
    async with open_wire(site.port) as wire, open_tab(chromium, site, port=wire.port) as anna:
        await anna.go(path=f"/#/{session.workspace.rpartition('/')[2]}")
        await anna.live()
        await wire.cut()
        await offline(anna)
        await anna.say("first")
        await anna.say("second")
        await expect(outgoing(anna)).to_have_count(2)
        await wire.mend()
        await expect(outgoing(anna)).to_have_count(0)
        await anna.sees("echo: first", "second")
        made = (await session.http.get(f"{session.workspace}/sessions")).json()["items"]
        assert len(made) == 2


async def test_f4_a_tool_call_with_odd_arguments_does_not_keep_the_rest_from_the_page(
    chromium: Browser, site: Site
) -> None:
    session = await site.session(site.project("odd"))
    changed = "Edited.\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"
    odd = [{"toString": 1, "valueOf": 1}, [["deep"]], None, 7, {"length": -1}, {"__proto__": None}]
    names = ["edit", "bash", "grep", "todos", "view", "agent", "question"]
    messages = [("user", text("hello"))]
    for at, (name, value) in enumerate([(name, value) for name in names for value in odd]):
        arguments = dict.fromkeys(["path", "command", "pattern", "items", "prompt", "question"], value)
        said, result = called(f"c{at}", name, arguments, changed)
        messages += [("assistant", said), ("tool", result)]
    messages.append(("assistant", text("the end")))
    made = await imported(session, "odd", [{"run_id": "r1", "client_id": "x", "messages": messages}])
    async with open_tab(chromium, site, made) as anna:
        await anna.sees("the end")
        closed = anna.transcript.locator('.tool-group[aria-expanded="false"]')
        for card in await anna.tools.all():
            while not await card.is_visible():  # the calls may be grouped while we look
                await closed.first.click()
            if not await card.get_attribute("open"):
                await card.locator("summary").first.click()
        rows = await anna.texts()
        assert rows[-1] == "Longboat: the end"
        await expect(anna.transcript).not_to_contain_text("cannot show a part")


async def test_f4_odd_values_in_storage_and_odd_addresses_do_not_stop_the_page(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("storage"))
    workspace_id = session.workspace.rpartition("/")[2]
    place = f"{workspace_id}.{session.session_id}"
    odd = {
        "theme": '{"a": 1}',
        "prompts": '{"a": 1}',
        "delivery": "[]",
        f"draft.{place}": '{"text": {"a": 1}}',
        f"choice.{session.session_id}": "null",
        f"outbox.{workspace_id}.x": '{"run_id": 5}',
        f"outbox.{workspace_id}.y": "not JSON",
    }
    async with open_tab(chromium, site, session) as anna:
        await anna.page.evaluate(
            "values => { for (const key in values) localStorage.setItem(`longboat.${key}`, values[key]); }",
            odd,
        )
        await anna.page.reload()
        await anna.live()
        await anna.prompt.press("ArrowUp")
        await anna.say("still here")
        await anna.sees("echo: still here")
        await anna.go(path=f"/#/{workspace_id}/..")
        await expect(anna.page.get_by_role("heading", name="Session not found")).to_be_visible()
        await anna.page.evaluate("localStorage.setItem('longboat.name', '5')")
        await anna.page.reload()
        await expect(anna.page.get_by_role("dialog", name="Choose a name")).to_be_visible()


async def test_f6_a_job_that_died_with_its_server_is_not_shown_as_running(chromium: Browser) -> None:
    async with open_site("tcp") as site:
        await site.serve()
        site.model.add([call("bash", command="sleep 60", run_in_background=True)], [Say("Started.")], name="job")
        session = await site.session(site.project())
        async with open_tab(chromium, site, session) as anna:
            await session.outcome(await session.submit("[[job]]", approve="all"))
            jobs = anna.page.locator(".jobs")
            await expect(jobs).to_contain_text("running")
            await site.kill()
            await offline(anna)
            await site.serve()
            await anna.live()
            await expect(jobs).not_to_contain_text("running")
