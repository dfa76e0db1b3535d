"""longboat_info: the agent's own configuration and state, without secrets (A1)."""

import msgspec

from longboat.tools.context import ToolContext, parse
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.wire.tools import Draw, Effect, ToolTraits


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No arguments."""


class LongboatInfoTool:
    spec = spec_of("longboat_info", Input, ToolTraits(effect=Effect.READS, quick=True, draw=Draw.QUIET))

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        parse("longboat_info", call.arguments, Input)
        return ToolResult(content=await context.facts())
