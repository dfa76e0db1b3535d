"""One browser and one server for all tests of the web page. A plugin: modules name it in `pytest_plugins`.

It is not imported, so that the fixtures are known once and not once for every module that uses them.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest_asyncio
from playwright.async_api import Browser, async_playwright
from processes import Site, open_site

from parts import where


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """Debian's own: nothing is downloaded. Without a desktop's windows and services if that is installed, which shows
    the same pages with the same engine in half of the CPU time."""
    async with _launched("chromium-headless-shell", "chromium") as browser:
        yield browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def desktop_chromium() -> AsyncIterator[Browser]:
    """The one that people have: for notifications, installing, and what strangers wrote."""
    async with _launched("chromium") as browser:
        yield browser


@asynccontextmanager
async def _launched(*commands: str) -> AsyncIterator[Browser]:
    """The first of these that is installed."""
    found = next(filter(None, map(where, commands)), None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site() -> AsyncIterator[Site]:
    """A server that is shared: tests have projects of their own."""
    async with open_site("tcp") as found:
        await found.serve()
        yield found
