"""The calls of one answer, and the message of their results in the making.

Owns that message: a call that runs has an unfinished result, which grows with what its tool shows. Must not know tools.
"""

from dataclasses import dataclass, field

import msgspec

from longboat.core.stream import sayable
from longboat.runtime.outbox import Outbox
from longboat.wire.events import Change
from longboat.wire.models import Message, MessageDelta, ToolCallPart, ToolResultPart

AGENT = "agent"
"""The tool that sends sub-agents."""
MAX_SHOWN = 1_000_000
"""Characters of one call's live output. The tool's own file has all of it."""


@dataclass(slots=True)
class _Slot:
    """One call's result: what its tool has shown so far, then the result itself."""

    call_id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    result: ToolResultPart | None = None

    def part(self) -> ToolResultPart:
        shown = "".join(self.pieces)
        return self.result or ToolResultPart(tool_call_id=self.call_id, name=self.name, content=shown, finished=False)


class Round:
    def __init__(self, message: Message, outbox: Outbox, *, new: bool) -> None:
        self._base = message
        self._outbox = outbox
        self._slots = [
            _Slot(part.tool_call_id, part.name, result=part)
            for part in message.parts
            if isinstance(part, ToolResultPart) and part.finished
        ]
        outbox.whole(self.message(), Change.CREATED if new else Change.UPDATED)

    def message(self) -> Message:
        return msgspec.structs.replace(self._base, parts=tuple(slot.part() for slot in self._slots))

    def begin(self, *calls: ToolCallPart) -> list[int]:
        """These calls run now. Returns the place of each."""
        first = len(self._slots)
        self._slots += [_Slot(call.id, call.name) for call in calls]
        self._outbox.whole(self.message())
        return list(range(first, len(self._slots)))

    def show(self, place: int, text: str) -> None:
        """A tool that is done may still have something in the pipe: it is too late for that."""
        slot = self._slots[place]
        text = sayable(text)[: max(0, MAX_SHOWN - slot.length)]
        if slot.result is not None or not text:
            return
        delta = MessageDelta(
            message_id=self._base.id,
            session_id=self._base.session_id,
            run_id=self._base.run_id,
            part=place,
            offset=slot.length,
            text=text,
        )
        slot.pieces.append(text)
        slot.length += len(text)
        self._outbox.delta(delta)

    def put(self, place: int, result: ToolResultPart) -> None:
        self._slots[place].result = result
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
