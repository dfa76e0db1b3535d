"""A run's output besides its answer: new messages, and notices for the people who watch.

Must not know when to send them.
"""

from collections.abc import Callable

from longboat.core.stream import encodable
from longboat.runtime.clock import now
from longboat.runtime.turn.outbox import Outbox
from longboat.wire.ids import new_id
from longboat.wire.models import AgentEvent, AgentEventType, Message, Role, Run


def blank_message(run: Run, role: Role, seq: int) -> Message:
    """A message of the run without anything in it."""
    return Message(
        id=new_id(), session_id=run.session_id, run_id=run.run_id, seq=seq, role=role, parts=(), created_at=now()
    )


class Notices:
    def __init__(self, run: Run, outbox: Outbox, next_seq: Callable[[], int]) -> None:
        self._run = run
        self._outbox = outbox
        self._next_seq = next_seq

    def blank(self, role: Role) -> Message:
        return blank_message(self._run, role, self._next_seq())

    def notice(self, kind: AgentEventType, message: str = "", detail: str = "") -> None:
        event = AgentEvent(
            type=kind,
            session_id=self._run.session_id,
            run_id=self._run.run_id,
            message=encodable(message),
            detail=encodable(detail),
        )
        self._outbox.tell(event)

    def problem(self, text: str) -> None:
        self.notice(AgentEventType.NOTICE, text)
