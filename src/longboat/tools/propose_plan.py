"""`propose_plan`: ask people to approve a plan, which then becomes the todos. Only runs that plan first have it."""

from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.tools.context import ToolContext, parse
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.wire.tools import Draw, Effect, SubAgents, ToolTraits
from longboat.wire.workspace_state import TodoItem, TodoState

APPROVED = (
    "The plan is approved: its steps are the todos now, and from your next step on you have all your tools. Carry it "
    "out, and keep the todos up to date."
)
NOT_YET = "The plan is not approved yet, and nothing may be changed. Ask what is missing, or end with the plan."
WISH = "The plan is not approved yet, and nothing may be changed. Change it and propose it again. They say:\n"
NOBODY = (
    "No one is here to approve the plan, so nothing may be changed. End now: your answer is the plan, complete, for "
    "people to read later."
)

_Step = Annotated[str, Meta(min_length=1, max_length=500)]


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    summary: Annotated[str, Meta(min_length=1, max_length=4_000, description="What you found and want to do.")]
    items: Annotated[tuple[_Step, ...], Meta(min_length=1, max_length=50, description="The steps, in order.")]


class ProposePlanTool:
    spec = spec_of(
        "propose_plan",
        Input,
        ToolTraits(
            effect=Effect.NOTHING,
            heading=("summary",),
            sub_agents=SubAgents.NONE,
            quick=True,
            proposes=True,
            draw=Draw.PLAN,
        ),
        brief="Propose your plan to the user and wait for approval, before you change anything.",
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        plan = parse("propose_plan", call.arguments, Input)
        steps = "\n".join(f"{number}. {item}" for number, item in enumerate(plan.items, 1))
        text = f"Go ahead with this plan?\n\n{plan.summary.strip()}\n\n{steps}"
        items = [TodoItem(text=item, state=TodoState.PENDING) for item in plan.items]
        answer = await context.propose(text, items)
        if answer is None:
            return ToolResult(content=NOBODY)
        if answer.approved:
            return ToolResult(content=APPROVED)
        return ToolResult(content=f"{WISH}{answer.wish}" if answer.wish else NOT_YET)
