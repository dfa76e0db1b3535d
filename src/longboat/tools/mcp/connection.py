"""One connection to one server, from start to end, through the SDK.

Everything the SDK opens is entered and left in the task that calls `run`; requests may come from any task. Must not
know retries, permissions or models. Imported when the first server is connected, because the SDK is heavy.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import mcp_types as types
from mcp.client import Client, ClientRequestContext, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from longboat import __version__
from longboat.backoff import Backoff
from longboat.tools.mcp import rendering
from longboat.tools.mcp.listing import list_all
from longboat.tools.mcp.logins import Logins
from longboat.tools.mcp.oauth import Login
from longboat.tools.mcp.settings import Target
from longboat.tools.mcp.state import Answer, Catalog
from longboat.tools.mcp.stdio import open_stdio
from longboat.tools.mcp.transport import TransportState, open_http, open_sse
from longboat.tools.process.programs import Programs

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

logger = logging.getLogger(__name__)

# The SDK logs tracebacks that hold addresses with the keys in them; what went wrong is in the state of the server.
for name in ("mcp", "client"):
    logging.getLogger(name).setLevel(logging.CRITICAL)

_LISTEN_AGAIN = Backoff(base_s=1.0, ceiling_s=60.0)
_LIST_CHANGES = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)
_LOST = ("Connection closed", "Session terminated", "Session not found")
"""How the SDK says that nothing will be answered here any more; the latter when a restarted server does not know our
session. Told by the words: servers use the same codes for errors of their own."""

T = TypeVar("T")
OnProgress = Callable[[str], None]


class ServerGone(Exception):
    """The other side ended the connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """What a connection gets from its workspace. `programs` starts a child."""

    directory: Path
    environ: Mapping[str, str]
    programs: Programs
    logins: Logins | None
    on_authorization: Callable[[str | None], None]


class Connection:
    def __init__(self, target: Target, settings: ConnectionSettings) -> None:
        self._target = target
        self._settings = settings
        self.witness = TransportState()
        self._client: Client | None = None
        self._scope = anyio.CancelScope()
        self._stopping = anyio.Event()
        self._stale = anyio.Event()

    async def run(self, on_catalog: Callable[[Catalog], None]) -> None:
        """Connect, tell what the server offers, now and whenever it changes, and return when `stop` was called. Raises
        what went wrong, `ServerGone` and `TimeoutError` among it."""
        self._allow(self._target.timeout_s)
        with self._scope:
            async with self._connected() as client:
                catalog = await list_all(client, self._target.name)
                self._scope.deadline = float("inf")
                self._client = client
                try:
                    on_catalog(catalog)
                    await self._serve(client, on_catalog)
                finally:
                    self._client = None
        if self._stopping.is_set():
            return
        if self._scope.cancelled_caught:
            raise TimeoutError(f"no answer within {self._target.timeout_s:g} s")
        raise ServerGone

    @property
    def is_open(self) -> bool:
        return self._client is not None and not self.witness.gone.is_set()

    def stop(self) -> None:
        """Take leave in order if it is connected, else give up."""
        self._stopping.set()
        if self._client is None:
            self.abort()

    def abort(self) -> None:
        self._stopping.set()
        self._scope.cancel()

    async def call(self, tool: str, arguments: dict[str, Any], on_progress: OnProgress) -> Answer:
        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            on_progress(f"{message or _fraction(progress, total)}\n")

        async def ask(client: Client) -> types.CallToolResult:
            return await client.call_tool(tool, arguments, progress_callback=progressed)

        return rendering.call_answer(await self._ask(ask))

    async def read(self, uri: str) -> str:
        return rendering.resource_text(await self._ask(lambda client: client.read_resource(uri)))

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return rendering.prompt_text(await self._ask(lambda client: client.get_prompt(name, arguments)))

    async def _ask(self, request: Callable[[Client], Awaitable[T]]) -> T:
        if self._client is None:
            raise ServerGone
        try:
            return await request(self._client)
        except MCPError as error:
            if error.message not in _LOST:
                raise
            # A transport may be dead in one direction only, and tell no one.
            self.witness.gone.set()
            raise ServerGone from None

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        transport = self._transport()
        client = Client(
            transport,
            read_timeout_seconds=self._target.timeout_s,
            client_info=types.Implementation(name="longboat", version=__version__),
            message_handler=self._hear,
            list_roots_callback=self._roots,
            cache=None,
        )
        async with client:
            yield client

    def _transport(self) -> AbstractAsyncContextManager["TransportStreams"]:
        target, around = self._target, self._settings
        if target.kind == "stdio":
            return open_stdio(
                target,
                directory=around.directory,
                environ=around.environ,
                programs=around.programs,
                witness=self.witness,
            )
        has_key = any(name.lower() == "authorization" for name in target.headers)
        auth = None if has_key or around.logins is None else Login(target.url, around.logins, self._authorize)
        open_web = open_http if target.kind == "http" else open_sse
        return open_web(target, auth=auth, witness=self.witness)

    async def _serve(self, client: Client, on_catalog: Callable[[Catalog], None]) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._list_again, client, on_catalog)
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                group.start_soon(self._listen, client)
            group.start_soon(self._wait_gone, group.cancel_scope)
            await self._stopping.wait()
            group.cancel_scope.cancel()

    async def _wait_gone(self, scope: anyio.CancelScope) -> None:
        await self.witness.gone.wait()
        scope.cancel()

    async def _list_again(self, client: Client, on_catalog: Callable[[Catalog], None]) -> None:
        while True:
            await self._stale.wait()
            self._stale = anyio.Event()
            try:
                on_catalog(await list_all(client, self._target.name))
            except (MCPError, ValidationError) as error:
                logger.warning("mcp server %s: its changed lists cannot be read: %s", self._target.name, error)

    async def _listen(self, client: Client) -> None:
        """Hear of changed lists. Servers before 2026-07-28 tell unasked; since then a client must subscribe."""
        failures = 0
        while True:
            try:
                async with client.listen(
                    tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
                ) as changes:
                    failures = 0
                    # Something may have changed before we were heard.
                    self._stale.set()
                    async for _ in changes:
                        self._stale.set()
            except MCPError as error:
                if error.code == types.METHOD_NOT_FOUND:
                    return
            except (SubscriptionLost, TimeoutError):
                pass
            failures += 1
            await anyio.sleep(_LISTEN_AGAIN.delay(failures))

    async def _hear(self, message: IncomingMessage) -> None:
        if isinstance(message, _LIST_CHANGES):
            self._stale.set()

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        uri = self._settings.directory.as_uri()
        return types.ListRootsResult.model_validate({"roots": [{"uri": uri, "name": self._settings.directory.name}]})

    def _allow(self, seconds: float) -> None:
        self._scope.deadline = anyio.current_time() + seconds

    def _authorize(self, url: str | None) -> None:
        """A person is asked to log in: the clock that is on the server stands still."""
        if self._client is None:
            if url is None:
                self._allow(self._target.timeout_s)
            else:
                self._scope.deadline = float("inf")
        self._settings.on_authorization(url)


def _fraction(progress: float, total: float | None) -> str:
    return f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
