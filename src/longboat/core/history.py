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
READS_AT_ONCE = 8
"""How many calls that only read are made at the same time."""
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


def group_calls(calls: Iterable[ToolCallPart]) -> list[list[ToolCallPart]]:
    """The calls of an answer in the order they are made; those of a group at the same time.

    Goes by the traits that the calls carry, so that it says the same after a restart. Whatever may change something is
    a barrier: what is read after it sees the change. So is a sub-agent, beside which only others of its kind work.
    """
    groups: list[list[ToolCallPart]] = []
    for call in calls:
        if groups and _joins(groups[-1], call):
            groups[-1].append(call)
        else:
            groups.append([call])
    return groups


def _joins(group: list[ToolCallPart], call: ToolCallPart) -> bool:
    first = group[0]
    if first.traits is None or call.traits is None or not (first.traits.side_by_side and call.traits.side_by_side):
        return False
    if first.traits.only_reads and call.traits.only_reads:
        return len(group) < READS_AT_ONCE
    return first.name == call.name


def not_begun(messages: Iterable[Message], waiting: Set[str]) -> frozenset[str]:
    """The calls that are waiting for an answer, and those that are made only after them; not a call that may have run
    beside one that waits."""
    found: set[str] = set()
    for message in messages:
        for group in group_calls(calls_of(message)):
            ids = {call.id for call in group}
            found |= ids if found else ids & waiting
    return frozenset(found)


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
    """The message with these results, each in the place of the tool that was broken off: what it had shown stays before
    its own, and who had allowed it and how long it took."""
    given = {result.tool_call_id: result for result in results}
    whole: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResultPart) and part.finished:
            whole.append(part)
        elif isinstance(part, ToolResultPart) and (result := given.pop(part.tool_call_id, None)) is not None:
            whole.append(_after(part, result))
    return msgspec.structs.replace(message, parts=(*whole, *given.values()), finished_at=at)


def _after(broken: ToolResultPart, result: ToolResultPart) -> ToolResultPart:
    shown = f"{_ends(broken.content)}\n" if broken.content else ""
    kept = {name: getattr(broken, name) for name in ("answers", "began_at", "waited_s", "ran_s")}
    return msgspec.structs.replace(result, content=shown + result.content, **kept)


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
