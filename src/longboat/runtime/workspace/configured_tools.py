"""The tools of a workspace as its configuration wants them, with its MCP servers and language servers.

Owns MCP and language servers from their first use until the configuration changes or the workspace closes (B7). Must
not know sessions or permissions.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from longboat.config.references import expand
from longboat.config.settings import Config
from longboat.tools.protocol import Tool
from longboat.tools.registry import build_tools
from longboat.tools.sandbox.sandbox import SandboxPolicy
from longboat.tools.services import ToolServices
from longboat.wire.workspace_state import LspEvent, McpEvent

if TYPE_CHECKING:
    from longboat.tools.lsp.client.slot import ServerStatus
    from longboat.tools.mcp import ServerState
    from longboat.tools.mcp.logins import Logins
    from longboat.tools.process.jobs import Jobs
    from longboat.tools.web.web_search import SearchProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSetup:
    """What the tools are built from, besides the configuration. It does not change while a workspace is open."""

    directory: Path
    sandbox: Callable[[Config], SandboxPolicy]
    environ: Mapping[str, str]
    """What `$NAME` in the configuration stands for."""
    child_environ: Mapping[str, str]
    jobs: "Jobs"
    logins: "Logins"
    tell: Callable[[msgspec.Struct], None]


class ConfiguredTools:
    """Imports and builds: create it off the event loop."""

    def __init__(self, config: Config, setup: ToolSetup) -> None:
        from longboat.tools.lsp.client.servers import LanguageServers
        from longboat.tools.mcp import McpServers
        from longboat.tools.web.http import Web

        self.mcp: McpServers = McpServers(
            config.mcp,
            directory=setup.directory,
            environ=setup.environ,
            child_environ=setup.child_environ,
            programs=setup.jobs.programs,
            logins=setup.logins,
            on_change=lambda state: setup.tell(mcp_event(state)),
        )
        self.lsp: LanguageServers = LanguageServers(
            setup.directory,
            config.lsp,
            environ=setup.child_environ,
            programs=setup.jobs.programs,
            on_change=lambda status: setup.tell(lsp_event(status)),
        )
        services = ToolServices(
            jobs=setup.jobs,
            sandbox=setup.sandbox(config),
            language_servers=self.lsp,
            web=Web(allowed_networks=config.web.allowed_networks),
            search=_search(config, setup.environ),
        )
        self.own: list[Tool] = build_tools(services)

    @staticmethod
    def key(config: Config) -> bytes:
        """Changes when the tools have to be built again."""
        return msgspec.json.encode((config.mcp, config.lsp, config.web, config.sandbox))

    async def tools(self, *, have_servers: bool | None = None) -> list[Tool]:
        """The built-in tools, and those of the MCP servers that are connected by now. Tools that ask language servers
        are offered if one of these has files here. `have_servers`: whether that is so, if it is known."""
        from longboat.tools.lsp.client.tool import LanguageServerTool

        await self.mcp.wait_connected()
        if have_servers is None:
            have_servers = await asyncio.to_thread(self.lsp.find_files)
        own = [tool for tool in self.own if have_servers or not isinstance(tool, LanguageServerTool)]
        return [*own, *self.mcp.tools()]

    async def aclose(self) -> None:
        await asyncio.gather(self.mcp.aclose(), self.lsp.aclose())


def _search(config: Config, environ: Mapping[str, str]) -> "SearchProvider | None":
    from longboat.tools.web.web_search import SearchProvider

    section = config.web.search
    if section is None:
        return None
    return SearchProvider(kind=section.kind, endpoint=section.endpoint, key=expand(section.key, environ))


def mcp_event(state: "ServerState") -> McpEvent:
    known: dict[str, Any] = {
        "phase": state.phase.value,
        "authorization_url": state.authorization_url,
        "tools": state.tools,
        "prompts": state.prompts,
        "resources": state.resources,
    }
    return McpEvent(server=state.name, transport=state.type, reason=state.reason, **known)


def lsp_event(status: "ServerStatus") -> LspEvent:
    return LspEvent(server=status.name, root=str(status.root), state=status.state.value, detail=status.detail)
