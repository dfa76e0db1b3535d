"""Builds the unit for one decision: the core's effects as writes and events of one transaction.

Owns how each effect is recorded. Works on copies, so a builder whose commit fails is simply dropped (L15). Must not
start or stop anything: the session does that after the commit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

import msgspec

from longboat.core.effects import (
    CancelRequested,
    CoverSettled,
    DeliveryChanged,
    Effect,
    PromptWithdrawn,
    QueueCovered,
    RunAccepted,
    RunFinished,
    RunFolded,
    RunQueued,
    RunResumed,
    RunStarted,
)
from longboat.core.state import SessionState
from longboat.runtime.clock import now
from longboat.runtime.session.live_session import UnsavedUsage
from longboat.store.changes import (
    add_session_usage,
    cover_queue,
    delete_message,
    forget_undone,
    insert_run,
    mark_session,
    put_message,
    retitle_session,
    set_last_outcome,
    settle_covers,
    touch_session,
    update_run,
)
from longboat.store.protocol import Entry, Unit, Write
from longboat.store.records import RunRecord
from longboat.wire.events import Change, encode_body
from longboat.wire.ids import new_id
from longboat.wire.models import (
    FilePart,
    FinishPart,
    FinishReason,
    Message,
    Outcome,
    Part,
    Role,
    Run,
    RunComplete,
    RunState,
    Session,
    TextPart,
    Usage,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What a turn contributes to the terminal events of its runs, and its output that is not on disk yet."""

    message_id: str | None
    text: str
    error: str
    code: str = ""
    """The code of the error, if it has one."""
    writes: Sequence[Write] = ()
    entries: Sequence[Entry] = ()
    withdrawn: Sequence[Entry] = ()
    """The run's pending asks, withdrawn. Kept separate: if the store never accepts the turn's output, the asks are
    withdrawn anyway (A2)."""
    waited_s: float = 0.0
    """How long the run waited for people."""


NO_TURN = Ending(message_id=None, text="", error="")

NOT_STARTED = "Longboat failed: the run could not be started. See the server's log for details, and resend the prompt."


