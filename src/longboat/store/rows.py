"""Rows of the store as the wire's shapes, and back. The one place that knows both spellings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from longboat.core.stream import extend
from longboat.store.protocol import Reader, Row, Write
from longboat.wire.asks import Permission, Question
from longboat.wire.events import decode_event
from longboat.wire.models import (
    Attachment,
    ClientInfo,
    Delivery,
    Message,
    MessageDelta,
    Outcome,
    Part,
    Role,
    Run,
    RunState,
    Session,
    Usage,
)
from longboat.wire.requests import Approve, Effort
from longboat.wire.sse import Decoder
from longboat.wire.workshop import TodoItem

_parts = msgspec.json.Decoder(tuple[Part, ...])
_attachments = msgspec.json.Decoder(tuple[Attachment, ...])
_encode = msgspec.json.Encoder().encode


class RunOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a run is done, beyond its model."""

    agent: str | None = None
    """The sub-agent that does it, by the name the project gives it."""
    effort: Effort | None = None
    schema: dict[str, Any] | None = None
    """What its answer must fit."""
    summarize: bool = False
    """No prompt to answer: the conversation is to be summarized, and its prompt is only what people read."""
    shell: str | None = None
    """No prompt either: a command that a person runs; the model reads of it with the next prompt."""


NO_OPTIONS = RunOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run with what the wire does not show."""

    run: Run
    attachments: tuple[Attachment, ...]
    fingerprint: str
    model: str | None
    approve: Approve
    options: RunOptions = NO_OPTIONS
    tries: int = 0


def session_from_row(row: Row) -> Session:
    return Session(
        id=row["session_id"],
        workspace_id=row["workspace_id"],
        parent_id=row["parent_id"],
        parent_call_id=row["parent_call_id"],
        title=row["title"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        busy=bool(row["busy"]),
        usage=Usage(input_tokens=row["input_tokens"], output_tokens=row["output_tokens"], cost=row["cost"]),
        context_tokens=row["context_tokens"],
    )


def message_from_row(row: Row) -> Message:
    return Message(
        id=row["message_id"],
        session_id=row["session_id"],
        run_id=row["run_id"],
        seq=row["seq"],
        role=Role(row["role"]),
        parts=_parts.decode(row["parts"]),
        model=row["model"],
        provider=row["provider"],
        summary=bool(row["summary"]),
        created_at=row["created_at"],
        finished_at=row["finished_at"],
    )


def run_from_row(row: Row) -> Run:
    return Run(
        run_id=row["run_id"],
        seq=row["seq"],
        session_id=row["session_id"],
        state=RunState(row["state"]),
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        delivery=Delivery(row["delivery"]),
        prompt=row["prompt"],
        cancel_requested=bool(row["cancel_requested"]),
        canceled_by=row["canceled_by"],
        folded_into=row["folded_into"],
        error=row["error"],
        accepted_at=row["accepted_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        client_id=row["client_id"],
        parent_run_id=row["parent_run_id"],
        parent_session_id=row["parent_session_id"],
    )


def record_from_row(row: Row) -> RunRecord:
    return RunRecord(
        run=run_from_row(row),
        attachments=_attachments.decode(row["attachments"]),
        fingerprint=row["fingerprint"],
        model=row["model"],
        approve=Approve(row["approve"]),
        options=msgspec.json.decode(row["options"], type=RunOptions),
        tries=row["tries"],
    )


def client_from_row(row: Row) -> ClientInfo:
    return ClientInfo(client_id=row["client_id"], attached_at=row["attached_at"])


Ask = TypeVar("Ask", Permission, Question)


@dataclass(frozen=True, slots=True)
class AskQueries:
    """The named queries of one kind of ask."""

    put: str
    by_id: str
    pending: str


ASK_QUERIES: dict[type, AskQueries] = {
    Permission: AskQueries("permission_put", "permission_by_id", "permissions_pending"),
    Question: AskQueries("question_put", "question_by_id", "questions_pending"),
}


def pending(reader: Reader, workspace_id: str, shape: type[Ask]) -> list[Ask]:
    """What waits for an answer, oldest first."""
    rows = reader.fetch(ASK_QUERIES[shape].pending, workspace_id=workspace_id)
    return [msgspec.json.decode(row["body"], type=shape) for row in rows]


def todo_items(row: Row) -> tuple[TodoItem, ...]:
    return msgspec.json.decode(row["items"], type=tuple[TodoItem, ...])


def open_messages(reader: Reader, workspace_id: str) -> list[Message]:
    """The messages that are still being written, with all that was streamed into them so far."""
    return [_with_deltas(reader, row) for row in reader.fetch("messages_open", workspace_id=workspace_id)]


def read_messages(reader: Reader, session_id: str, *, after: int, limit: int) -> list[Message]:
    """A page of the transcript; an open message comes as far as it has been streamed."""
    return _read(reader, reader.fetch("messages_page", session_id=session_id, after=after, limit=limit))


def read_messages_before(reader: Reader, session_id: str, *, before: int, limit: int) -> list[Message]:
    """The same from its end, or from any place backwards; oldest first."""
    return _read(reader, reader.fetch("messages_before", session_id=session_id, before=before, limit=limit)[::-1])


def _read(reader: Reader, rows: Sequence[Row]) -> list[Message]:
    return [message_from_row(row) if row["finished_at"] else _with_deltas(reader, row) for row in rows]


def _with_deltas(reader: Reader, row: Row) -> Message:
    batches = reader.fetch("message_deltas", message_id=row["message_id"], whole_at=row["whole_at"])
    return extend(message_from_row(row), [delta for batch in batches for delta in _deltas(batch["frames"])])


def _deltas(frames: bytes) -> Sequence[MessageDelta]:
    events = (decode_event(frame.data) for frame in Decoder().decode(frames))
    return [event.payload for event in events if event is not None]


def put_message(message: Message) -> Write:
    return Write(
        "message_put",
        {
            "message_id": message.id,
            "session_id": message.session_id,
            "run_id": message.run_id,
            "seq": message.seq,
            "role": message.role.value,
            "parts": _encode(message.parts),
            "model": message.model,
            "provider": message.provider,
            "summary": message.summary,
            "created_at": message.created_at,
            "finished_at": message.finished_at,
        },
        rows=1,
    )


def insert_session(session: Session) -> Write:
    params = {
        "session_id": session.id,
        "workspace_id": session.workspace_id,
        "parent_id": session.parent_id,
        "parent_call_id": session.parent_call_id,
        "title": session.title,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
    }
    return Write("session_insert", params, rows=1)


def put_todos(session_id: str, items: Sequence[TodoItem]) -> Write:
    return Write("todos_put", {"session_id": session_id, "items": _encode(items)}, rows=1)


def import_run(run: Run, workspace_id: str) -> Write:
    """A finished run that was done elsewhere."""
    assert run.outcome is not None
    params: dict[str, Any] = {
        "seq": run.seq,
        "run_id": run.run_id,
        "workspace_id": workspace_id,
        "session_id": run.session_id,
        "outcome": run.outcome.value,
        "delivery": run.delivery.value,
        "prompt": run.prompt,
        "cancel_requested": run.cancel_requested,
        "canceled_by": run.canceled_by,
        "folded_into": run.folded_into,
        "error": run.error,
        "accepted_at": run.accepted_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "client_id": run.client_id,
        "parent_run_id": run.parent_run_id,
        "parent_session_id": run.parent_session_id,
    }
    return Write("run_import", params, rows=1)


def insert_run(record: RunRecord, workspace_id: str) -> Write:
    run = record.run
    params: dict[str, Any] = {
        "seq": run.seq,
        "run_id": run.run_id,
        "workspace_id": workspace_id,
        "session_id": run.session_id,
        "state": run.state.value,
        "delivery": run.delivery.value,
        "prompt": run.prompt,
        "attachments": _encode(record.attachments),
        "fingerprint": record.fingerprint,
        "model": record.model,
        "approve": record.approve.value,
        "options": _encode(record.options),
        "parent_run_id": run.parent_run_id,
        "parent_session_id": run.parent_session_id,
        "accepted_at": run.accepted_at,
        "client_id": run.client_id,
    }
    return Write("run_insert", params, rows=1)


def update_run(record: RunRecord) -> Write:
    run = record.run
    params: dict[str, Any] = {
        "seq": run.seq,
        "state": run.state.value,
        "outcome": run.outcome.value if run.outcome else None,
        "delivery": run.delivery.value,
        "prompt": run.prompt,
        "cancel_requested": run.cancel_requested,
        "canceled_by": run.canceled_by,
        "folded_into": run.folded_into,
        "error": run.error,
        "tries": record.tries,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }
    return Write("run_update", params, rows=1)
