"""The calls of one answer, and the message with their results while it is being built.

Owns that message: a running call has an unfinished result, which grows with the tool's output. Must not know tools.
"""

import msgspec

from longboat.core.stream import sayable
from longboat.runtime.outbox import Outbox
from longboat.wire.asks import CallAnswer
from longboat.wire.events import Change
from longboat.wire.models import Message, MessageDelta, ToolCallPart, ToolResultPart

AGENT = "agent"
"""The tool that sends sub-agents."""
MAX_SHOWN = 1_000_000
"""Characters of one call's live output. The tool's own file has all of it."""


class Slot:
    """One call's result: the tool's output so far and people's answers, then the result itself."""

    def __init__(self, around: "Round", place: int, call_id: str, name: str) -> None:
        self._round = around
        self._place = place
        self._shown: list[str] = []
        self._length = 0
        self._answers: list[CallAnswer] = []
        self._open = ToolResultPart(tool_call_id=call_id, name=name, content="", finished=False)
        self._result: ToolResultPart | None = None

    def part(self) -> ToolResultPart:
        if self._result is not None:
            return self._result
        return msgspec.structs.replace(self._open, content="".join(self._shown), answers=tuple(self._answers))

    def show(self, text: str) -> None:
        """A tool that is done may still have something in the pipe: it is too late for that."""
        text = sayable(text)[: max(0, MAX_SHOWN - self._length)]
        if self._result is not None or not text:
            return
        at = self._length
        self._shown.append(text)
        self._length += len(text)
        self._round.grow(self._place, at, text)

    def note(self, answer: CallAnswer) -> None:
        """On record at once: who let a call run is known even if it never comes to a result."""
        if self._result is None:
            self._answers.append(answer)
            self._round.tell()

    def put(self, result: ToolResultPart) -> None:
        self._result = msgspec.structs.replace(result, answers=tuple(self._answers))
        self._round.tell()

    def keep(self, result: ToolResultPart) -> "Slot":
        """One from before a restart."""
        self._result = result
        return self


class Round:
    def __init__(self, message: Message, outbox: Outbox, *, new: bool) -> None:
        self._base = message
        self._outbox = outbox
        done = [part for part in message.parts if isinstance(part, ToolResultPart) and part.finished]
        self._slots = [Slot(self, at, part.tool_call_id, part.name).keep(part) for at, part in enumerate(done)]
        outbox.whole(self.message(), Change.CREATED if new else Change.UPDATED)

    def message(self) -> Message:
        return msgspec.structs.replace(self._base, parts=tuple(slot.part() for slot in self._slots))

    def begin(self, *calls: ToolCallPart) -> list[Slot]:
        """These calls run now. Returns where the news of each go."""
        first = len(self._slots)
        begun = [Slot(self, place, call.id, call.name) for place, call in enumerate(calls, first)]
        self._slots += begun
        self.tell()
        return begun

    def grow(self, place: int, offset: int, text: str) -> None:
        delta = MessageDelta(
            message_id=self._base.id,
            session_id=self._base.session_id,
            run_id=self._base.run_id,
            part=place,
            offset=offset,
            text=text,
        )
        self._outbox.delta(delta)

    def tell(self) -> None:
        self._outbox.whole(self.message())

    def finish(self, at: str) -> Message:
        self._base = msgspec.structs.replace(self._base, finished_at=at)
        message = self.message()
        self._outbox.whole(message)
        return message


def groups(calls: list[ToolCallPart]) -> list[list[ToolCallPart]]:
    """Calls in the order they are made; those of a group at once. Only sub-agents work side by side."""
    found: list[list[ToolCallPart]] = []
    for call in calls:
        if found and call.name == AGENT == found[-1][0].name:
            found[-1].append(call)
        else:
            found.append([call])
    return found
