"""Tools as a particular model is shown them: fewer and in fewer words, or without a field that has no use here."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from longboat.core.tool import ToolSpec
from longboat.tools.context import ToolContext
from longboat.tools.protocol import Tool, ToolCall, ToolResult
from longboat.wire.tools import Draw


@dataclass(frozen=True, slots=True)
class DescribedTool:
    """A tool with another description."""

    tool: Tool
    spec: ToolSpec

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        return await self.tool.run(call, context)


def tools_for_small_models(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Those that have a brief description, for a model with a small context window."""
    return {
        name: DescribedTool(tool, replace(tool.spec, description=tool.spec.brief))
        for name, tool in tools.items()
        if tool.spec.brief
    }


def without_agent_names(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """For a project that defines no sub-agents: the tool that starts one has no name to choose."""
    return {
        name: _without_field(tool, "agent") if tool.spec.traits.draw is Draw.SUB_AGENT else tool
        for name, tool in tools.items()
    }


def _without_field(tool: Tool, field: str) -> Tool:
    schema = tool.spec.schema
    properties = {name: value for name, value in schema.get("properties", {}).items() if name != field}
    return DescribedTool(tool, replace(tool.spec, schema={**schema, "properties": properties}))
