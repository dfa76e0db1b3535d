"""Rows of a store as records and shapes of the wire, for every implementation.

A row that is damaged on disk raises SessionDamaged. Lists of many sessions leave it out, so damage affects only its own
session (D12).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import msgspec

from longboat.core.request_body import DIGEST_SIZE
from longboat.errors import SessionDamaged
from longboat.store.protocol import Row
from longboat.store.reads import Ask
from longboat.store.records import (
    FileChangeRecord,
    RequestAnswer,
    RequestFacts,
    RequestRecord,
    RevertRecord,
    RunOptions,
    RunRecord,
    WorkspaceActivity,
    WorkspaceRecord,
)
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
from longboat.wire.requests import Approve
from longboat.wire.sse import Decoder
from longboat.wire.workspace_state import TodoItem

if TYPE_CHECKING:
    from longboat.permissions.rules import Rule, Traits

_parts = msgspec.json.Decoder(tuple[Part, ...])
_options = msgspec.json.Decoder(RunOptions)
_attachments = msgspec.json.Decoder(tuple[Attachment, ...])
_encode = msgspec.json.Encoder().encode


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
                raise SessionDamaged(
                    legible_text(row["session_id"]), f"{what} {legible_text(row[named_by])}"
                ) from error

        return decode_or_name

    return wrap


def legible_text(value: object) -> str:
    """A value of a damaged row as text. Text that is not UTF-8 comes as bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def decode_readable(decode: Callable[[Row], T], rows: Iterable[Row], left_out: list[str] | None = None) -> list[T]:
    """The rows without the damaged ones. `left_out` is called with what these are."""
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
        "usage": {
            "input_tokens": row["input_tokens"],
            "output_tokens": row["output_tokens"],
            "cost": None if row["unpriced_tokens"] and row["cost"] == 0 else row["cost"],
            "unpriced_tokens": row["unpriced_tokens"],
        },
        "context_tokens": row["context_tokens"],
        "last_outcome": row["last_outcome"],
        "pinned": bool(row["pinned"]),
        "archived": bool(row["archived"]),
    }
    return msgspec.convert(fields, Session)


def listed_session(row: Row) -> Session:
    """A session in a list. A damaged one is listed too, with what is legible of it, so that it can be deleted."""
    try:
        return session_from_row(row)
    except SessionDamaged:
        return Session(
            id=legible_text(row["session_id"]),
            workspace_id=legible_text(row["workspace_id"]),
            title=f"(damaged) {legible_text(row['title'])}",
            created_at=legible_text(row["created_at"]),
            updated_at=legible_text(row["updated_at"]),
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
        "plan": _options.decode(row["options"]).plan,
        "cancel_requested": bool(row["cancel_requested"]),
        "canceled_by": row["canceled_by"],
        "folded_into": row["folded_into"],
        "error": row["error"],
        "accepted_at": row["accepted_at"],
        "started_at": row["started_at"],
        "finished_at": row["finished_at"],
        "waited_s": row["waited_s"],
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
        options=_options.decode(row["options"]),
        tries=msgspec.convert(row["tries"], int),
    )


def unfinished_from_row(row: Row) -> RunRecord:
    """An unfinished run; one that a cancel covers while it is queued says so."""
    record = record_from_row(row)
    if not row["covered"]:
        return record
    run = msgspec.structs.replace(record.run, cancel_requested=True, canceled_by=row["covered_by"])
    return replace(record, run=run)


def workspace_from_row(row: Row) -> WorkspaceRecord:
    return WorkspaceRecord(
        workspace_id=row["workspace_id"], home=row["home"], path=row["path"], created_at=row["created_at"]
    )


def activity_from_row(row: Row) -> WorkspaceActivity:
    used_at = row["used_at"]
    return WorkspaceActivity(
        used_at=None if used_at is None else legible_text(used_at), waiting=row["waiting"], busy=bool(row["busy"])
    )


def client_from_row(row: Row) -> ClientInfo:
    return ClientInfo(client_id=legible_text(row["client_id"]), attached_at=legible_text(row["attached_at"]))


@_damage_costs_the_session("file change", "change_id")
def change_from_row(row: Row) -> FileChangeRecord:
    fields = {name: row[name] for name in FileChangeRecord.__struct_fields__}
    # Not `convert`: it takes base64 for bytes. Text in place of a blob is damage.
    if any(not isinstance(fields[name], bytes | None) for name in ("before", "after")):
        raise TypeError("contents that are not bytes")
    if any(not isinstance(fields[name], str) for name in ("session_id", "run_id", "path")):
        raise TypeError("names that are not text")
    if any(not isinstance(fields[name], str | None) for name in ("author", "remark", "revert_id", "redoes")):
        raise TypeError("an author, a remark or an id that is not text")
    return FileChangeRecord(**fields | {"imported": bool(row["imported"])})


@_damage_costs_the_session("undone change of", "path")
def revert_from_row(row: Row) -> RevertRecord:
    is_redo = row["redoes"] is not None
    revert_id = row["redoes" if is_redo else "revert_id"]
    if any(not isinstance(name, str) for name in (row["path"], revert_id)):
        raise TypeError("names that are not text")
    return RevertRecord(
        path=row["path"],
        remark=str(row["remark"] or ""),
        revert_id=revert_id,
        is_redo=is_redo,
        told_run=row["told_run"],
    )


@_damage_costs_the_session("granted rule", "rule")
def rule_from_row(row: Row, tools: "Traits") -> "Rule":
    from longboat.permissions.rules import RuleInvalid, parse_rule  # here: it brings the reader of shell commands along

    try:
        return parse_rule(row["rule"], tools)
    except RuleInvalid as error:
        raise ValueError(str(error)) from error


def ask_from_row(row: Row, shape: type[Ask]) -> Ask:
    try:
        return msgspec.json.decode(row["body"], type=shape)
    except _DAMAGE as error:
        name = f"{shape.__name__.lower()} {legible_text(row['ask_id'])}"
        raise SessionDamaged(legible_text(row["session_id"]), name) from error


@_damage_costs_the_session("plan of session", "session_id")
def todo_items(row: Row) -> tuple[TodoItem, ...]:
    return msgspec.json.decode(row["items"], type=tuple[TodoItem, ...])


@_damage_costs_the_session("request to a model", "request_id")
def request_from_row(row: Row) -> RequestRecord:
    digests: bytes = row["messages"]
    return RequestRecord(
        request_id=row["request_id"],
        run_id=row["run_id"],
        frame=row["frame"],
        same=row["same"],
        messages=tuple(digests[at : at + DIGEST_SIZE] for at in range(0, len(digests), DIGEST_SIZE)),
        facts=msgspec.json.decode(row["facts"], type=RequestFacts),
        answer=msgspec.json.decode(row["answer"], type=RequestAnswer) if row["answer"] is not None else None,
    )


@_damage_costs_the_session("streamed text at event", "first")
def deltas_from_row(batch: Row) -> Sequence[MessageDelta]:
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
