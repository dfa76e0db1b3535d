"""Longboat's page in Debian's Firefox, by WebDriver BiDi, which Firefox speaks itself: no driver beside it.

Playwright asks a stable Firefox for commands that it does not have yet. What a person does on the main path needs few:
to look, to type, to click. What the browser reports as an error is kept in `faults`: uncaught errors, breaches of the
page's policy, `console.error`.
"""

import asyncio
import itertools
import json
import os
import re
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cli_home import GIVE_UP_S
from websockets.asyncio.client import ClientConnection, connect

from parts import how, missing, where

MARKS = [pytest.mark.acceptance, pytest.mark.skipif(missing("firefox-esr"), reason=how("firefox-esr"))]

ENTER = "\ue007"
CONTROL = "\ue009"

# Asked in the page, so that an answer comes as soon as there is one.
_UNTIL = """new Promise((resolve) => {
  const look = () => {
    const found = (() => %s)();
    if (found) resolve(JSON.stringify(found));
    else setTimeout(look, 30);
  };
  look();
})"""


@dataclass(kw_only=True)
class Firefox:
    """One browser: its commands are numbered, its answers and reports come in any order."""

    socket: ClientConnection
    faults: list[str] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _asked: dict[int, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        answered = self._asked[number] = asyncio.get_running_loop().create_future()
        await self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        async with asyncio.timeout(GIVE_UP_S):
            answer = await answered
        assert answer["type"] == "success", (method, answer)
        result: dict[str, Any] = answer["result"]
        return result

    async def listen(self) -> None:
        async for raw in self.socket:
            told = json.loads(raw)
            if told["type"] == "event":
                self._report(told["params"])
            else:
                self._asked.pop(told["id"]).set_result(told)

    def _report(self, entry: dict[str, Any]) -> None:
        if entry["level"] == "error":
            self.faults.append(entry["text"] or str(entry.get("args")))

    async def person(self) -> "Window":
        """A window of somebody who shares no cookies and no storage with the others."""
        profile = (await self.call("browser.createUserContext"))["userContext"]
        made = await self.call("browsingContext.create", type="window", userContext=profile)
        return Window(firefox=self, context=made["context"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Somebody at the page."""

    firefox: Firefox
    context: str

    async def go(self, address: str) -> None:
        await self.firefox.call("browsingContext.navigate", context=self.context, url=address, wait="complete")

    async def until(self, expression: str) -> Any:
        """What the expression gives, once that is something."""
        answer = await self.firefox.call(
            "script.evaluate",
            expression=_UNTIL % expression,
            target={"context": self.context},
            awaitPromise=True,
        )
        assert answer["type"] == "success", (expression, answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    async def sees(self, *texts: str) -> None:
        for text in texts:
            await self.until(f"document.querySelector('.transcript')?.innerText.includes({json.dumps(text)})")

    async def type(self, text: str, *, with_key: str = "") -> None:
        """To whatever has the focus."""
        held = [{"type": "keyDown", "value": with_key}] if with_key else []
        pressed = [{"type": way, "value": key} for key in text for way in ("keyDown", "keyUp")]
        left = [{"type": "keyUp", "value": with_key}] if with_key else []
        await self._act({"type": "key", "id": "keys", "actions": [*held, *pressed, *left]})

    async def click(self, role: str, name: str) -> None:
        """The one that assistive technology knows by these."""
        locator = {"type": "accessibility", "value": {"role": role, "name": name}}
        found = await self.firefox.call("browsingContext.locateNodes", context=self.context, locator=locator)
        [node] = found["nodes"]
        there = {"type": "element", "element": {"sharedId": node["sharedId"]}}
        button = [{"type": way, "button": 0} for way in ("pointerDown", "pointerUp")]
        actions = [{"type": "pointerMove", "x": 0, "y": 0, "origin": there}, *button]
        await self._act({"type": "pointer", "id": "mouse", "actions": actions})

    async def _act(self, source: dict[str, Any]) -> None:
        await self.firefox.call("input.performActions", context=self.context, actions=[source])


@asynccontextmanager
async def open_firefox() -> AsyncIterator[Firefox]:
    """A browser with a home of its own. It is ended with the test, and what it reported fails the test."""
    with tempfile.TemporaryDirectory(prefix="lb-firefox-", ignore_cleanup_errors=True) as home:
        # A test's own pages need no sandbox, and containers often have none to give.
        environ = {**os.environ, "HOME": home, "MOZ_DISABLE_CONTENT_SANDBOX": "1", "MOZ_CRASHREPORTER_DISABLE": "1"}
        (Path(home) / "profile").mkdir()
        process = await asyncio.create_subprocess_exec(
            *(where("firefox-esr") or "", "--headless", "--no-remote", "--remote-debugging-port=0"),
            *("--profile", f"{home}/profile"),
            env=environ,
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=PIPE,
        )
        assert process.stderr is not None
        try:
            async with connect(f"{await _address(process.stderr)}/session", max_size=None) as socket:
                firefox = Firefox(socket=socket)
                # What it still has to say is read for as long as it lives: a full pipe would stop it.
                heard = [asyncio.create_task(firefox.listen()), asyncio.create_task(process.stderr.read())]
                await firefox.call("session.new", capabilities={})
                await firefox.call("session.subscribe", events=["log.entryAdded"])
                yield firefox
                await firefox.call("browser.close")
                await asyncio.gather(*heard)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
    assert firefox.faults == []


async def _address(stderr: asyncio.StreamReader) -> str:
    async with asyncio.timeout(GIVE_UP_S):
        async for line in stderr:
            if found := re.search(rb"WebDriver BiDi listening on (ws://\S+)", line):
                return found[1].decode()
    raise AssertionError("Firefox ended before it could be asked for anything")
