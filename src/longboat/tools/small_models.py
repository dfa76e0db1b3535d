"""Fewer tools with shorter descriptions, for models with a small context window."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from longboat.core.tool import ToolSpec
from longboat.tools.context import ToolContext
from longboat.tools.protocol import Tool, ToolCall, ToolResult

WORDS = {
    "view": "Read a file.",
    "ls": "List the files here.",
    "grep": "Search the files for a pattern.",
    "edit": "Replace text in a file that was read before.",
    "write": "Write a file.",
    "bash": "Run a shell command.",
}


@dataclass(frozen=True, slots=True)
class BriefTool:
    """A tool with a shorter description."""

    tool: Tool
    spec: ToolSpec

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        return await self.tool.run(call, context)


def tools_for_small_models(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    return {
        name: BriefTool(tools[name], replace(tools[name].spec, description=words))
        for name, words in WORDS.items()
        if name in tools
    }
