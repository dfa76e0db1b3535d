"""The MCP servers of one workspace, connected when first needed. Never shared with other workspaces (B7).

servers = McpServers(config.mcp, directory=…, environ=…, child_environ=…, programs=jobs.programs, logins=logins)
await servers.wait_connected()      # at the start of a turn; bounded, whatever the servers do
tools = servers.tools()
await servers.aclose()
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from longboat.backoff import Backoff
from longboat.errors import BadInput, ConfigInvalid, McpServerNotFound, NoLoginPending
from longboat.tasks import Tasks
from longboat.tools.context import ToolError
from longboat.tools.mcp.logins import Logins, query_of
from longboat.tools.mcp.resource import ResourceTool
from longboat.tools.mcp.server import RECONNECT, OnChange, Server, ServerContext
from longboat.tools.mcp.settings import read
from longboat.tools.mcp.state import McpPrompt, McpResource, Phase, ServerState
from longboat.tools.mcp.tool import McpTool, tool_names
from longboat.tools.process.programs import Programs

WAIT_S = 5.0
"""How long the first turn waits for servers that are slow to start: their tools come with a later one."""
LOGIN_WAIT_S = 20.0
"""How long a person who logs in waits to hear how the server is doing."""


class McpServers:
    """`section` is the `mcp` section of `longboat.json`; an invalid entry becomes a failed server and affects no other.

    `environ` is what `$NAME` in it refers to; `child_environ` is what a started server inherits; `programs` starts
    it. Without `logins` no one is asked to log in.
    """

    def __init__(
        self,
        section: Mapping[str, Any],
        *,
        directory: Path,
        environ: Mapping[str, str],
        child_environ: Mapping[str, str],
        programs: Programs,
        logins: Logins | None = None,
        on_change: OnChange = lambda _: None,
        wait_s: float = WAIT_S,
        backoff: Backoff = RECONNECT,
    ) -> None:
        workplace = ServerContext(
            directory=directory,
            environ=environ,
            child_environ=child_environ,
            programs=programs,
            logins=logins,
            on_change=on_change,
            backoff=backoff,
        )
        self._wait_s = wait_s
        self._servers: dict[str, Server] = {}
        self._others: dict[str, ServerState] = {}
        """Servers that are switched off, or cannot be understood."""
        self._deadline: float | None = None
        self._closing = Tasks()
        for name, value in section.items():
            self._add(name, value, workplace)

    async def wait_connected(self) -> None:
        """Connect what is not connected yet, and wait for it, but no longer than `wait_s` since the first time: a
        server that is slow or broken costs the first turn that long, and no other turn anything."""
        loop = asyncio.get_running_loop()
        if self._deadline is None:
            self._deadline = loop.time() + self._wait_s
        for server in self._servers.values():
            server.start()
        try:
            async with asyncio.timeout_at(self._deadline):
                for server in self._servers.values():
                    await server.wait_settled()
        except TimeoutError:
            pass

    def tools(self) -> list[McpTool | ResourceTool]:
        """The tools of the servers that are connected, or were a moment ago and are being connected again."""
        found: list[McpTool | ResourceTool] = []
        for server in self._servers.values():
            names = tool_names(server.name, [tool.name for tool in server.catalog.tools])
            found += [McpTool(server, tool, names[tool.name]) for tool in server.catalog.tools]
        if self._readable_servers():
            found.append(ResourceTool(self._readable_servers))
        return found

    def prompts(self) -> list[McpPrompt]:
        return [prompt for server in self._servers.values() for prompt in server.catalog.prompts]

    def resources(self) -> list[McpResource]:
        return [resource for server in self._servers.values() for resource in server.catalog.resources]

    def instructions(self) -> dict[str, str]:
        """What the servers want a model to know, by server."""
        found = {server.name: server.catalog.instructions for server in self._servers.values()}
        return {name: text for name, text in found.items() if text}

    def states(self) -> list[ServerState]:
        return [*(server.state for server in self._servers.values()), *self._others.values()]

    async def list_prompts(self, server: str) -> tuple[McpPrompt, ...]:
        """The prompts of a server that may first have to be connected; ToolError says why they cannot be had."""
        return await self._server(server).prompts()

    async def prompt(self, server: str, name: str, arguments: dict[str, str]) -> str:
        """The text of a prompt, to be submitted; ToolError says why there is none."""
        return await self._server(server).prompt(name, arguments)

    async def begin_login(self, name: str) -> ServerState:
        """Connect a server now, because a person wants it: its state once it is ready, has failed, or has the page that
        the person must open."""
        server = self._find_server(name)
        if server is None:
            return self._others[name]
        server.start(anyway=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(LOGIN_WAIT_S):
                await server.wait_page()
        return server.state

    async def end_login(self, name: str, address: str) -> ServerState:
        """Take the address that the login page led to; the server's state once it is ready or has failed."""
        server = self._find_server(name)
        _check_redirect(address)
        if server is None or not server.arrive(address):
            raise NoLoginPending(name)
        with suppress(TimeoutError):
            async with asyncio.timeout(LOGIN_WAIT_S):
                await server.wait_logged_in()
        return server.state

    async def wait_logged_in(self, name: str) -> None:
        """Wait until no login there is pending."""
        if (server := self._find_server(name)) is not None:
            await server.wait_logged_in()

    async def aclose(self) -> None:
        """Close them all, and end every process they started. Limited in time; continues if the caller is canceled."""
        closing = [self._closing.spawn(each.aclose(), name=f"close {name}") for name, each in self._servers.items()]
        if closing:
            await asyncio.wait(closing)

    def _add(self, name: str, value: Any, workplace: ServerContext) -> None:
        try:
            settings = read(name, value)
        except ConfigInvalid as error:
            self._others[name] = ServerState(name=name, type="", phase=Phase.FAILED, reason=error.message)
            return
        server = Server(name, settings, workplace)
        if settings.enabled:
            self._servers[name] = server
        else:
            self._others[name] = server.state

    def _find_server(self, name: str) -> Server | None:
        """The server of that name; None if it is switched off or cannot be understood."""
        if name not in self._servers and name not in self._others:
            raise McpServerNotFound(name)
        return self._servers.get(name)

    def _readable_servers(self) -> dict[str, Server]:
        return {name: server for name, server in self._servers.items() if server.catalog.resources}

    def _server(self, name: str) -> Server:
        if name in self._others:
            reason = self._others[name].reason or "it is disabled"
            raise ToolError(f"The MCP server {name} cannot be used: {reason}.")
        if name not in self._servers:
            raise ToolError(f"There is no MCP server {name!r}. Configured: {', '.join(self._servers) or 'none'}.")
        return self._servers[name]


def _check_redirect(address: str) -> None:
    """What is wrong is said without the address: it holds a secret."""
    try:
        query = query_of(address)
    except ValueError:
        query = {}
    if not address.startswith(("http://", "https://")) or "state" not in query or not {"code", "error"} & query.keys():
        raise BadInput(
            "redirect_url is not a login redirect. Pass the complete address that the browser ended at, "
            "including its code and state.",
            code="bad_redirect_url",
        )
