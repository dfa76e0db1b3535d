"""Fewer tools with shorter descriptions, for models with a small context window."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from longboat.core.tool import ToolSpec
from longboat.tools.context import ToolContext
from longboat.tools.protocol import Tool, ToolCall, ToolResult


@dataclass(frozen=True, slots=True)
class BriefTool:
    """A tool with a shorter description."""

    tool: Tool
    spec: ToolSpec

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        return await self.tool.run(call, context)


def tools_for_small_models(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Those that have a brief description."""
    return {
        name: BriefTool(tool, replace(tool.spec, description=tool.spec.brief))
        for name, tool in tools.items()
        if tool.spec.brief
    }
