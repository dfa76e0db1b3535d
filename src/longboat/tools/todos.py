"""`todos`: the session's plan, shown by every client (A1)."""

from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.tools.context import ToolContext, parse
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.wire.tools import Draw, Effect, SubAgents, ToolTraits
from longboat.wire.workspace_state import TodoItem, TodoState

MAX_ITEMS = 100
MAX_TEXT = 500
"""Characters of one item."""


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
    state: TodoState = TodoState.PENDING


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    items: Annotated[tuple[Item, ...], Meta(max_length=MAX_ITEMS, description="The complete list, in order.")]


class TodosTool:
    spec = spec_of(
        "todos", Input, ToolTraits(effect=Effect.NOTHING, sub_agents=SubAgents.NONE, quick=True, draw=Draw.PLAN)
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        asked = parse("todos", call.arguments, Input)
        await context.put_todos([TodoItem(text=item.text, state=item.state) for item in asked.items])
        left = sum(item.state is not TodoState.COMPLETED for item in asked.items)
        return ToolResult(content=f"The plan has {len(asked.items)} items; {left} left.")
