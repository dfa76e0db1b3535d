"""Rows of the store as the wire's shapes, and back. The one place that knows both spellings.

A row that was damaged on disk raises SessionDamaged. Lists that show many sessions leave it out: it costs its own
session and no other (D12).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import msgspec

from longboat.core.stream import extend
from longboat.errors import SessionDamaged
from longboat.store.protocol import Reader, Row, Write
from longboat.wire.asks import Permission, Question
from longboat.wire.events import decode_event
from longboat.wire.models import (
    Attachment,
    ClientInfo,
    Message,
    MessageDelta,
    Part,
    Run,
    Session,
)
from longboat.wire.requests import Approve, Effort
from longboat.wire.sse import Decoder
from longboat.wire.workshop import TodoItem

if TYPE_CHECKING:
    from longboat.permissions.rules import Rule, Traits

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


T = TypeVar("T")
P = ParamSpec("P")

_DAMAGE = (msgspec.MsgspecError, ValueError, TypeError)
"""What decoding raises at a row that was damaged."""


def _damage_costs_the_session(
    what: str, named_by: str
) -> Callable[[Callable[Concatenate[Row, P], T]], Callable[Concatenate[Row, P], T]]:
    """Makes whatever a damaged row raises in `decode` the error of its session. `named_by`: a column for people."""

    def wrap(decode: Callable[Concatenate[Row, P], T]) -> Callable[Concatenate[Row, P], T]:
        @wraps(decode)
        def decode_or_name(row: Row, /, *more: P.args, **named: P.kwargs) -> T:
            try:
                return decode(row, *more, **named)
            except _DAMAGE as error:
                raise SessionDamaged(legible(row["session_id"]), f"{what} {legible(row[named_by])}") from error

        return decode_or_name

    return wrap


def legible(value: object) -> str:
    """A value of a damaged row as text. Text that is not UTF-8 comes as bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def readable(decode: Callable[[Row], T], rows: Iterable[Row], left_out: list[str] | None = None) -> list[T]:
    """The rows without those that are damaged. `left_out`: is told what these are."""
    found = []
    for row in rows:
        try:
            found.append(decode(row))
        except SessionDamaged as error:
            if left_out is not None:
                left_out.append(error.what)
    return found


