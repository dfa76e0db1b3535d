"""Tools as a particular model is shown them: fewer and in fewer words, or without a field that has no use here."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

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
    """Those that have a brief description, for a model with a small context window; with the fields that it needs."""
    return {name: DescribedTool(tool, _in_brief(tool.spec)) for name, tool in tools.items() if tool.spec.brief}


def _in_brief(spec: ToolSpec) -> ToolSpec:
    kept = {*spec.schema.get("required", ()), *spec.brief_fields}
    return replace(spec, description=spec.brief, schema=_with_fields(spec.schema, kept))


def _with_fields(schema: Mapping[str, Any], kept: Set[str]) -> dict[str, Any]:
    properties = {name: field for name, field in schema.get("properties", {}).items() if name in kept}
    return {**schema, "properties": properties} if properties else dict(schema)


def tools_to_plan_with(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """For a run that plans first: those that change nothing."""
    return {name: tool for name, tool in tools.items() if tool.spec.traits.only_looks}


def tools_to_propose_with(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Those that ask people to approve a plan: a run that does not plan first has none of them."""
    return {name: tool for name, tool in tools.items() if tool.spec.traits.proposes}


def without_agent_names(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """For a project that defines no sub-agents: the tool that starts one has no name to choose."""
    return {
        name: _without_field(tool, "agent") if tool.spec.traits.draw is Draw.SUB_AGENT else tool
        for name, tool in tools.items()
    }


def _without_field(tool: Tool, field: str) -> Tool:
    kept = tool.spec.schema.get("properties", {}).keys() - {field}
    return DescribedTool(tool, replace(tool.spec, schema=_with_fields(tool.spec.schema, kept)))
