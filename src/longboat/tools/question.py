"""`question`: ask the attached people; the first answer counts (A1)."""

from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.tools.context import ToolContext, parse
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.wire.tools import Draw, Effect, SubAgents, ToolTraits

NOBODY = "No one is here to answer. Decide yourself, and say in your answer what you assumed."

_Choice = Annotated[str, Meta(min_length=1, max_length=300)]


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=4_000, description="The question.")]
    choices: Annotated[tuple[_Choice, ...], Meta(max_length=20, description="Answers to choose from.")] = ()
    multiple: Annotated[bool, Meta(description="Whether several choices may be selected.")] = False


class QuestionTool:
    spec = spec_of(
        "question",
        Input,
        ToolTraits(
            effect=Effect.NOTHING,
            heading=("text",),
            sub_agents=SubAgents.NONE,
            quick=True,
            draw=Draw.QUESTION,
        ),
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        asked = parse("question", call.arguments, Input)
        answer = await context.ask(asked.text, choices=asked.choices, multiple=asked.multiple)
        return ToolResult(content=NOBODY if answer is None else "\n".join(answer))