@_damage_costs_the_session("session", "session_id")
def session_from_row(row: Row) -> Session:
    fields = {
        "id": row["session_id"],
        "workspace_id": row["workspace_id"],
        "parent_id": row["parent_id"],
        "parent_call_id": row["parent_call_id"],
        "title": row["title"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "busy": bool(row["busy"]),
        "usage": {"input_tokens": row["input_tokens"], "output_tokens": row["output_tokens"], "cost": row["cost"]},
        "context_tokens": row["context_tokens"],
    }
    return msgspec.convert(fields, Session)


def listed_session(row: Row) -> Session:
    """A session in a list. A damaged one is listed too, with what is legible of it, so that it can be deleted."""
    try:
        return session_from_row(row)
    except SessionDamaged:
        return Session(
            id=legible(row["session_id"]),
            workspace_id=legible(row["workspace_id"]),
            title=f"(damaged) {legible(row['title'])}",
            created_at=legible(row["created_at"]),
            updated_at=legible(row["updated_at"]),
            busy=bool(row["busy"]),
        )


@_damage_costs_the_session("message", "seq")
def message_from_row(row: Row) -> Message:
    fields = {
        "id": row["message_id"],
        "session_id": row["session_id"],
        "run_id": row["run_id"],
        "seq": row["seq"],
        "role": row["role"],
        "parts": _parts.decode(row["parts"]),
        "model": row["model"],
        "provider": row["provider"],
        "summary": bool(row["summary"]),
        "created_at": row["created_at"],
        "finished_at": row["finished_at"],
    }
    return msgspec.convert(fields, Message)


@_damage_costs_the_session("run", "run_id")
def run_from_row(row: Row) -> Run:
    fields = {
        "run_id": row["run_id"],
        "seq": row["seq"],
        "session_id": row["session_id"],
        "state": row["state"],
        "outcome": row["outcome"],
        "delivery": row["delivery"],
        "prompt": row["prompt"],
        "cancel_requested": bool(row["cancel_requested"]),
        "canceled_by": row["canceled_by"],
        "folded_into": row["folded_into"],
        "error": row["error"],
        "accepted_at": row["accepted_at"],
        "started_at": row["started_at"],
        "finished_at": row["finished_at"],
        "client_id": row["client_id"],
        "parent_run_id": row["parent_run_id"],
        "parent_session_id": row["parent_session_id"],
    }
    return msgspec.convert(fields, Run)


@_damage_costs_the_session("run", "run_id")
def record_from_row(row: Row) -> RunRecord:
    return RunRecord(
        run=run_from_row(row),
        attachments=_attachments.decode(row["attachments"]),
        fingerprint=msgspec.convert(row["fingerprint"], str),
        model=msgspec.convert(row["model"], str | None),
        approve=Approve(row["approve"]),
        options=msgspec.json.decode(row["options"], type=RunOptions),
        tries=msgspec.convert(row["tries"], int),
    )


def unfinished_from_row(row: Row) -> RunRecord:
    """An unfinished run; one that a cancel covers while it is queued says so."""
    record = record_from_row(row)
    if not row["covered"]:
        return record
    run = msgspec.structs.replace(record.run, cancel_requested=True, canceled_by=row["covered_by"])
    return replace(record, run=run)


def client_from_row(row: Row) -> ClientInfo:
    return ClientInfo(client_id=legible(row["client_id"]), attached_at=legible(row["attached_at"]))


class FileChangeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A file change of a run: the contents before and after; None is a file that is not there."""

    session_id: str
    run_id: str
    path: str
    before: bytes | None
    after: bytes | None
    pending: str | None
    """The key of a change that may not have been made; None once it was."""


@_damage_costs_the_session("file change", "change_id")
def change_from_row(row: Row) -> FileChangeRecord:
    fields = {name: row[name] for name in FileChangeRecord.__struct_fields__}
    # Not `convert`: it takes base64 for bytes. Text in place of a blob is damage.
    if any(not isinstance(fields[name], bytes | None) for name in ("before", "after")):
        raise TypeError("contents that are not bytes")
    if any(not isinstance(fields[name], str) for name in ("session_id", "run_id", "path")):
        raise TypeError("names that are not text")
    return FileChangeRecord(**fields)


@_damage_costs_the_session("granted rule", "rule")
def rule_from_row(row: Row, tools: "Traits") -> "Rule":
    from longboat.permissions.rules import RuleInvalid, parse_rule  # here: it brings the reader of shell commands along

    try:
        return parse_rule(row["rule"], tools)
    except RuleInvalid as error:
        raise ValueError(str(error)) from error


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


def ask_from_row(row: Row, shape: type[Ask]) -> Ask:
    try:
        return msgspec.json.decode(row["body"], type=shape)
    except _DAMAGE as error:
        name = f"{shape.__name__.lower()} {legible(row['ask_id'])}"
        raise SessionDamaged(legible(row["session_id"]), name) from error


def pending(reader: Reader, workspace_id: str, shape: type[Ask]) -> list[Ask]:
    """What waits for an answer, oldest first; without what is damaged."""
    rows = reader.fetch(ASK_QUERIES[shape].pending, workspace_id=workspace_id)
    return readable(lambda row: ask_from_row(row, shape), rows)


@_damage_costs_the_session("plan of session", "session_id")
def todo_items(row: Row) -> tuple[TodoItem, ...]:
    return msgspec.json.decode(row["items"], type=tuple[TodoItem, ...])


def open_messages(reader: Reader, workspace_id: str) -> list[Message]:
    """The messages that are still being written, with all that was streamed into them so far; without the damaged."""
    rows = reader.fetch("messages_open", workspace_id=workspace_id)
    return readable(lambda row: _with_deltas(reader, row), rows)


def read_messages(reader: Reader, session_id: str, *, after: int, limit: int) -> list[Message]:
    """A page of the transcript; an open message comes as far as it has been streamed."""
    return _read(reader, reader.fetch("messages_page", session_id=session_id, after=after, limit=limit))


def read_legible_messages(reader: Reader, session_id: str, left_out: list[str]) -> list[Message]:
    """The whole transcript without what is damaged, which `left_out` is told."""
    rows = reader.fetch("messages_page", session_id=session_id, after=0, limit=2**31)
    return readable(lambda row: _read(reader, [row])[0], rows, left_out)


def read_messages_before(reader: Reader, session_id: str, *, before: int, limit: int) -> list[Message]:
    """The same from its end, or from any place backwards; oldest first."""
    return _read(reader, reader.fetch("messages_before", session_id=session_id, before=before, limit=limit)[::-1])


def _read(reader: Reader, rows: Sequence[Row]) -> list[Message]:
    return [message_from_row(row) if row["finished_at"] else _with_deltas(reader, row) for row in rows]


def _with_deltas(reader: Reader, row: Row) -> Message:
    batches = reader.fetch("message_deltas", message_id=row["message_id"], whole_at=row["whole_at"])
    return extend(message_from_row(row), [delta for batch in batches for delta in _deltas(batch)])


@_damage_costs_the_session("streamed text at event", "first")
def _deltas(batch: Row) -> Sequence[MessageDelta]:
    events = (decode_event(frame.data) for frame in Decoder().decode(batch["frames"]))
    deltas = [event.payload for event in events if event is not None]
    if len(deltas) != batch["last"] - batch["first"] + 1:
        raise ValueError("frames are missing")
    return deltas


def is_intact(batch: Row, workspace_id: str) -> bool:
    """Whether a batch of the log holds the frames that it was written with, as far as that can be told."""
    try:
        text = bytes.decode(batch["frames"])
        *frames, rest = text.split("\n\n")
        if rest or len(frames) != batch["last"] - batch["first"] + 1:
            return False
        for number, frame in enumerate(frames, batch["first"]):
            head, _, data = frame.partition("\ndata: ")
            if not head.startswith(f"id: {workspace_id}/{batch['epoch']}/{number}\n"):
                return False
            msgspec.json.decode(data, type=msgspec.Raw)
    except _DAMAGE:
        return False
    return True


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
