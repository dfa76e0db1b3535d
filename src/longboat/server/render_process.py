"""The process that renders text for the page, and its time limit.

Some inputs take parsers of Markdown and programming languages minutes, and they block the interpreter. In a separate
process they do not block the server, and can be killed. Must not know what HTML is produced.
"""

import asyncio
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from html import escape

import msgspec

from longboat.wire.requests import RenderItem

ITEM_S = 3.0
"""How long one item may take. The first one has the start of the process besides."""
START_S = 10.0
ALL_S = 15.0
"""How long the items of one request may take together: what is left then is shown as it is."""
IDLE_S = 300.0
MAX_SLOW = 1_000
MAX_LINE = 64 << 20
_PASSED = ("PATH", "PYTHONPATH", "HOME", "LANG", "LC_ALL")

log = logging.getLogger(__name__)


def plain(text: str) -> str:
    """The plain text, for anything that could not be rendered."""
    return f'<pre class="plain">{escape(text)}</pre>'


class Renderer:
    """Starts the process with the first request, and ends it when it is no longer used."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._slow: dict[int, None] = {}
        """Texts that took too long, the newest: everyone who looks at a session asks for them."""

    async def render(self, items: Sequence[RenderItem]) -> list[str]:
        """The HTML of each."""
        loop = asyncio.get_running_loop()
        spent_s = 0.0
        made: list[str] = []
        for item in items:
            async with self._turn:  # one item at a time: a request for one item does not wait for all of another's
                self._stop_clock()
                began = loop.time()
                is_hopeless = spent_s >= ALL_S or hash((item.kind, item.text)) in self._slow
                made.append(plain(item.text) if is_hopeless else await self._one(item))
                spent_s += loop.time() - began
                self._idle = loop.call_later(IDLE_S, self._let_go)
        return made

    async def aclose(self) -> None:
        self._stop_clock()
        await self._end()

    async def _one(self, item: RenderItem) -> str:
        allowed_s = ITEM_S if self._process is not None else START_S
        try:
            async with asyncio.timeout(allowed_s):
                return await self._ask(item)
        except TimeoutError:
            log.warning("rendering %d characters of %s took over %g s; shown unrendered", *_describe(item), allowed_s)
            self._slow[hash((item.kind, item.text))] = None
            if len(self._slow) > MAX_SLOW:
                del self._slow[next(iter(self._slow))]
        except (OSError, EOFError, ValueError, msgspec.DecodeError) as error:
            log.warning("rendering %d characters of %s failed: %r", *_describe(item), error)
        except asyncio.CancelledError:
            # Its answer would be taken for the next one's.
            await self._end()
            raise
        await self._end()
        return plain(item.text)

    async def _ask(self, item: RenderItem) -> str:
        if self._process is not None and self._is_gone(self._process):
            await self._end()
        if self._process is None:
            self._process = await _start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(item) + b"\n")
        await process.stdin.drain()
        answer = await process.stdout.readline()
        if not answer:
            raise EOFError("the process ended")
        return msgspec.json.decode(answer, type=str)

    def _is_gone(self, process: Process) -> bool:
        return process.returncode is not None or process.stdin is None or process.stdin.is_closing()

    def _let_go(self) -> None:
        """Its input ends, and so does it. The next request starts another."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _stop_clock(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def _describe(item: RenderItem) -> tuple[int, str]:
    return len(item.text), item.kind


async def _start() -> Process:
    # -P: the directory that the server was started in must not give it modules.
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "longboat.server.rendering"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        limit=MAX_LINE,
        env={name: os.environ[name] for name in _PASSED if name in os.environ},
        start_new_session=True,
    )


@asynccontextmanager
async def open_renderer() -> AsyncIterator[Renderer]:
    renderer = Renderer()
    try:
        yield renderer
    finally:
        await renderer.aclose()
