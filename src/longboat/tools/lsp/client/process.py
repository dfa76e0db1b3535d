"""The process of a language server: started below a guard, read from, written to, and ended with everything it started.
Knows only bytes."""

import asyncio
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from longboat.tools.process.programs import PipedProgram, Programs
from longboat.tools.process.supervisor_client import NOT_CONFIRMED
from longboat.tools.process.terminal_text import Plain

_TAIL = 4_096
"""Bytes kept of what it writes to its standard error."""
_ERROR = re.compile(r"\berror\b|Error:", re.IGNORECASE)
_REAPED_S = 1.0
"""How long we wait to hear of the end of a process that has ended."""
_LAST_WORDS_S = 0.2
"""How long after its exit its last output may still come: children that live on keep its pipes open."""


class Process(asyncio.Protocol):
    """`on_data` gets its output; `on_exit` is called once, with the reason of its end."""

    def __init__(self, programs: Programs, *, on_data: Callable[[bytes], None], on_exit: Callable[[str], None]) -> None:
        self._programs = programs
        self._on_data = on_data
        self._on_exit = on_exit
        self._tail = b""
        self._piped = PipedProgram(self, self._complain)
        self._gone = asyncio.Event()
        self._is_silent = False
        """Its output is closed."""
        self._reason: str | None = None

    async def start(self, argv: tuple[str, ...], directory: Path, environ: Mapping[str, str]) -> None:
        """Raises OSError, and ValueError for what can be no command."""
        program = await self._piped.start(self._programs, argv, directory=directory, environ=environ)
        program.when_exited(self._exited)

    @property
    def is_alive(self) -> bool:
        return self._piped.program is not None and not self._gone.is_set() and self._reason is None

    def write(self, data: bytes) -> None:
        if not self.is_alive:
            return
        if self._piped.input_is_stuck:
            self.kill("it does not read its input")
        else:
            self._piped.write(data)

    def kill(self, reason: str) -> None:
        """Kill it at once, without waiting for its end."""
        if self._piped.program is not None and not self._piped.has_exited:
            self._reason = self._reason or reason
            self._piped.program.kill()

    async def wait_gone(self, timeout_s: float) -> bool:
        try:
            await asyncio.wait_for(self._gone.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    async def end(self) -> None:
        """End it and everything that it started."""
        await self._piped.end()
        if self._piped.program is not None:
            await self.wait_gone(_REAPED_S)

    def data_received(self, data: bytes) -> None:
        self._on_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_silent = True
        if self._piped.program is not None and not self._piped.has_exited:
            # It can say nothing any more. Mostly it is about to exit; then its exit code is what we want to tell.
            asyncio.get_running_loop().call_later(_LAST_WORDS_S, self.kill, "it closed its standard output")
        elif self._piped.has_exited:
            self._is_gone()

    def _complain(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-_TAIL:]

    def _exited(self) -> None:
        asyncio.get_running_loop().call_later(0.0 if self._is_silent else _LAST_WORDS_S, self._is_gone)

    def _is_gone(self) -> None:
        if not self._gone.is_set():
            self._gone.set()
            self._piped.drain_errors()
            self._on_exit(self._farewell())

    def _farewell(self) -> str:
        program = self._piped.program
        if program is not None and program.ended_by_deadline:
            return NOT_CONFIRMED
        code = program.code if program is not None else None
        reason = self._reason or (f"exit code {code}" if code is not None and code >= 0 else f"signal {-(code or 0)}")
        said = [line.strip() for line in Plain().decode(self._tail).splitlines() if line.strip()]
        errors = [line for line in said if _ERROR.search(line)]
        return f"{reason}: {(errors or said)[-1][:300]}" if said else reason
