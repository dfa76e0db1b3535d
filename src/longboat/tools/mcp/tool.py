"""A tool of an MCP server, with the interface of the agent's own tools."""

import json

from longboat.core.permissions import Need
from longboat.core.tool import ToolSpec
from longboat.tools.kit import Kit, ToolError
from longboat.tools.mcp.server import Server
from longboat.tools.mcp.state import OfferedTool
from longboat.tools.seam import ToolCall, ToolResult

_DETAIL_LIMIT = 20_000


class McpTool:
    def __init__(self, server: Server, offered: OfferedTool, name: str) -> None:
        self.spec = ToolSpec(name=name, description=offered.description, schema=offered.schema)
        self._server = server
        self._tool = offered.name

    async def run(self, call: ToolCall, kit: Kit) -> ToolResult:
        await kit.permit(self._need(call))
        answer = await self._server.call(self._tool, call.arguments, kit.output)
        if answer.is_error:
            raise ToolError(answer.text)
        return ToolResult(content=answer.text)

    def _need(self, call: ToolCall) -> Need:
        detail = json.dumps(call.arguments, ensure_ascii=False, indent=2)
        return Need(
            tool=self.spec.name,
            action="call",
            argument=json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":")),
            title=f"Call {self._tool} of the MCP server {self._server.name}",
            detail=detail
            if len(detail) <= _DETAIL_LIMIT
            else f"{detail[:_DETAIL_LIMIT]}\n… ({len(detail):,} characters)",
        )