class UnitBuilder:
    """Collects writes and events in order; `unit()` returns them all."""

    def __init__(
        self,
        session: Session,
        records: Mapping[str, RunRecord],
        after: SessionState,
        next_message_seq: Callable[[], int],
        *,
        new: Iterable[RunRecord] = (),
        ending: Ending = NO_TURN,
        prompt: str | None = None,
        by: str | None = None,
    ) -> None:
        """`new`: additional records that take part. `prompt`: the new text of an edited run. `by`: the client that
        requested this."""
        self._session = session
        self._after = after
        self._next_message_seq = next_message_seq
        self._ending = ending
        self._prompt = prompt
        self._by = by
        self._writes = [*ending.writes]
        self._entries = [*ending.entries, *ending.withdrawn]
        self._bodies: list[bytes] = []
        self._inserted: dict[str, int] = {}
        """Where in the writes the runs are that this decision accepts."""
        self.at = now()
        self._records = records
        self.changed: dict[str, RunRecord] = {record.run.run_id: record for record in new}
        """The records that replace those known so far."""
        self.prompts: dict[str, Message] = {}
        """The user messages that this decision writes, by run."""

    def add(self, write: Write) -> None:
        self._writes.append(write)

    def tell(self, change: Change, payload: msgspec.Struct) -> None:
        self._bodies.append(encode_body(change, payload, parent=self._session.parent_id))

    def put(self, message: Message, change: Change) -> None:
        self.add(put_message(message))
        self.tell(change, message)

    def unit(self, *, durable: bool = True) -> Unit:
        self._cut()
        return Unit(
            workspace_id=self._session.workspace_id, writes=self._writes, entries=self._entries, durable=durable
        )

    def book(self, effect: Effect) -> None:  # noqa: C901 — one case an effect
        match effect:
            case RunAccepted():
                self._accept(effect.run_id)
            case RunQueued():
                self._change(effect.run_id, state=RunState.QUEUED)
            case RunStarted():
                self._start(effect.run_id)
                self._say(effect.run_id)
            case RunResumed():
                record = self.record(effect.run_id)
                self.changed[effect.run_id] = replace(record, tries=record.tries + 1)
                self._change(effect.run_id)
            case RunFolded():
                self._change(effect.run_id, state=RunState.FOLDED, folded_into=effect.into, started_at=self.at)
                self._say(effect.run_id)
            case CancelRequested():
                self._change(effect.run_id, cancel_requested=True, canceled_by=self._by)
            case DeliveryChanged():
                self._edit(effect.run_id)
            case QueueCovered():
                self.add(cover_queue(self._session.id, effect.first, effect.last, self._by))
            case CoverSettled():
                self.add(settle_covers(self._session.id))
            case PromptWithdrawn():
                pass  # the session withdraws the message it knows
            case RunFinished():
                self._finish(effect)
            case _:
                assert_never(effect)

    def withdraw(self, message: Message) -> None:
        self.add(delete_message(message.id))
        self.tell(Change.DELETED, message)

    def record(self, run_id: str) -> RunRecord:
        changed = self.changed.get(run_id)
        return self._records[run_id] if changed is None else changed

    def run(self, run_id: str) -> Run:
        return self.record(run_id).run

    def _alter(self, run_id: str, **changes: Any) -> None:
        record = self.record(run_id)
        run = msgspec.structs.replace(record.run, position=self._after.position(run_id), **changes)
        self.changed[run_id] = replace(record, run=run)

    def _accept(self, run_id: str) -> None:
        self._alter(run_id)
        self.add(forget_undone(self._session.id))
        self._inserted[run_id] = len(self._writes)
        self.add(insert_run(self.record(run_id), self._session.workspace_id))
        self.tell(Change.CREATED, self.run(run_id))

    def _start(self, run_id: str) -> None:
        """A run that is accepted and started at once is one row, written once."""
        inserted = self._inserted.get(run_id)
        if inserted is None:
            return self._change(run_id, state=RunState.ACTIVE, started_at=self.at)
        self._alter(run_id, state=RunState.ACTIVE, started_at=self.at)
        self._writes[inserted] = insert_run(self.record(run_id), self._session.workspace_id)
        return self.tell(Change.UPDATED, self.run(run_id))

    def _change(self, run_id: str, **changes: Any) -> None:
        self._alter(run_id, **changes)
        self.add(update_run(self.record(run_id)))
        self.tell(Change.UPDATED, self.run(run_id))

    def _edit(self, run_id: str) -> None:
        """Edit a run. Its fingerprint stays that of the prompt first submitted."""
        view = self._after.find(run_id)
        assert view is not None
        prompt = self.run(run_id).prompt if self._prompt is None else self._prompt
        self._change(run_id, delivery=view.delivery, prompt=prompt)

    def _say(self, run_id: str) -> None:
        """Write the prompt as a user message, in the transaction that starts or folds its run: exactly once."""
        record = self.record(run_id)
        parts: list[Part] = [TextPart(text=record.run.prompt)] if record.run.prompt else []
        for file in record.attachments:
            parts.append(FilePart(name=file.name, media_type=file.media_type, text=file.text, data=file.data))
        message = self._message(run_id, Role.USER, tuple(parts))
        self.prompts[run_id] = message
        self.put(message, Change.CREATED)

    def _message(self, run_id: str, role: Role, parts: tuple[Part, ...]) -> Message:
        return Message(
            id=new_id(),
            session_id=self._session.id,
            run_id=run_id,
            seq=self._next_message_seq(),
            role=role,
            parts=parts,
            created_at=self.at,
            finished_at=self.at,
        )

    def _finish(self, effect: RunFinished) -> None:
        ending = self._ending
        if effect.transcript:
            self._say(effect.run_id)
            answer = self._message(effect.run_id, Role.ASSISTANT, (FinishPart(reason=FinishReason.CANCELED),))
            self.put(answer, Change.CREATED)
            ending = replace(NO_TURN, message_id=answer.id)
        elif effect.folded_into is None and self.run(effect.run_id).state is not RunState.ACTIVE:
            ending = replace(NO_TURN, error=NOT_STARTED if effect.outcome is Outcome.ERROR else "")
        canceled_by = self._by if effect.outcome is Outcome.CANCELED else None
        self._change(
            effect.run_id,
            state=RunState.FINISHED,
            outcome=effect.outcome,
            canceled_by=self.run(effect.run_id).canceled_by or canceled_by,
            folded_into=effect.folded_into,  # a withdrawn prompt is no longer in any turn
            finished_at=self.at,
            waited_s=ending.waited_s,
            error=ending.error or None,
        )
        complete = RunComplete(
            run_id=effect.run_id,
            session_id=self._session.id,
            message_id=ending.message_id,
            text=ending.text,
            error=ending.error,
            cancelled=effect.outcome is Outcome.CANCELED,
            outcome=effect.outcome,
            folded_into=effect.folded_into,
        )
        self._cut()
        body = encode_body(Change.CREATED, complete, parent=self._session.parent_id)
        self._entries.append(self._entry((body,), run_seq=self.run(effect.run_id).seq))

    def _cut(self) -> None:
        if self._bodies:
            self._entries.append(self._entry(tuple(self._bodies)))
            self._bodies = []

    def _entry(self, bodies: tuple[bytes, ...], *, run_seq: int | None = None) -> Entry:
        session = self._session
        return Entry(bodies=bodies, session_id=session.id, parent_session_id=session.parent_id, run_seq=run_seq)


