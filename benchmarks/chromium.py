"""A real browser at a Longboat: pages of someone who is logged in, and what they cost.

Debian's chromium, the one that the tests use: nothing is downloaded.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, ViewportSize, sync_playwright
from tests.parts import how, missing, where

from benchmarks.documents import document
from benchmarks.harness import RunningServer
from longboat.wire.discovery import DISCOVERY_NAME

SIZE: ViewportSize = {"width": 1280, "height": 800}

__all__ = ["Door", "door", "how", "missing", "spent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """The address at which browsers reach a running server."""

    browser: Browser
    url: str
    token: str
    server: RunningServer

    @contextmanager
    def stranger(self) -> Iterator[Page]:
        """A page with an empty cache, not logged in."""
        context = self.browser.new_context(viewport=SIZE, reduced_motion="reduce")
        try:
            yield context.new_page()
        finally:
            context.close()

    @contextmanager
    def guest(self) -> Iterator[Page]:
        """A page with an empty cache that is logged in and has a name."""
        with self.stranger() as page:
            page.add_init_script("localStorage.setItem('longboat.name', '\"bench\"')")
            page.context.request.get(f"{self.url}/login?token={self.token}", max_redirects=0)
            yield page

    def address(self, session_id: str) -> str:
        return f"{self.url}/#/{self.server.workspace.rpartition('/')[2]}/{session_id}"

    def session_of(self, messages: int) -> str:
        """A session with so many messages, prompts and answers in turn."""
        return self._imported(document(messages))

    def session_that_changed(self, files: int) -> str:
        """A session whose only turn changed so many files, each in 200 lines."""
        return self._imported(document(2) | {"changes": [_change(number) for number in range(files)]})

    def _imported(self, document: dict[str, Any]) -> str:
        return str(self.server.wire.ask("POST", f"{self.server.workspace}/sessions/import", document)["id"])


@contextmanager
def door(server: RunningServer) -> Iterator[Door]:
    found = json.loads((server.socket.parent / DISCOVERY_NAME).read_bytes())
    url = server.wire.ask("POST", "/v1/web")["url"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=where("chromium"), args=["--no-sandbox"])
        try:
            yield Door(browser=browser, url=url, token=found["token"], server=server)
        finally:
            browser.close()


def spent(cdp: CDPSession) -> dict[str, float]:
    """What the page has cost the browser so far."""
    return {one["name"]: one["value"] for one in cdp.send("Performance.getMetrics")["metrics"]}


def _change(number: int) -> dict[str, Any]:
    texts = ("".join(f"{word} = {line}\n" for line in range(100)) for word in ("before", "after"))
    before, after = ({"text": text, "data": None} for text in texts)
    return {"run_id": "r1", "path": f"src/file_{number}.py", "before": before, "after": after}
