"""A tool of an MCP server, with the interface of the agent's own tools."""

import hashlib
import json
import re
from collections.abc import Iterable

from longboat.core.tool import ToolSpec
from longboat.permissions.verdict import Need
from longboat.tools.context import ToolContext, ToolError
from longboat.tools.mcp.server import Server
from longboat.tools.mcp.state import OfferedTool
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.wire.tools import UNKNOWN, Effect, ToolTraits

_DETAIL_LIMIT = 20_000


class McpTool:
    def __init__(self, server: Server, offered: OfferedTool, name: str) -> None:
        # What the server says of itself lets a run that plans first call it, and lets calls run at the same time. It is
        # only a claim, so there each call needs the approval of a person or a rule: `--yolo` is not enough.
        traits = ToolTraits(effect=Effect.READS, side_by_side=True) if offered.only_reads else UNKNOWN
        self.spec = ToolSpec(name=name, description=offered.description, schema=offered.schema, traits=traits)
        self._server = server
        self._tool = offered.name

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        await context.permit(self._need(call))
        answer = await self._server.call(self._tool, call.arguments, context.output)
        if answer.is_error:
            raise ToolError(answer.text)
        return ToolResult(content=answer.text)

    def _need(self, call: ToolCall) -> Need:
        detail = json.dumps(call.arguments, ensure_ascii=False, indent=2)
        return Need(
            tool=self.spec.name,
            action="call",
            foreign=True,
            argument=json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":")),
            title=f"Call {self._tool} of the MCP server {self._server.name}",
            detail=detail
            if len(detail) <= _DETAIL_LIMIT
            else f"{detail[:_DETAIL_LIMIT]}\n… ({len(detail):,} characters)",
        )


LIMIT = 64
"""What the strictest provider takes."""
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


def tool_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """Each tool's full name. Tools whose own name fits as it is have the first claim to it, so that a tool with an odd
    name that appears later takes no other's."""
    given: dict[str, str] = {}
    taken: set[str] = set()
    for tool in sorted(tools, key=lambda tool: bool(_UNFIT.search(tool))):
        name = f"mcp__{server}__{_UNFIT.sub('_', tool)}"
        if name in taken or len(name) > LIMIT or not tool:
            digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            name = f"{name[: LIMIT - 9]}_{digest}"
        given[tool] = name
        taken.add(name)
    return given
