"""Repairs a transcript that a crash interrupted (B6, T3).

Owns what happens to the messages of the run that was active. Must not decide the run's outcome: the core has.
"""

from collections.abc import Callable, Iterable, Sequence, Set

import msgspec

from longboat.core.effects import Effect, RunFinished
from longboat.core.history import close_turn, missing_results, not_begun, text_of, with_results
from longboat.core.state import RunView
from longboat.runtime.clock import now
from longboat.runtime.session.unit_builder import Ending
from longboat.runtime.turn.asks import Asks
from longboat.runtime.turn.outbox import blank_message
from longboat.runtime.turn.outcome import LOST, Stop, describe_finish, outcome_of_stop
from longboat.store.changes import delete_message, put_message
from longboat.store.protocol import Entry, Write
from longboat.store.records import RunRecord
from longboat.wire.events import Change, encode_body
from longboat.wire.models import Message, Outcome, Role, Run, RunState


def repair_transcript(
    messages: Sequence[Message],
    run: Run,
    effects: Iterable[Effect],
    next_seq: Callable[[], int],
    *,
    asks: Asks,
) -> Ending:
    """If the effects end `run`, close its messages and withdraw its asks. Otherwise the run resumes: withdraw its
    partial answer. Calls that still wait for an answer have done nothing, so a resumed run makes them again."""
    outcome = next((e.outcome for e in effects if isinstance(e, RunFinished) and e.run_id == run.run_id), None)
    waiting = asks.calls(run.run_id)
    own: Sequence[Message] = [m for m in messages if m.run_id == run.run_id and m.role is not Role.USER]

    def fresh(role: Role) -> Message:
        return blank_message(run, role, next_seq())

    if outcome is None:
        return _ready_to_resume(own, run, fresh, waiting)
    # A partial summary is not an answer.
    own, writes, told = _without_half(own) if own and own[-1].summary else (own, [], [])
    _, finish = outcome_of_stop(Stop.CANCEL if outcome is Outcome.CANCELED else Stop.INTERRUPT)
    if outcome is Outcome.CANCELED and run.canceled_by is not None:
        finish = msgspec.structs.replace(finish, detail=f"by {run.canceled_by}")
    not_run = not_begun(own, waiting) if outcome is Outcome.INTERRUPTED else frozenset()
    closing = close_turn(own, finish, at=now(), lost=LOST[outcome], blank=fresh, not_run=not_run)
    writes += [put_message(message) for message, _ in closing.changes]
    told += [(Change.CREATED if new else Change.UPDATED, message) for message, new in closing.changes]
    ending = Ending(
        message_id=closing.answer.id,
        text=text_of(closing.answer),
        error="" if outcome is Outcome.CANCELED else describe_finish(finish),
        writes=writes,
        entries=_entries(run, told),
    )
    return asks.withdraw(run.run_id).joined(ending)


def can_resume(record: RunRecord, messages: Iterable[Message], *, wanted: bool) -> bool:
    """Whether an active run continues after a crash. If only its prompt is on disk, it has not done anything, and
    starts again whatever the configuration wants, like a run that was only accepted. A person's command may have had
    effects, so we do not repeat it."""
    begun = any(message.run_id == record.run.run_id and message.role is not Role.USER for message in messages)
    return not begun or (wanted and record.options.shell is None)


def view_of(record: RunRecord) -> RunView:
    """Make the core's view of a run after a start."""
    orphan = record.run.parent_run_id is not None
    waiting = record.run.state is RunState.QUEUED and not record.run.cancel_requested
    return RunView(
        run_id=record.run.run_id,
        seq=record.run.seq,
        delivery=record.run.delivery,
        # No one waits for a sub-agent's run any more: the call that started it is gone.
        state=RunState.ACCEPTED if orphan and waiting else record.run.state,
        cancel_requested=record.run.cancel_requested or orphan,
        # Whether its step was sent is not on disk: better too late than a prompt the model may have seen.
        sent=record.run.state is RunState.FOLDED,
        tries=record.tries,
    )


def _ready_to_resume(own: Sequence[Message], run: Run, fresh: Callable[[Role], Message], waiting: Set[str]) -> Ending:
    own, writes, told = _without_half(own)
    due = not_begun(own, waiting)
    missing = [result for result in missing_results(own, LOST[Outcome.INTERRUPTED]) if result.tool_call_id not in due]
    if missing or (own and own[-1].finished_at is None):
        results = own[-1] if own[-1].role is Role.TOOL else fresh(Role.TOOL)
        change = Change.UPDATED if own[-1].role is Role.TOOL else Change.CREATED
        results = with_results(results, missing, None if waiting else now())
        writes.append(put_message(results))
        told.append((change, results))
    return Ending(message_id=None, text="", error="", writes=writes, entries=_entries(run, told))


def _entries(run: Run, told: Sequence[tuple[Change, Message]]) -> list[Entry]:
    parent = run.parent_session_id
    bodies = tuple(encode_body(change, message, parent=parent) for change, message in told)
    return [Entry(bodies=bodies, session_id=run.session_id, parent_session_id=parent)] if bodies else []


def _without_half(own: Sequence[Message]) -> tuple[Sequence[Message], list[Write], list[tuple[Change, Message]]]:
    """Return the messages without a partial answer, and what withdraws it."""
    if not own or own[-1].role is not Role.ASSISTANT or own[-1].finished_at is not None:
        return own, [], []
    half = own[-1]
    return (
        own[:-1],
        [delete_message(half.id)],
        [(Change.DELETED, half)],
    )
