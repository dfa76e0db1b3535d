"""The process of a language server: started in its own process group, read from, written to, and ended with everything
it started. Knows only bytes."""

import asyncio
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from longboat.tools.process import process_tree
from longboat.tools.process.terminal_text import Plain

MAX_UNREAD = 64 * 2**20
"""Bytes kept for a server that does not read."""
_TAIL = 4_096
"""Bytes kept of what it writes to its standard error."""
_ERROR = re.compile(r"\berror\b|Error:", re.IGNORECASE)
_REAPED_S = 1.0
"""How long we wait to hear of the end of a process that has ended."""
_LAST_WORDS_S = 0.2
"""How long after its exit its last output may still come: children that live on keep its pipes open."""


class Process(asyncio.SubprocessProtocol):
    """`on_data` gets its output; `on_exit` is called once, with the reason of its end."""

    def __init__(self, mark: str, *, on_data: Callable[[bytes], None], on_exit: Callable[[str], None]) -> None:
        self._mark = mark
        self._on_data = on_data
        self._on_exit = on_exit
        self._tail = b""
        self._transport: asyncio.SubprocessTransport | None = None
        self._gone = asyncio.Event()
        self._reason: str | None = None

    async def start(self, argv: tuple[str, ...], directory: Path, environ: Mapping[str, str]) -> None:
        """Raises OSError, and ValueError for what can be no command."""
        await asyncio.get_running_loop().subprocess_exec(
            lambda: self,
            *argv,
            cwd=directory,
            env={**environ, process_tree.MARK: self._mark},
            start_new_session=True,
        )

    @property
    def is_alive(self) -> bool:
        return self._transport is not None and not self._gone.is_set() and self._reason is None

    def write(self, data: bytes) -> None:
        if not self.is_alive or self._transport is None:
            return
        pipe = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        if pipe.get_write_buffer_size() > MAX_UNREAD:
            self.kill("it does not read its input")
        elif not pipe.is_closing():
            pipe.write(data)

    def kill(self, reason: str) -> None:
        """End the process itself at once; `end` ends what it started too."""
        if self._transport is not None and self._transport.get_returncode() is None:
            self._reason = self._reason or reason
            self._transport.kill()

    async def wait_gone(self, timeout_s: float) -> bool:
        try:
            await asyncio.wait_for(self._gone.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    async def end(self) -> None:
        """End it and everything that it started."""
        if self._transport is None:
            return
        group = self._transport.get_pid()
        # One that left in good order has taken its children along: no need to look through all processes.
        if self._transport.get_returncode() != 0 or process_tree.member(group) is not None:
            await process_tree.end(group, self._mark)
        self._transport.close()
        await self.wait_gone(_REAPED_S)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self._on_data(data)
        else:
            self._tail = (self._tail + data)[-_TAIL:]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1 and self._transport is not None and self._transport.get_returncode() is None:
            # It can say nothing any more. Mostly it is about to exit; then its exit code is what we want to tell.
            asyncio.get_running_loop().call_later(_LAST_WORDS_S, self.kill, "it closed its standard output")

    def process_exited(self) -> None:
        asyncio.get_running_loop().call_later(_LAST_WORDS_S, self._is_gone)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_gone()

    def _is_gone(self) -> None:
        if not self._gone.is_set():
            self._gone.set()
            self._on_exit(self._farewell())

    def _farewell(self) -> str:
        code = self._transport.get_returncode() if self._transport is not None else None
        reason = self._reason or (f"exit code {code}" if code is not None and code >= 0 else f"signal {-(code or 0)}")
        said = [line.strip() for line in Plain().decode(self._tail).splitlines() if line.strip()]
        errors = [line for line in said if _ERROR.search(line)]
        return f"{reason}: {(errors or said)[-1][:300]}" if said else reason
