"""The page over the life of its server: killed and back, its token changed, a stranger at its door (F6)."""

import re

import pytest
from browser import MARKS, TOKEN, call, open_tab, open_wire
from playwright.async_api import Browser, Request, expect
from processes import Site, open_site

from longboat.testing import Pause, Say

pytestmark = MARKS
pytest_plugins = ("chromium",)


async def test_f6_a_killed_server_comes_back_under_the_open_page_and_nothing_is_lost(chromium: Browser) -> None:
    async with open_site("tcp") as site:
        await site.serve()
        site.model.add([Say("Before the end."), Pause(site.model.gate("end"))], name="cut")
        session = await site.session(site.project())
        async with open_tab(chromium, site, session) as anna, open_tab(chromium, site, session, name="ben") as ben:
            await anna.say("first")
            await anna.sees("echo: first")
            await anna.idle()
            await anna.say("[[cut]]")
            await ben.sees("Before the end.")
            requests: list[str] = []
            anna.page.on("request", lambda request: is_stream(request) and requests.append(last_id(request)))
            await site.kill()
            for tab in (anna, ben):
                await expect(tab.connection).to_have_attribute("data-state", re.compile("waiting|reconnecting"))
                await expect(tab.connection).to_have_text(re.compile("retrying|Reconnecting"))
            await anna.sees("Before the end.")
            await anna.say("typed in the dark")
            await expect(anna.page.get_by_text("Sending “typed in the dark”")).to_be_visible()
            await ben.prompt.fill("a draft")
            await anna.picture("page-offline")
            await site.serve()
            for tab in (anna, ben):
                await tab.live()
                await tab.sees("echo: typed in the dark")
                await tab.idle()
                told = "Interrupted: The server stopped while this run was active. Send another prompt to continue."
                await expect(tab.transcript.locator(".finish:visible")).to_have_text(told)
                await expect(tab.page.get_by_text("The server stopped while")).to_have_count(1)
            assert requests
            assert all(requests), "every connection after the first goes on from a cursor"
            await expect(anna.page.get_by_text("Sending “")).to_be_hidden()
            await expect(ben.prompt).to_have_value("a draft")
            shown = [text.partition(": ")[2] for text in await anna.texts()]
            assert shown[0:2] + shown[4:] == ["first", "echo: first", "typed in the dark", "echo: typed in the dark"]
            assert shown == [text.partition(": ")[2] for text in await ben.texts()]
            await anna.page.reload()
            await anna.sees("echo: typed in the dark")
            assert [text.partition(": ")[2] for text in await anna.texts()] == shown
        assert await (await site.back_at(session)).check_books()
        prompts = [run["prompt"] for run in await (await site.back_at(session)).ledger()]
        assert prompts == ["first", "[[cut]]", "typed in the dark"]


def is_stream(request: Request) -> bool:
    """The stream of a workspace. That of the inbox has no cursors: it begins with the whole inbox each time."""
    return "/v1/workspaces/" in request.url and "/events" in request.url


def last_id(request: Request) -> str:
    return request.headers.get("last-event-id", "")


async def test_f6_what_happened_while_the_page_was_cut_off_is_caught_up_by_its_cursor(
    chromium: Browser, site: Site
) -> None:
    site.model.add([call("todos", items=[{"text": "sail", "state": "completed"}])], [Say("Sailed.")], name="away")
    session = await site.session(site.project("away"))
    async with (
        open_wire(site.port) as wire,
        open_tab(chromium, site, session, port=wire.port) as anna,
    ):
        await anna.say("still here")
        await anna.sees("echo: still here")
        asked: list[str] = []
        anna.page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
        went_on: list[str] = []
        anna.page.on("request", lambda request: is_stream(request) and went_on.append(last_id(request)))
        await wire.cut()
        await expect(anna.connection).to_have_attribute("data-state", re.compile("waiting|reconnecting"))
        await session.outcome(await session.submit("[[away]]", "r-away"))
        await expect(anna.transcript).not_to_contain_text("Sailed.")
        await wire.mend()
        await anna.sees("Sailed.")
        await expect(anna.page.locator(".todos")).to_contain_text("sail")
        assert went_on
        assert all(went_on)
        assert not any(url.startswith("messages") for url in asked), "the log had it all: no page is read again"


@pytest.mark.shows_secrets("server token", reason="the test types the token into the form")
async def test_f3_a_stranger_sees_a_form_alone_a_wrong_token_is_told_and_the_right_one_opens_the_page(
    chromium: Browser, site: Site
) -> None:
    async with open_tab(chromium, site, logged_in=False, name="") as tab:
        loaded: list[str] = []
        tab.page.on("request", lambda request: loaded.append(request.url))
        await tab.go()
        token = tab.page.get_by_label("Token")
        await expect(token).to_be_focused()
        assert [url.removeprefix(tab.origin) for url in loaded] == ["/"]
        await token.fill("wrong")
        await token.press("Enter")
        await expect(tab.page.get_by_role("alert")).to_contain_text("Wrong token.")
        await tab.picture("page-login")
        await token.fill(TOKEN)
        await token.press("Enter")
        await expect(tab.page.get_by_role("dialog", name="Choose a name")).to_be_visible()
        assert TOKEN not in tab.page.url
        name = tab.page.get_by_label("Your name")
        await name.fill("not a name")
        await name.press("Enter")
        await expect(tab.page.locator("#dialog-wrong")).to_contain_text("no spaces")
        await name.fill("vera")
        await name.press("Enter")
        await expect(tab.page.get_by_role("button", name="vera")).to_be_visible()
        await expect(tab.page.locator("#main").get_by_role("heading", level=1)).to_be_visible()


async def test_f3_a_changed_token_logs_the_page_out_and_it_says_so(chromium: Browser) -> None:
    async with open_site("tcp") as site:
        await site.serve()
        session = await site.session(site.project())
        async with open_tab(chromium, site, session) as anna:
            await site.kill()
            await site.serve(environ={"LONGBOAT_TOKEN": "another-token-of-some-length"})
            await expect(anna.connection).to_have_attribute("data-state", "refused")
            await expect(anna.connection).to_contain_text("Log in again")
            await anna.prompt.fill("kept")
            await anna.prompt.press("Enter")
            await expect(anna.page.locator(".outgoing")).to_contain_text("Sending “kept”")
            await anna.connection.get_by_role("link").click()
            await expect(anna.page.get_by_label("Token")).to_be_visible()
