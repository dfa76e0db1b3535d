"""One configured server over its whole life: connected in its own task, reconnected when it fails, and finally closed.

Owns that task, the child process behind it and the calls in progress. Must not know the SDK beyond `connection`, which
is imported when it is first needed, nor permissions.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from longboat.backoff import Backoff
from longboat.errors import ConfigInvalid
from longboat.tasks import Tasks
from longboat.tools.context import ToolError
from longboat.tools.mcp.logins import Logins, query_of
from longboat.tools.mcp.settings import McpServer, Target, kind_of, resolve
from longboat.tools.mcp.state import Answer, Catalog, McpPrompt, Phase, ServerState
from longboat.tools.process.programs import Programs

if TYPE_CHECKING:
    from longboat.tools.mcp.connection import Connection, ConnectionSettings
    from longboat.tools.mcp.reasons import Reason

logger = logging.getLogger(__name__)
T = TypeVar("T")

FOR_MODEL = "continue without it for now"
FOR_PERSON = "try again in a moment; `longboat mcp` shows its state"
CALL_WAIT_S = 15.0
"""How long a call waits for a server that is being connected."""
_GRACE_S = 1.0
"""For what is in progress, before a server is closed anyway."""
_CLOSE_S = 3.0

RECONNECT = Backoff(base_s=0.5, ceiling_s=30.0, attempts=6)
"""For a server that failed. After the last attempt it is retried only when needed, at the earliest after `ceiling_s`.
A server that ran for `ceiling_s` starts counting from zero."""

OnChange = Callable[[ServerState], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """What servers get from their workspace. `environ` is what `$NAME` refers to, `child_environ` what a child
    inherits, `programs` what starts it."""

    directory: Path
    environ: Mapping[str, str]
    child_environ: Mapping[str, str]
    programs: Programs
    logins: Logins | None
    on_change: OnChange
    backoff: Backoff


class Server:
    def __init__(self, name: str, settings: McpServer, workplace: ServerContext) -> None:
        self.state = ServerState(name=name, type=kind_of(settings), phase=Phase.CLOSED)
        self.catalog = Catalog()
        self._settings = settings
        self._workplace = workplace
        self._task: asyncio.Task[None] | None = None
        self._rested_at = float("-inf")
        self._connection: Connection | None = None
        self._target: Target | None = None
        self._closing = asyncio.Event()
        self._changed = asyncio.Event()
        self._tasks = Tasks()
        self._calls = Tasks()

    @property
    def name(self) -> str:
        return self.state.name

    def start(self, *, anyway: bool = False) -> None:
        """Connect in the background, unless it is being done, or failed a moment ago and not `anyway`."""
        if self._closing.is_set() or (self._task is not None and not self._task.done()):
            return
        if anyway or time.monotonic() - self._rested_at >= self._workplace.backoff.ceiling_s:
            self._become(Phase.CONNECTING)
            self._task = self._tasks.spawn(self._live(), name=f"mcp {self.name}")

    async def wait_settled(self) -> None:
        """Until it is ready or has failed once."""
        while self.state.phase is Phase.CONNECTING:
            await self._changed.wait()

    async def call(self, tool: str, arguments: dict[str, Any], on_progress: Callable[[str], None]) -> Answer:
        return await self._ask(lambda connection: connection.call(tool, arguments, on_progress))

    async def read(self, uri: str) -> str:
        return await self._ask(lambda connection: connection.read(uri))

    async def prompts(self) -> tuple[McpPrompt, ...]:
        """Its prompts, once it is connected. A person asks, so a server that rests after a failure is tried again."""
        self.start(anyway=True)
        await self._ready(FOR_PERSON)
        return self.catalog.prompts

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return await self._ask(lambda connection: connection.prompt(name, arguments), FOR_PERSON)

    async def wait_page(self) -> None:
        """Until it is ready, has failed once, or a person must log in first."""
        while self.state.phase is Phase.CONNECTING and self.state.authorization_url is None:
            await self._changed.wait()

    async def wait_logged_in(self) -> None:
        """Wait until no login is pending, and the server is ready or has failed."""
        while self.state.phase is Phase.CONNECTING or self.state.authorization_url is not None:
            await self._changed.wait()

    def arrive(self, address: str) -> bool:
        """Take the address that a browser was sent to; whether this server waited for it."""
        page, logins = self.state.authorization_url, self._workplace.logins
        if page is None or logins is None or query_of(page).get("state") != query_of(address).get("state"):
            return False
        return logins.arrive(address)

    async def aclose(self) -> None:
        """End it and whatever it started. Bounded."""
        self._closing.set()
        task = self._task
        if task is not None and not task.done():
            if self._connection is not None:
                self._connection.stop()
            await asyncio.wait({task}, timeout=_GRACE_S)
            if not task.done():
                if self._connection is not None:
                    self._connection.abort()
                await asyncio.wait({task}, timeout=_CLOSE_S)
            if not task.done():
                logger.error("mcp server %s does not exit", self.name)
        await self._calls.aclose()
        self.catalog = Catalog()
        self._become(Phase.CLOSED)

    async def _live(self) -> None:
        """The life of the server: in this task every connection is opened and closed."""
        try:
            await self._keep_connected()
        except Exception as error:
            logger.exception("mcp server %s: given up", self.name)
            self.catalog = Catalog()
            self._become(Phase.FAILED, f"internal error in Longboat ({type(error).__name__}); see the server log")

    async def _keep_connected(self) -> None:
        backoff = self._workplace.backoff
        failures = 0
        while True:
            began = time.monotonic()
            reason = await self._connect_once()
            self._rested_at = time.monotonic()
            if self._closing.is_set():
                return
            failures = 1 if self._rested_at - began >= backoff.ceiling_s else failures + 1
            if not reason.may_pass or backoff.gives_up(failures):
                self.catalog = Catalog()
                self._become(Phase.FAILED, reason.text)
                return
            # It keeps its tools meanwhile: a call waits until it is back.
            self._become(Phase.FAILED, reason.text)
            if await self._closes_within(backoff.delay(failures)):
                return
            self._become(Phase.CONNECTING)

    async def _closes_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._closing.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _connect_once(self) -> "Reason":
        """Connect and stay connected for as long as it lasts; why it lasted no longer."""
        # In a thread: the SDK takes most of a second to load, and no one's stream should stand still for it.
        await asyncio.to_thread(import_module, "longboat.tools.mcp.reasons")
        from longboat.tools.mcp.connection import Connection
        from longboat.tools.mcp.reasons import Reason, reason_of

        try:
            self._target = target = resolve(self.name, self._settings, self._workplace.environ)
        except ConfigInvalid as error:
            return Reason(text=error.message, may_pass=False)
        connection = Connection(target, self._settings_of_connection())
        if self._closing.is_set():
            return Reason(text="", may_pass=False)
        self._connection = connection
        try:
            await connection.run(self._take)
            return Reason(text="", may_pass=False)
        except Exception as error:
            reason = reason_of(error, target, connection.witness)
            logger.info("mcp server %s: %s", self.name, reason.text)
            return reason
        finally:
            self._connection = None

    def _settings_of_connection(self) -> "ConnectionSettings":
        from longboat.tools.mcp.connection import ConnectionSettings

        return ConnectionSettings(
            directory=self._workplace.directory,
            environ=self._workplace.child_environ,
            programs=self._workplace.programs,
            logins=self._workplace.logins,
            on_authorization=self._authorize,
        )

    async def _ask(self, request: Callable[["Connection"], Coroutine[Any, Any, T]], advice: str = FOR_MODEL) -> T:
        """Send a request to the server. If the caller is canceled, so is the request: the server is notified at once,
        without waiting for its reaction."""
        connection = await self._ready(advice)
        # Not logged: the caller may have left, and then no one needs to know that the call failed.
        call = self._calls.spawn(request(connection), name=f"mcp call to {self.name}", awaited=True)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            if call.cancelled() and not _is_canceled():
                raise ToolError(f"The MCP server {self.name} was closed during the call.") from None
            call.cancel()
            raise
        except Exception as error:
            raise ToolError(self._complaint(error)) from error

    async def _ready(self, advice: str) -> "Connection":
        self.start()
        try:
            async with asyncio.timeout(CALL_WAIT_S):
                while self._task is not None and not self._task.done():
                    if self._connection is not None and self._connection.is_open:
                        return self._connection
                    await self._changed.wait()
        except TimeoutError:
            pass
        if self.state.authorization_url is not None:
            raise ToolError(f"The MCP server {self.name} is waiting for someone to log in; {advice}.")
        match self.state.phase:
            case Phase.CONNECTING | Phase.READY:
                raise ToolError(f"The MCP server {self.name} is still connecting; {advice}.")
            case Phase.FAILED:
                raise ToolError(f"The MCP server {self.name} cannot be used: {self.state.reason}.")
            case Phase.CLOSED:
                raise ToolError(f"The MCP server {self.name} is closed.")

    def _complaint(self, error: Exception) -> str:
        from longboat.tools.mcp.connection import ServerGone
        from longboat.tools.mcp.reasons import complaint_of

        if isinstance(error, ServerGone):
            return (
                f"The MCP server {self.name} exited during the call, which may have been partly done. It is being "
                "reconnected. Check what was done before you repeat the call."
            )
        assert self._target is not None, "there was a connection"
        return f"The MCP server {self.name} failed: {complaint_of(error, self._target)}"

    def _take(self, catalog: Catalog) -> None:
        if self.state.phase is not Phase.READY or catalog != self.catalog:
            self.catalog = catalog
            self._become(Phase.READY)

    def _authorize(self, url: str | None) -> None:
        if url != self.state.authorization_url:
            self._tell(replace(self.state, authorization_url=url))

    def _become(self, phase: Phase, reason: str = "") -> None:
        state = ServerState(
            name=self.name,
            type=self.state.type,
            phase=phase,
            reason=reason,
            tools=len(self.catalog.tools),
            prompts=len(self.catalog.prompts),
            resources=len(self.catalog.resources),
        )
        if state != self.state:
            self._tell(state)

    def _tell(self, state: ServerState) -> None:
        self.state = state
        self._changed.set()
        self._changed = asyncio.Event()
        try:
            self._workplace.on_change(state)
        except Exception:
            logger.exception("mcp server %s: could not announce its state", self.name)


def _is_canceled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
