"""Longboat's page in a real browser, which tells everything that it must not do.

A `Tab` is somebody at the page: a browser profile of their own, logged in, under a name. What may never happen is
counted while it is open and fails the test when it closes: a breach of the page's content security policy, an uncaught
error, a dialog of the browser, a request that leaves the server's origin, a secret in the page.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, ConsoleMessage, Dialog, Locator, Page, Request, Route, expect
from processes import Site
from sessions import SessionClient

from longboat.testing import CallTool
from parts import how, missing
from secrecy import SECRETS, check_for_secrets

MARKS = [
    pytest.mark.acceptance,
    pytest.mark.skipif(missing("chromium"), reason=how("chromium")),
    # The browser, the server and the scripted model live in one loop for all tests.
    pytest.mark.asyncio(loop_scope="session"),
]

WIDE, NARROW = (1600, 1000), (360, 740)
TOKEN = SECRETS["server token"]
PICTURES = os.environ.get("LONGBOAT_PICTURES")
"""A directory for screenshots, if they are wanted. Read here: tests themselves do not see the variable."""

expect.set_options(timeout=30_000)

# What a script in the page would have to do, and what the browser tells of its policy.
_WATCHED = """
window.__pwned = false;
addEventListener('securitypolicyviolation', (event) =>
  console.error(`Content Security Policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""
_NAMED = "localStorage.getItem('longboat.name') ?? localStorage.setItem('longboat.name', %s);"


@dataclass(kw_only=True)
class Tab:
    """Somebody at the page."""

    page: Page
    name: str
    origin: str
    faults: list[str] = field(default_factory=list)

    # What is on it

    @property
    def transcript(self) -> Locator:
        return self.page.get_by_role("region", name="Transcript")

    @property
    def title(self) -> Locator:
        return self.page.locator(".session-bar h1")

    @property
    def prompt(self) -> Locator:
        return self.page.get_by_role("textbox", name="Prompt").first

    @property
    def connection(self) -> Locator:
        return self.page.locator("#connection")

    @property
    def queue(self) -> Locator:
        return self.page.get_by_role("region", name="Queue")

    @property
    def asks(self) -> Locator:
        return self.page.locator("article.ask:not(.leaving)")

    @property
    def working(self) -> Locator:
        return self.page.locator(".dock .working")

    @property
    def tools(self) -> Locator:
        return self.transcript.locator("details.tool")

    @property
    def toasts(self) -> Locator:
        return self.page.locator("#toasts")

    def button(self, name: str, *, within: Locator | None = None) -> Locator:
        return (within or self.page).get_by_role("button", name=name, exact=True)

    # What people do

    async def go(self, session: SessionClient | None = None, *, path: str = "/") -> None:
        """Open a session, and wait until the page is live."""
        if session is not None:
            path = f"/#/{session.workspace.rpartition('/')[2]}/{session.session_id}"
        await self.page.goto(self.origin + path)
        if session is not None:
            await self.live()

    async def live(self) -> None:
        await expect(self.connection).to_have_attribute("data-state", "live")

    async def say(self, text: str) -> None:
        await self.prompt.fill(text)
        await self.prompt.press("Enter")

    async def delivery(self, name: str) -> None:
        """How the next prompt reaches an agent that works."""
        await self.page.get_by_role("radio", name=name).check()

    async def sees(self, *texts: str) -> None:
        for text in texts:
            await expect(self.transcript).to_contain_text(text)

    async def idle(self) -> None:
        await expect(self.working).to_be_hidden()

    async def texts(self) -> list[str]:
        """What the transcript shows, message by message: who said it, and what."""
        script = """rows => rows.map(row => row.querySelector('.who').textContent + ': '
            + row.querySelector('.message-body').innerText.trim().replace(/\\s+/g, ' '))"""
        texts: list[str] = await self.page.locator(".transcript > .rows > .message").evaluate_all(script)
        return texts

    async def picture(self, name: str) -> None:
        """Keep what is on the screen, where pictures are wanted."""
        if PICTURES:
            await self.page.screenshot(path=Path(PICTURES) / f"{name}.png", animations="disabled")

    # What must not be

    def listen(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(f"an uncaught error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._request)
        self.page.on("popup", lambda page: self.faults.append(f"a window was opened: {page.url}"))

    def _console(self, message: ConsoleMessage) -> None:
        if any(word in message.text for word in ("Content Security Policy", "TrustedHTML", "TrustedScript")):
            self.faults.append(message.text)

    async def _dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"a dialog: {dialog.message}")
        await dialog.dismiss()

    def _request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.origin}/", "data:", "blob:")):
            self.faults.append(f"a request to {request.url}")


async def once(page: Page, path: str, act: Callable[[Route], Awaitable[None]]) -> None:
    """The first request there is answered so, all later ones by the server. Not the `times` of Playwright: as it ends,
    others that are under way can be left without an answer."""
    acts = iter([act])

    async def answer(route: Route) -> None:
        await next(acts, Route.continue_)(route)

    await page.route(path, answer)


@asynccontextmanager
async def open_tab(
    browser: Browser,
    site: Site,
    session: SessionClient | None = None,
    *,
    name: str = "anna",
    size: tuple[int, int] = (1280, 800),
    port: int = 0,
    logged_in: bool = True,
    **options: Any,
) -> AsyncIterator[Tab]:
    """A page of somebody, at the session if one is given."""
    origin = f"http://127.0.0.1:{port or site.port}"
    viewport = {"width": size[0], "height": size[1]}
    context = await browser.new_context(viewport=viewport, reduced_motion="reduce", **options)
    try:
        await context.add_init_script(_WATCHED)
        if name:
            await context.add_init_script(_NAMED % json.dumps(json.dumps(name)))
        if logged_in:
            answer = await context.request.get(f"{origin}/login?token={TOKEN}", max_redirects=0)
            assert answer.status == 303, await answer.text()
        tab = Tab(page=await context.new_page(), name=name, origin=origin)
        tab.listen()
        if session is not None:
            await tab.go(session)
        yield tab
        check_for_secrets(await tab.page.content(), "the page")
        assert await tab.page.evaluate("window.__pwned") is False
        assert tab.faults == []
    finally:
        await context.close()


async def new_session(site: Site, directory: Path) -> SessionClient:
    """A session that nobody is attached to, not even the test: for pictures."""
    http = await site.client()
    joined = (await http.post("/v1/workspaces", json={"path": str(directory)})).json()
    workspace = f"/v1/workspaces/{joined['id']}"
    made = (await http.post(f"{workspace}/sessions", json={})).json()
    return SessionClient(http, workspace, made["id"], start="")


@dataclass(kw_only=True)
class Wire:
    """A line between a page and its server that can be cut, as a laptop's is."""

    to: int
    port: int = 0
    _server: asyncio.Server | None = None
    _ends: set[asyncio.StreamWriter] = field(default_factory=set)

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._join, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for end in [*self._ends]:
            end.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.to)
        await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        try:
            while piece := await reader.read(65_536):
                writer.write(piece)
        except ConnectionError:
            pass
        finally:
            self._ends.discard(writer)
            writer.close()


@asynccontextmanager
async def open_wire(to: int) -> AsyncIterator[Wire]:
    wire = Wire(to=to)
    await wire.mend()
    try:
        yield wire
    finally:
        await wire.cut()


def call(name: str, /, **arguments: Any) -> CallTool:
    return CallTool(name, json.dumps(arguments))