TITLE_LENGTH = 80


def record_effects(
    builder: UnitBuilder,
    session: Session,
    effects: Iterable[Effect],
    used: UnsavedUsage,
    *,
    busy: tuple[bool, bool],
    folded: Mapping[str, Message],
) -> Session:
    """Record the effects and the usage in the builder; return the resulting session. `busy`: before and after.
    `folded`: the messages of folded prompts, which may be withdrawn."""
    before, after = busy
    effects = tuple(effects)
    named = _with_outcome(builder, _with_usage(builder, session, used), effects)
    if after and not before:
        named = msgspec.structs.replace(named, updated_at=builder.at)
        builder.add(touch_session(session.id, builder.at))
        if named.archived:
            named = msgspec.structs.replace(named, archived=False)
            builder.add(mark_session(named))
    told = session
    if before and not after:
        # Before the terminal event: a client that has seen that one may rely on everything else.
        told = named
        builder.tell(Change.UPDATED, msgspec.structs.replace(named, busy=False))
    for effect in effects:
        if isinstance(effect, PromptWithdrawn):
            builder.withdraw(folded[effect.run_id])
        builder.book(effect)
    if (title := _title(named, builder)) is not None:
        named = msgspec.structs.replace(named, title=title, updated_at=builder.at)
        builder.add(retitle_session(named))
    if named is not told or (after and not before):
        builder.tell(Change.UPDATED, msgspec.structs.replace(named, busy=after))
    return named


def _with_usage(builder: UnitBuilder, session: Session, used: UnsavedUsage) -> Session:
    if (usage := used.usage) != Usage():
        context = session.context_tokens if used.context is None else used.context
        session = msgspec.structs.replace(
            session, usage=session.usage + usage, context_tokens=context, updated_at=builder.at
        )
        builder.add(add_session_usage(session, usage))
    for write in used.writes(session, builder.at):
        builder.add(write)
    return session


def _with_outcome(builder: UnitBuilder, session: Session, effects: Iterable[Effect]) -> Session:
    """Set how the session's last turn ended. A run canceled in the queue was not a turn; a run that could not start has
    failed."""
    for effect in effects:
        if isinstance(effect, RunFinished) and effect.folded_into is None:
            was_turn = builder.run(effect.run_id).state is RunState.ACTIVE or effect.outcome is Outcome.ERROR
            if was_turn and effect.outcome is not session.last_outcome:
                session = msgspec.structs.replace(session, last_outcome=effect.outcome)
                builder.add(set_last_outcome(session))
    return session


def _title(session: Session, builder: UnitBuilder) -> str | None:
    """Use the first line of the first prompt as the title of an untitled session; the small model may write a better
    one."""
    first = next((builder.record(run_id) for run_id in builder.prompts), None)
    if first is None or (session.title and (first.options.shell is not None or not session.title.startswith("!"))):
        return None  # one that began with a person's command is named after the first prompt
    prompt = first.run.prompt.strip()
    return prompt.splitlines()[0][:TITLE_LENGTH].strip() if prompt else "Attachment"
