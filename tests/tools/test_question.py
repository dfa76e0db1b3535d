"""`question`: the choices, what they mean, and the forms in which models write them."""

from pathlib import Path
from typing import Any

import pytest

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.arguments import adapt_arguments
from longboat.tools.context import ToolError
from longboat.tools.question import MAX_DESCRIPTION, QuestionTool

TOOL = QuestionTool()


async def asked(path: Path, **arguments: Any) -> tuple[list[str], dict[str, str]]:
    """The question and its choices with their descriptions, as people get them."""
    context = OpenToolContext(path, answers=("Up",))
    result = await context.use(TOOL, **adapt_arguments(arguments, TOOL.spec.schema))
    assert result.content == "Up"
    return context.questions, context.choices


@pytest.mark.parametrize(
    ("arguments", "choices"),
    [
        ({"text": "How?", "choices": ["Up", "Down"]}, {"Up": "", "Down": ""}),
        ({"question": "How?", "options": ["Up", "Down"]}, {"Up": "", "Down": ""}),
        ({"text": "How?", "choices": '["Up", "Down"]'}, {"Up": "", "Down": ""}),
        ({"text": "How?", "choices": ["Up", "Down"], "descriptions": ["more"]}, {"Up": "more", "Down": ""}),
        ({"text": "How?", "choices": ["Up"], "descriptions": ["more", "less"]}, {"Up": "more"}),
        ({"text": "How?", "choices": ["Up"], "descriptions": None}, {"Up": ""}),
        ({"text": "How?", "choices": ["Up"], "descriptions": ["m" * 9_000]}, {"Up": "m" * MAX_DESCRIPTION}),
        ({"text": "How?"}, {}),
        (
            {"question": "How?", "options": [{"label": "Up", "description": "more"}, {"label": "Down"}, "Even"]},
            {"Up": "more", "Down": "", "Even": ""},
        ),
        ({"text": "How?", "choices": [{"value": "Up"}, {"text": "Down"}]}, {"Up": "", "Down": ""}),
    ],
)
async def test_choices_and_what_they_mean_are_asked_in_whatever_form_they_come(
    tmp_path: Path, arguments: dict[str, Any], choices: dict[str, str]
) -> None:
    assert await asked(tmp_path, **arguments) == (["How?"], choices)


@pytest.mark.parametrize("choices", [[{"colour": "Up"}], [{"label": 1}], [{"label": "Up", "description": 5}], [["Up"]]])
async def test_choices_that_are_unclear_are_refused(tmp_path: Path, choices: list[Any]) -> None:
    with pytest.raises(ToolError):
        await asked(tmp_path, text="How?", choices=choices)
