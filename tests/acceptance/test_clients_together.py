"""One session in a terminal, on a page and at a command, at the same time (F6)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from browser import MARKS, call, open_tab
from cli_home import Endpoint, Home
from playwright.async_api import Browser, expect
from processes import Site
from tmux import Pane, pane

from longboat.testing import Pause, Say
from parts import how, missing

pytestmark = [*MARKS, pytest.mark.skipif(missing("tmux"), reason=how("tmux"))]
pytest_plugins = ("chromium",)


class Terminal:
    """The terminal app in tmux. In a thread: the model is in the loop of the test, and must go on meanwhile."""

    def __init__(self, shown: Pane) -> None:
        self._shown = shown

    async def sees(self, *wanted: str, gone: str = "") -> str:
        return await asyncio.to_thread(self._shown.until, *wanted, gone=gone)

    async def say(self, text: str) -> None:
        await asyncio.to_thread(self._shown.say, text)

    async def press(self, *keys: str) -> None:
        await asyncio.to_thread(self._shown.press, *keys)


@asynccontextmanager
async def open_terminal(site: Site, *arguments: str, cwd: Path, user: str) -> AsyncIterator[Terminal]:
    home = Home(site.path, Endpoint(site.model.base_url), site.environ)
    with pane(home, *arguments, cwd=cwd, size=(120, 40), user=user) as shown:
        yield Terminal(shown)


async def test_f6_a_terminal_a_page_and_a_command_show_one_session_at_the_same_time(
    desktop_chromium: Browser, site: Site
) -> None:
    words, more, never = (site.model.gate(f"together-{number}") for number in range(3))
    site.model.add(
        [Say("First words"), Pause(words), Say(" and more of them."), call("bash", command="touch made")],
        [Say("It is made."), Pause(more), Say(" Half of the rest"), Pause(never)],
        name="together",
    )
    directory = site.project("together")
    session = await site.session(directory)
    async with AsyncExitStack() as clients:
        anna = await clients.enter_async_context(open_tab(desktop_chromium, site, session))
        tom = await clients.enter_async_context(
            open_terminal(site, "-s", session.session_id, cwd=directory, user="tom")
        )
        await tom.sees("Type a prompt", "also connected: anna")
        await tom.say("[[together]] go")
        # Text streams to all of them, long before the run ends.
        await words.reached()
        await tom.sees("First words", "working")
        await anna.sees("[[together]] go", "First words")
        await expect(anna.working).to_contain_text("for tom")
        (run,) = await session.ledger()
        wanda = await clients.enter_async_context(
            open_terminal(site, "watch", run["run_id"], cwd=directory, user="wanda")
        )
        await wanda.sees("First words")
        words.open()
        # All are asked; the page answers, and the others say who it was.
        await tom.sees("touch made", "Deny")
        await wanda.sees("? Run touch made", "[d]eny")
        await expect(anna.asks).to_contain_text("touch made")
        await anna.button("Allow once").click()
        await tom.sees("allowed (once) by anna", "It is made.", gone="Deny")
        await expect(anna.tools.locator(".tool-said")).to_have_text("allowed (once) by you")
        await anna.sees("and more of them.", "It is made.")
        assert (directory / "made").exists()
        more.open()
        await tom.sees("Half of the rest")
        await anna.sees("Half of the rest")
        await wanda.sees("anna answered: once", "Half of the rest")
        # The terminal cancels, and everybody is told.
        await tom.press("Escape")
        await tom.sees("Canceled", "Idle", "Half of the rest")
        await anna.idle()
        (canceled,) = await session.ledger()
        await expect(anna.transcript.locator(".finish:visible")).to_have_text(["Canceled by tom"])
        assert run["client_id"].startswith("tom:")
        assert canceled["outcome"] == "canceled"
        await wanda.sees("anceled", "ended 130")
