"""The slot of one server at one root: started when needed, restarted after a crash, and finally given up.

A start belongs to the slot, not to the call that needed it: a canceled call leaves it alone, and several calls share
it. The next call that needs a crashed server restarts it, after a pause that doubles with each crash.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from longboat.tasks import Tasks
from longboat.tools.context import ToolError
from longboat.tools.lsp.client.json_rpc import BadAnswer, NoAnswer, Refused, ServerGone
from longboat.tools.lsp.client.server import Server, Timeouts
from longboat.tools.lsp.client.server_specs import ServerSpec
from longboat.tools.process.programs import Programs

_CLOSING = "The workspace is closing, so no language server can be started."


class ServerState(StrEnum):
    IDLE = "idle"
    """Not needed yet."""
    STARTING = "starting"
    READY = "ready"
    CRASHED = "crashed"
    """It exited on its own, or could not be reached. The next call that needs it restarts it."""
    FAILED = "failed"
    """It crashed too often, or cannot be started at all."""
    STOPPED = "stopped"
    """The workspace closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    name: str
    root: Path
    state: ServerState
    detail: str = ""
    """Why it crashed or failed."""


class ServerSlot:
    def __init__(
        self,
        spec: ServerSpec,
        root: Path,
        *,
        environ: Mapping[str, str],
        programs: Programs,
        timeouts: Timeouts,
        on_change: Callable[[ServerStatus], None],
    ) -> None:
        self.spec = spec
        self.root = root
        self._environ = environ
        self._programs = programs
        self._timeouts = timeouts
        self._on_change = on_change
        self._server: Server | None = None
        self._starting: asyncio.Task[Server | None] | None = None
        self._tasks = Tasks()
        self._closing = False
        self._crashes = 0
        self._since = 0.0
        """When the state last changed."""
        self.status = ServerStatus(name=spec.name, root=root, state=ServerState.IDLE)

    @property
    def running(self) -> Server | None:
        """The server, if it is ready."""
        return self._server if self._server is not None and self._server.is_alive else None

    async def server(self) -> Server:
        """The server, started if need be. A ToolError says why there is none."""
        if (server := self.running) is not None:
            return server
        if self._closing:
            raise ToolError(_CLOSING)
        if self._starting is None:
            if self.status.state is ServerState.FAILED and not self._is_forgiven():
                raise self._unusable()
            self._starting = self._tasks.spawn(self._start(), name=f"start {self.spec.name}", awaited=True)
        starting = self._starting
        await asyncio.wait({starting})
        if starting.cancelled():
            raise ToolError(_CLOSING)
        if (started := starting.result()) is None:
            raise self._unusable()
        return started

    async def aclose(self) -> None:
        """End the server and whatever it started."""
        self._closing = True
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        if self._server is not None:
            await self._server.aclose()
        if ending := self._tasks.pending:
            await asyncio.wait(ending)
        if self.status.state is not ServerState.IDLE:
            self._change(ServerState.STOPPED)

    async def _start(self) -> Server | None:
        try:
            await self._pause()
            self._change(ServerState.STARTING)
            server = Server(
                self.spec,
                self.root,
                environ=self._environ,
                programs=self._programs,
                timeouts=self._timeouts,
                on_exit=lambda reason: self._lost(server, reason),
            )
            if await self._greet(server):
                self._server = server
                self._change(ServerState.READY)
                return server
            return None
        finally:
            self._starting = None

    async def _greet(self, server: Server) -> bool:
        greeted = False
        try:
            await server.start()
            greeted = server.is_alive
            if not greeted:
                self._crashed("it exited right after starting")
        except (FileNotFoundError, PermissionError, ValueError):
            command = self.spec.argv[0]
            self._change(ServerState.FAILED, f"the command {command!r} does not exist or cannot be run")
        except Refused as refused:
            self._change(ServerState.FAILED, str(refused))  # it would say the same again
        except (OSError, NoAnswer, BadAnswer, ServerGone) as error:
            self._crashed(str(error))
        finally:
            if not greeted:
                await server.aclose()
        return greeted

    async def _pause(self) -> None:
        if self.status.state is ServerState.CRASHED:
            due = self._since + self._timeouts.restart.delay(self._crashes)
            await _sleep(max(0.0, due - _now()))

    def _lost(self, server: Server, reason: str) -> None:
        if server is not self._server or self._closing:
            return  # the one that starts or ends it knows already
        self._server = None
        if _now() - self._since > self._timeouts.stable_s:
            self._crashes = 0
        self._crashed(reason)
        # What it started may have outlived it.
        self._tasks.spawn(server.aclose(), name=f"end {self.spec.name}")

    def _crashed(self, reason: str) -> None:
        self._crashes += 1
        given_up = self._timeouts.restart.gives_up(self._crashes)
        self._change(ServerState.FAILED if given_up else ServerState.CRASHED, reason)

    def _is_forgiven(self) -> bool:
        return _now() - self._since > self._timeouts.forgive_s

    def _unusable(self) -> ToolError:
        hope = "It will not be retried for now" if self.status.state is ServerState.FAILED else "Try again"
        return ToolError(
            f"The language server {self.spec.name} does not work ({self.status.detail}). {hope}: "
            "use grep and view instead."
        )

    def _change(self, state: ServerState, detail: str = "") -> None:
        self._since = _now()
        self.status = ServerStatus(name=self.spec.name, root=self.root, state=state, detail=detail)
        self._on_change(self.status)


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)
