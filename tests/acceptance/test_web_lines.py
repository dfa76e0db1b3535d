"""Lines that are short, broken or dead: many tabs of one browser, files and answers that do not arrive (F6)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from browser import MARKS, Tab, once, open_tab
from playwright.async_api import Browser, Page, Route, expect
from processes import Site
from sessions import SessionClient

pytestmark = MARKS
pytest_plugins = ("chromium",)

HIDDEN = "Object.defineProperty(document, 'visibilityState', { get: () => window.__seen ? 'visible' : 'hidden' })"
SHOW = "seen => { window.__seen = seen; document.dispatchEvent(new Event('visibilitychange')) }"


@asynccontextmanager
async def more_tabs(first: Tab, session: SessionClient, number: int, *scripts: str) -> AsyncIterator[list[Tab]]:
    """Of the same browser as the first: they share its connections."""
    async with AsyncExitStack() as stack:
        tabs: list[Tab] = []
        for _ in range(number):
            page: Page = await first.page.context.new_page()
            stack.push_async_callback(page.close)
            for script in scripts:
                await page.add_init_script(script)
            tab = Tab(page=page, name=first.name, origin=first.origin)
            tab.listen()
            await page.goto(f"{first.origin}/#/{session.workspace.rpartition('/')[2]}/{session.session_id}")
            tabs.append(tab)
        yield tabs
        assert [tab.faults for tab in tabs] == [[]] * number


async def test_f6_eight_windows_of_one_browser_all_follow_and_any_of_them_prompts(
    chromium: Browser, site: Site
) -> None:
    """A browser has six connections to a server: eight streams would leave none for a prompt."""
    session = await site.session(site.project("windows"))
    async with open_tab(chromium, site, session) as anna, more_tabs(anna, session, 7) as others:
        await others[-1].say("from the eighth")
        for tab in [anna, *others]:
            await tab.sees("from the eighth")
        await anna.say("from the first")
        for tab in [anna, *others]:
            await tab.sees("from the first")


async def test_f6_tabs_that_nobody_sees_make_way_and_catch_up_when_they_are_seen(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("hidden"))
    async with open_tab(chromium, site, session) as anna, more_tabs(anna, session, 6, HIDDEN) as hidden:
        await anna.live()
        await anna.say("while they sleep")
        await anna.sees("while they sleep")
        await expect(hidden[-1].connection).to_have_attribute("data-state", "turns")
        for tab in hidden:
            await tab.page.evaluate(SHOW, True)
            await tab.live()
            await tab.sees("while they sleep")
            await tab.page.evaluate(SHOW, False)


async def test_f6_a_file_of_the_page_that_does_not_arrive_is_asked_for_again(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("torn"))
    async with open_tab(chromium, site) as anna:
        await once(anna.page, "**/assets/js/mirror.js", Route.abort)
        await anna.go(session)
        await anna.say("all here")
        await anna.sees("all here")


async def test_f6_a_page_that_never_arrives_whole_says_so_and_has_a_button(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("torn for good"))
    async with open_tab(chromium, site) as anna:
        await anna.page.route("**/assets/js/mirror.js", lambda route: route.abort())
        await anna.page.goto(anna.origin)
        alert = anna.page.get_by_role("alert").filter(has_text="Part of this page did not load.")
        await expect(alert).to_contain_text("The server may be down.")
        await anna.page.unroute("**/assets/js/mirror.js")
        await anna.button("Reload").click()
        await expect(alert).to_have_count(0)
        await anna.go(session)


async def test_f6_a_page_whose_files_do_not_fit_together_is_loaded_again(chromium: Browser, site: Site) -> None:
    """As when the server is replaced by another version in the middle of it."""
    session = await site.session(site.project("mixed"))
    async with open_tab(chromium, site) as anna:
        old = {"body": "export const nothing = 1;", "content_type": "text/javascript"}
        await once(anna.page, "**/assets/js/mirror.js", lambda route: route.fulfill(**old))
        await anna.page.goto(f"{anna.origin}/#/{session.workspace.rpartition('/')[2]}/{session.session_id}")
        await anna.live()
        anna.faults.clear()  # of the one that did not fit


@pytest.mark.parametrize(("what", "path"), [("reading", "**/messages?*"), ("prompting", "**/agent")])
async def test_f6_an_answer_that_never_comes_is_not_waited_for_without_end(
    chromium: Browser, site: Site, what: str, path: str
) -> None:
    session = await site.session(site.project(f"dead line {what}"))
    stuck = asyncio.Event()

    async def swallow(_: Route) -> None:
        stuck.set()

    async with open_tab(chromium, site) as anna:
        await anna.page.clock.install()
        await once(anna.page, path, swallow)
        await anna.go(session)
        await anna.say("hello")
        async with asyncio.timeout(20):
            await stuck.wait()
        await anna.page.clock.fast_forward(130_000)
        await anna.sees("hello", "echo: hello")
