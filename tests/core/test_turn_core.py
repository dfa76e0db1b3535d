"""What a turn decides without I/O: prompts, circles, and when the window is nearly full."""

import pytest

from longboat.core.turn import LOOP_REPEATS, LOOP_WINDOW, LoopGuard, estimate_tokens, has_words, nearly_full
from longboat.wire.models import (
    Attachment,
    FilePart,
    FinishPart,
    FinishReason,
    Message,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from longboat.wire.tools import ToolTraits


def attachment(**content: str) -> Attachment:
    return Attachment(name="a", media_type="text/plain", **content)


@pytest.mark.parametrize(
    ("prompt", "attachments", "enough"),
    [
        ("x", (), True),
        ("", (), False),
        (" \n\t\u2003", (), False),
        ("", (attachment(text="x"),), True),
        ("", (attachment(text=" "),), False),
        ("", (attachment(data="aGk="),), False),
        ("", (attachment(data="aGk="), attachment(text="x")), True),
        ("x", (attachment(data="aGk="),), True),
    ],
)
def test_a_prompt_needs_text_or_a_text_attachment(
    prompt: str, attachments: tuple[Attachment, ...], enough: bool
) -> None:
    """T1."""
    assert has_words(prompt, attachments) is enough


def step(guard: LoopGuard, name: str = "look", given: str = "{}", result: str = "same") -> bool:
    call = ToolCallPart(id="any", name=name, input=given, finished=True)
    return guard.is_loop(call, ToolResultPart(tool_call_id="any", content=result))


def test_the_same_call_with_the_same_result_is_a_circle() -> None:
    """T9: at the fifth time, whatever the call's id."""
    guard = LoopGuard()
    assert [step(guard) for _ in range(LOOP_REPEATS)] == [False] * (LOOP_REPEATS - 1) + [True]


@pytest.mark.parametrize("differing", ["name", "given", "result"])
def test_a_call_that_differs_in_anything_is_no_circle(differing: str) -> None:
    """T9."""
    guard = LoopGuard()
    assert not any(step(guard, **{differing: str(number)}) for number in range(50))


def test_a_circle_of_several_calls_is_noticed_and_old_calls_are_forgotten() -> None:
    """T9: only the newest calls count."""
    guard = LoopGuard()
    two = [step(guard, given=str(number % 2)) for number in range(LOOP_WINDOW)]
    assert two == [False] * 8 + [True, True]
    guard = LoopGuard()
    many = [step(guard, given=str(number % 3)) for number in range(60)]
    assert not any(many)


def test_waiting_again_for_something_outside_is_no_circle() -> None:
    """T9: unless the waiting itself fails."""
    guard, traits = LoopGuard(), ToolTraits(waits=True)
    wait = ToolCallPart(id="any", name="look", input="{}", finished=True, traits=traits)
    quiet, bad = (ToolResultPart(tool_call_id="any", content="same", is_error=error) for error in (False, True))
    assert not any(guard.is_loop(wait, quiet) for _ in range(50))
    assert any(guard.is_loop(wait, bad) for _ in range(LOOP_REPEATS))


@pytest.mark.parametrize(
    ("used", "window", "full"),
    [
        (0, 1_000, False),
        (799, 1_000, False),
        (800, 1_000, True),
        (5_000, 1_000, True),
        (159_999, 200_000, False),
        (160_000, 200_000, True),
        (979_999, 1_000_000, False),
        (980_000, 1_000_000, True),
    ],
)
def test_the_window_is_nearly_full_when_a_fifth_is_left_or_20k_of_a_large_one(
    used: int, window: int, full: bool
) -> None:
    """T8."""
    assert nearly_full(used, window) is full


def tokens(*parts: Part) -> int:
    message = Message(id="m", session_id="s", run_id="r", seq=1, role=Role.USER, parts=parts, created_at="")
    return estimate_tokens([message])


def test_tokens_are_estimated_for_every_kind_of_part() -> None:
    """T8: four characters a token and eight for the message; a picture costs what pictures cost."""
    assert estimate_tokens([]) == 0
    assert tokens() == 8
    assert tokens(TextPart(text="x" * 40)) == 18
    assert tokens(ReasoningPart(text="x" * 40)) == 18
    assert tokens(ToolCallPart(id="c", name="look", input="x" * 36)) == 18
    assert tokens(ToolResultPart(tool_call_id="c", content="x" * 40)) == 18
    assert tokens(FilePart(name="a", media_type="text/plain", text="x" * 40)) == 18
    assert tokens(FilePart(name="a", media_type="image/png", data="aGk=")) == 1508
    assert tokens(FinishPart(reason=FinishReason.ERROR, title="x" * 40, detail="x" * 40)) == 8
