"""`question`: ask the attached people; the first answer counts (A1)."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from longboat.tools.context import ToolContext, parse
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.wire.tools import Draw, Effect, SubAgents, ToolTraits

MAX_DESCRIPTION = 1_000
"""Characters. Longer ones are cut: the schema says no more than it must, since every request has it."""
NOBODY = "No one is here to answer. Decide yourself, and say in your answer what you assumed."

_Choice = Annotated[str, Meta(min_length=1, max_length=300)]
_LABELS = ("label", "text", "title", "name", "value", "choice")
"""Other tools' words for a choice that is an object."""


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=4_000, description="The question.")]
    choices: Annotated[tuple[_Choice, ...], Meta(max_length=20, description="Answers.")] | None = None
    descriptions: Annotated[tuple[str, ...] | None, Meta(description="What each means.")] = None
    multiple: Annotated[bool, Meta(description="Several may be chosen.")] = False


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
        asked = parse("question", _with_texts(call.arguments), Input)
        choices = asked.choices or ()
        told = [text[:MAX_DESCRIPTION] for text in (asked.descriptions or ())[: len(choices)]]
        answer = await context.ask(asked.text, choices=choices, descriptions=told, multiple=asked.multiple)
        return ToolResult(content=NOBODY if answer is None else "\n".join(answer))


def _with_texts(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Choices as other tools have them, `{"label": …, "description": …}`, as texts with their descriptions. What is
    unclear stays as it is, and is refused."""
    choices = arguments.get("choices")
    if not isinstance(choices, list) or not any(isinstance(each, dict) for each in choices):
        return arguments
    descriptions = [each.get("description") or "" if isinstance(each, dict) else "" for each in choices]
    given = {} if arguments.get("descriptions") or not any(descriptions) else {"descriptions": descriptions}
    return {**arguments, "choices": [_label(each) for each in choices], **given}


def _label(choice: Any) -> Any:
    if not isinstance(choice, dict):
        return choice
    return next((choice[name] for name in _LABELS if isinstance(choice.get(name), str)), choice)
