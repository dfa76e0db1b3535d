"""`mcp_resource`: read a resource of an MCP server, or list what can be read."""

from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.permissions.verdict import Need
from longboat.tools.context import ToolContext, ToolError, parse
from longboat.tools.mcp.server import Server
from longboat.tools.mcp.state import McpResource
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of

NAME = "mcp_resource"
_SHOWN = 200


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    server: Annotated[str | None, Meta(description="The name of the MCP server.")] = None
    uri: Annotated[str | None, Meta(description="The resource's URI; omit it to list all resources.")] = None


class ResourceTool:
    """`servers` returns the servers that can currently be read from. The registry does not find this tool: `McpServers`
    offers it while a server has resources."""

    spec = spec_of(NAME, Input)

    def __init__(self, servers: Callable[[], dict[str, Server]]) -> None:
        self._servers = servers

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        asked = parse(NAME, call.arguments, Input)
        servers = self._servers()
        if asked.server is not None and asked.server not in servers:
            raise ToolError(f"No MCP server {asked.server!r} has resources. Servers with resources: {_names(servers)}.")
        if asked.uri is None:
            return ToolResult(
                content=_format_resources(server for server in servers.values() if asked.server in (None, server.name))
            )
        server = _owner(servers, asked)
        title = f"Read {asked.uri} from the MCP server {server.name}"
        await context.permit(Need(tool=NAME, action="read", argument=f"{server.name} {asked.uri}", title=title))
        return ToolResult(content=await server.read(asked.uri))


def _owner(servers: dict[str, Server], asked: Input) -> Server:
    if asked.server is not None:
        return servers[asked.server]
    owners = [server for server in servers.values() if any(item.uri == asked.uri for item in server.catalog.resources)]
    if len(owners) != 1 and len(servers) != 1:
        raise ToolError(f"Pass the server that has {asked.uri}: one of {_names(servers)}.")
    return owners[0] if owners else next(iter(servers.values()))


def _names(servers: Iterable[str]) -> str:
    return ", ".join(sorted(servers)) or "none"


def _format_resources(servers: Iterable[Server]) -> str:
    lines = [_line(item) for server in servers for item in server.catalog.resources]
    shown = lines[:_SHOWN]
    if len(lines) > _SHOWN:
        shown.append(f"… and {len(lines) - _SHOWN} more; pass a server to see only its resources")
    return "\n".join(shown) or "There are no resources."


def _line(item: McpResource) -> str:
    kind = f" ({item.mime_type})" if item.mime_type else ""
    about = f": {item.description}" if item.description else ""
    return f"[{item.server}] {item.uri} {item.name}{kind}{about}"
