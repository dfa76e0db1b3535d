"""Prompts that a server which is there fails at, and answers that are lost on the way (F6)."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from browser import MARKS, Tab, open_tab
from playwright.async_api import Browser, Locator, Route, expect
from processes import Site
from sessions import SessionClient

from longboat.testing import Pause, Say

pytestmark = MARKS
pytest_plugins = ("chromium",)

FAILED = json.dumps({"code": "internal_error", "message": "The server failed on this request."})


def outgoing(tab: Tab) -> Locator:
    return tab.page.locator(".outgoing > li")


def failed(tab: Tab) -> Locator:
    return tab.page.locator(".outgoing > li.refused")


async def prompts(session: SessionClient) -> list[str]:
    return [run["prompt"] for run in await session.ledger()]


def fails_at(
    prompt: str, tries: list[str], may_fail: asyncio.Event | None = None
) -> Callable[[Route], Awaitable[None]]:
    """A server with a defect that one prompt meets; `tries` takes the run ids it came with."""

    async def answer(route: Route) -> None:
        body = json.loads(route.request.post_data or "{}")
        if body.get("prompt") != prompt:
            return await route.continue_()
        tries.append(body["run_id"])
        if may_fail is not None:
            await may_fail.wait()
        return await route.fulfill(status=500, body=FAILED)

    return answer


async def test_f6_a_prompt_that_the_server_always_fails_at_does_not_hold_up_those_behind_it(
    chromium: Browser, site: Site
) -> None:
    session = await site.session(site.project("defect"))
    tries: list[str] = []
    all_listed = asyncio.Event()
    async with open_tab(chromium, site, session) as anna:
        await anna.page.route("**/agent", fails_at("cursed", tries, all_listed))
        for prompt in ("cursed", "second", "third"):
            await anna.say(prompt)
        await expect(outgoing(anna)).to_have_text([re.compile("cursed"), re.compile("second"), re.compile("third")])
        all_listed.set()
        await anna.sees("echo: second", "third")
        await expect(outgoing(anna)).to_have_count(1)
        await expect(failed(anna)).to_contain_text("cursed")
        await expect(failed(anna)).to_contain_text("Failed 5 times. The server failed on this request.")
        assert len(tries) == 5
        assert len(set(tries)) == 1, "the same run each time: never twice"
        await anna.idle()
        assert await prompts(session) == ["second", "third"]
        await anna.page.reload()
        await anna.live()
        await expect(failed(anna)).to_contain_text("cursed")
        await anna.page.unroute("**/agent")
        await anna.button("Resend", within=failed(anna)).click()
        await anna.sees("echo: cursed")
        await expect(outgoing(anna)).to_have_count(0)
        runs = await session.ledger()
        assert [run["prompt"] for run in runs] == ["second", "third", "cursed"]
        assert runs[-1]["run_id"] == tries[0], "the server may have had it after all"


async def test_f6_a_prompt_that_failed_is_edited_or_discarded_and_the_server_shall_not_run_it(
    chromium: Browser, site: Site
) -> None:
    """It may have come after all: then its run is canceled."""
    session = await site.session(site.project("defect-late"))
    site.model.add([Say("Begun."), Pause(site.model.gate("late"))], name="late")

    async def take_it_and_fail(route: Route) -> None:
        await route.fetch()
        await route.fulfill(status=500, body=FAILED)

    async with open_tab(chromium, site, session) as anna:
        # The stream would tell that the run is there.
        await anna.page.route("**/events?*", lambda route: route.abort())
        await anna.page.reload()
        await anna.page.route("**/agent", take_it_and_fail)
        await anna.say("[[late]]")
        await expect(failed(anna)).to_contain_text("Failed 5 times")
        await anna.button("Edit", within=failed(anna)).click()
        await expect(anna.prompt).to_have_value("[[late]]")
        await expect(outgoing(anna)).to_have_count(0)
        (run,) = await session.ledger()
        assert await session.outcome(run["run_id"]) == "canceled"


async def test_f6_a_prompt_that_failed_and_is_seen_to_run_is_no_longer_shown_as_not_sent(
    chromium: Browser, site: Site
) -> None:
    session = await site.session(site.project("defect-seen"))
    async with open_tab(chromium, site, session) as anna:
        bodies: list[Any] = []

        async def fail(route: Route) -> None:
            bodies.append(json.loads(route.request.post_data or "{}"))
            await route.fulfill(status=500, body=FAILED)

        await anna.page.route("**/agent", fail)
        await anna.say("on its way")
        await expect(failed(anna)).to_contain_text("Failed 5 times")
        assert (await session.http.post(f"{session.workspace}/agent", json=bodies[0])).status_code == 202
        await anna.sees("echo: on its way")
        await expect(outgoing(anna)).to_have_count(0)


async def test_f6_a_server_that_is_not_well_is_waited_for_however_often_it_fails(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("unwell"))
    tries: list[str] = []
    async with open_tab(chromium, site, session) as anna:
        unwell = json.dumps({"status": "degraded", "detail": "The disk is full."})
        await anna.page.route("**/v1/health", lambda route: route.fulfill(status=200, body=unwell))
        await anna.page.route("**/agent", fails_at("patience", tries))
        await anna.page.clock.install()
        await anna.say("patience")
        for number in range(8):
            async with anna.page.expect_request("**/v1/health"):
                await anna.page.clock.run_for(9_000)
            assert len(tries) > number
        await expect(failed(anna)).to_have_count(0)
        await expect(outgoing(anna)).to_contain_text("patience")
        await anna.page.unroute("**/agent")
        await anna.page.clock.run_for(9_000)
        await anna.sees("echo: patience")
        assert await prompts(session) == ["patience"]


async def test_f6_a_session_whose_making_was_not_heard_of_is_made_once(chromium: Browser, site: Site) -> None:
    session = await site.session(site.project("lost-answer"))
    workspace = session.workspace.rpartition("/")[2]
    async with open_tab(chromium, site) as anna:
        await anna.go(path=f"/#/{workspace}")
        await anna.live()
        lost: list[int] = []

        async def lose(route: Route) -> None:
            if route.request.method != "POST" or len(lost) == 2:
                return await route.continue_()
            lost.append((await route.fetch()).status)
            return await route.abort()

        await anna.page.route("**/sessions", lose)
        await anna.say("only one")
        await anna.sees("echo: only one")
        assert lost == [201, 200]
        made = (await session.http.get(f"{session.workspace}/sessions")).json()["items"]
        assert len(made) == 2, "the test's own, and one of the page"
