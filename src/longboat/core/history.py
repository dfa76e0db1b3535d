"""The transcript: repairs an interrupted one (T3) and selects what the model sees.

Pure. After this, a transcript is valid for the next model request: every tool call has its result.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

import msgspec

from longboat.wire.models import (
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

KEPT = 15_000
"""How many characters to keep of the beginning and the end of an interrupted tool's output (A1)."""
NOT_RUN = "This call was not run: the server stopped before anyone approved it."
_WHOLE = (FinishReason.END_TURN, FinishReason.MAX_TOKENS, FinishReason.LIMIT)
"""With these, nothing broke off."""
SUMMARY_LEAD = "Summary of the earlier conversation:\n\n"


def text_of(message: Message) -> str:
    """What a person reads as the message's answer."""
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def calls_of(message: Message) -> list[ToolCallPart]:
    return [part for part in message.parts if isinstance(part, ToolCallPart)]


def close_message(message: Message, finish: FinishPart | None, *, at: str) -> Message:
    """The message complete: open calls are closed, and `finish` says why it ends if the turn ends with it."""
    parts = [_closed(part) for part in message.parts if not isinstance(part, FinishPart)]
    if finish is not None:
        parts.append(finish)
    return msgspec.structs.replace(message, parts=tuple(parts), finished_at=message.finished_at or at)


def _closed(part: Part) -> Part:
    if not isinstance(part, ToolCallPart):
        return part
    return msgspec.structs.replace(part, finished=True, input=part.input if is_object(part.input) else "{}")


def is_object(text: str) -> bool:
    """Whether the text is one whole JSON object, as every provider demands of a tool call's input."""
    try:
        msgspec.json.decode(text, type=dict)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return True


def not_begun(messages: Iterable[Message], waiting: Set[str]) -> frozenset[str]:
    """The calls that are waiting for an answer and those after them: calls that ask are made one after the other."""
    calls = [call.id for message in messages for call in calls_of(message)]
    first = min((calls.index(call_id) for call_id in waiting if call_id in calls), default=len(calls))
    return frozenset(calls[first:])


def missing_results(
    messages: Iterable[Message], content: str, *, not_run: Set[str] = frozenset()
) -> list[ToolResultPart]:
    """An error result for every call that has none. `not_run`: calls that certainly have done nothing."""
    open_calls: dict[str, str] = {}
    for message in messages:
        for part in message.parts:
            match part:
                case ToolCallPart():
                    open_calls[part.id] = part.name
                case ToolResultPart() if part.finished:
                    open_calls.pop(part.tool_call_id, None)
    return [
        ToolResultPart(
            tool_call_id=call_id, name=name, content=NOT_RUN if call_id in not_run else content, is_error=True
        )
        for call_id, name in open_calls.items()
    ]


@dataclass(frozen=True, slots=True)
class Closing:
    """How a turn's messages end: its last answer, and every message that is new (True) or changed (False)."""

    answer: Message
    changes: tuple[tuple[Message, bool], ...]


def close_turn(
    messages: Sequence[Message],
    finish: FinishPart,
    *,
    at: str,
    lost: str,
    blank: Callable[[Role], Message],
    not_run: Set[str] = frozenset(),
) -> Closing:
    """End a turn with `finish`, whatever it was doing (T2, T3).

    `messages` are the assistant and tool messages of the turn so far; `blank` makes a new one; `lost` is what the model
    is told of a call that got no result, unless it is one of `not_run`.
    """
    answers = [message for message in messages if message.role is Role.ASSISTANT]
    if not answers:
        answer = close_message(blank(Role.ASSISTANT), finish, at=at)
        return Closing(answer, ((answer, True),))
    answer = close_message(answers[-1], finish, at=at)
    changes = [(answer, False)]
    missing = missing_results(messages, lost, not_run=not_run)
    last = messages[-1]
    if last.role is Role.TOOL and (missing or last.finished_at is None):
        changes.append((with_results(last, missing, at), False))
    elif missing:
        changes.append((with_results(blank(Role.TOOL), missing, at), True))
    return Closing(answer, tuple(changes))


def with_results(message: Message, results: Sequence[ToolResultPart], at: str | None) -> Message:
    """The message with these results; what a tool that was broken off had shown stays before its own, and who had
    allowed it and how long it took."""
    results_so_far = [part for part in message.parts if isinstance(part, ToolResultPart)]
    broken = {part.tool_call_id: part for part in results_so_far if not part.finished}
    whole: list[Part] = [part for part in results_so_far if part.finished]
    for result in results:
        before = broken.get(result.tool_call_id, result)
        shown = f"{_ends(before.content)}\n" if before is not result and before.content else ""
        kept = {name: getattr(before, name) for name in ("answers", "began_at", "waited_s", "ran_s")}
        whole.append(msgspec.structs.replace(result, content=shown + result.content, **kept))
    return msgspec.structs.replace(message, parts=tuple(whole), finished_at=at)


def _ends(text: str) -> str:
    """What a model reads at once of a long output: its beginning and its end."""
    left_out = len(text) - 2 * KEPT
    return text if left_out <= 0 else f"{text[:KEPT]}\n[… {left_out:,} characters left out …]\n{text[-KEPT:]}"


def for_model(messages: Sequence[Message], summary_seq: int) -> tuple[Message, ...]:
    """What the model is shown: from the summary on, without what says nothing to it."""
    shown: list[Message] = []
    for message in messages:
        if message.seq == summary_seq:
            lead = TextPart(text=SUMMARY_LEAD + text_of(message))
            shown.append(msgspec.structs.replace(message, role=Role.USER, parts=(lead,)))
        elif message.seq > summary_seq:
            visible = _visible(message)
            if visible.parts:
                shown.append(visible)
    return tuple(shown)


def _visible(message: Message) -> Message:
    """Without bookkeeping, nor the thoughts of a broken-off message: providers refuse what they did not sign."""
    broken = any(isinstance(part, FinishPart) and part.reason not in _WHOLE for part in message.parts)
    parts = tuple(part for part in message.parts if not _hidden(part, broken))
    if not any(not isinstance(part, ReasoningPart) for part in parts):
        parts = ()
    return msgspec.structs.replace(message, parts=parts)


def _hidden(part: Part, broken: bool) -> bool:
    match part:
        case FinishPart():
            return True
        case ReasoningPart():
            return broken
        case TextPart():
            return not part.text
        case _:
            return False


def summary_mark(messages: Sequence[Message], mark: int) -> int:
    """Where the model's view of these messages begins, if that of more messages began at `mark`."""
    if mark == 0 or any(message.seq == mark for message in messages):
        return mark
    return max((message.seq for message in messages if message.summary and message.seq < mark), default=0)
