"""`agent`: a sub-agent in a child session (A1)."""

from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.tools.context import ToolContext, parse
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.wire.tools import Draw, Effect, SubAgents, ToolTraits


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    prompt: Annotated[str, Meta(min_length=1, max_length=50_000, description="The complete task.")]
    agent: Annotated[str | None, Meta(description="The name of a configured sub-agent.")] = None


class AgentTool:
    spec = spec_of(
        "agent",
        Input,
        ToolTraits(
            effect=Effect.NOTHING,
            heading=("prompt", "agent"),
            sub_agents=SubAgents.NONE,
            side_by_side=True,
            draw=Draw.SUB_AGENT,
        ),
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        asked = parse("agent", call.arguments, Input)
        return ToolResult(content=await context.delegate(asked.prompt, agent=asked.agent))
