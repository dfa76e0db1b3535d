"""What can be written to a store: one function for each change, as a `Write` that goes into a `Unit`.

The runtime's only way to write. A `Write` names the change and what it needs; each implementation of the store has its
own statement for it. Must not know SQL.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from longboat.store.protocol import Unit, Write
from longboat.store.records import (
    FileChangeRecord,
    PushSubscription,
    RequestAnswer,
    RequestRecord,
    RunRecord,
    WorkspaceRecord,
)
from longboat.wire.asks import Permission, Question
from longboat.wire.models import Canceled, Message, Run, Session, ToolResultPart, Usage
from longboat.wire.plain import fold_case
from longboat.wire.statistics import CallOutcome
from longboat.wire.workspace_state import TodoItem

_encode = msgspec.json.Encoder().encode

# Workspaces and clients


def add_workspace(new: WorkspaceRecord) -> Write:
    params = {
        "workspace_id": new.workspace_id,
        "home": new.home,
        "path": new.path,
        "created_at": new.created_at,
    }
    return Write("workspace_insert", params, rows=1)


def prune_events(workspace_id: str, first: int, last: int) -> Write:
    """Forget the events between these numbers, which are the oldest ones."""
    return Write("events_prune", {"workspace_id": workspace_id, "first": first, "last": last})


def prune_requests(*, after: int, up_to: int, before_s: int) -> Write:
    """Forget what was sent to models in the runs of these places, if they sent nothing since this time."""
    return Write("requests_prune", {"after": after, "up_to": up_to, "before_s": before_s})


def prune_request_pieces(places: Sequence[int], before_s: int) -> Write:
    """Forget these pieces of requests, unless they were needed since this time."""
    return Write("request_pieces_prune", {"places": _encode(places).decode(), "before_s": before_s})


def put_client(workspace_id: str, client_id: str, attached_at: str) -> Write:
    params = {"workspace_id": workspace_id, "client_id": client_id, "attached_at": attached_at}
    return Write("client_put", params)


def delete_client(workspace_id: str, client_id: str) -> Write:
    return Write("client_delete", {"workspace_id": workspace_id, "client_id": client_id})


# Sessions


def insert_session(session: Session) -> Write:
    params = {
        "session_id": session.id,
        "workspace_id": session.workspace_id,
        "parent_id": session.parent_id,
        "parent_call_id": session.parent_call_id,
        "title": session.title,
        "folded_title": fold_case(session.title),
        "created_at": session.created_at,
        "updated_at": session.updated_at,
    }
    return Write("session_insert", params, rows=1)


def delete_session(session_id: str) -> Write:
    return Write("session_delete", {"session_id": session_id}, rows=1)


def touch_session(session_id: str, updated_at: str) -> Write:
    return Write("session_touch", {"session_id": session_id, "updated_at": updated_at}, rows=1)


def retitle_session(session: Session) -> Write:
    folded = fold_case(session.title)
    now = {"title": session.title, "folded_title": folded, "updated_at": session.updated_at}
    params = {"session_id": session.id, **now}
    return Write("session_title", params, rows=1)


def mark_session(session: Session) -> Write:
    """Whether it is pinned, and whether it is archived."""
    params = {"session_id": session.id, "pinned": session.pinned, "archived": session.archived}
    return Write("session_mark", params, rows=1)


def add_session_usage(session: Session, used: Usage) -> Write:
    """The session as it is with this usage."""
    now = {"updated_at": session.updated_at, "context_tokens": session.context_tokens}
    return Write("session_usage", {"session_id": session.id, **now, **_used(used)}, rows=1)


def _used(usage: Usage) -> dict[str, Any]:
    return msgspec.structs.asdict(usage) | {"cost": usage.cost or 0.0}


def set_last_outcome(session: Session) -> Write:
    outcome = session.last_outcome.value if session.last_outcome is not None else None
    return Write("session_outcome", {"session_id": session.id, "last_outcome": outcome}, rows=1)


def add_model_usage(session: Session, day: str, run_id: str, model: str, used: Usage) -> Write:
    """One model request, for the statistics."""
    where = {"workspace_id": session.workspace_id, "session_id": session.id, "day": day}
    return Write("spending_add", where | {"run_id": run_id, "model": model, **_used(used)}, rows=1)


def add_tool_call(session: Session, day: str, run_id: str, result: ToolResultPart) -> Write:
    """One tool call, for the statistics and the timeline. Its text is in the transcript."""
    outcome = CallOutcome.FAILED if result.is_error else CallOutcome.DONE
    params = {
        "workspace_id": session.workspace_id,
        "session_id": session.id,
        "run_id": run_id,
        "day": day,
        "tool": result.name,
        "began_at": result.began_at,
        "waited_s": result.waited_s,
        "ran_s": result.ran_s,
        "outcome": outcome.value if result.finished else CallOutcome.CUT_OFF.value,
    }
    return Write("tool_call_add", params, rows=1)


def put_surroundings(session_id: str, run_id: str, text: str) -> Write:
    return Write("surroundings_put", {"session_id": session_id, "run_id": run_id, "text": text}, rows=1)


def put_todos(session_id: str, items: Sequence[TodoItem]) -> Write:
    return Write("todos_put", {"session_id": session_id, "items": _encode(items)}, rows=1)


def add_grant(session_id: str, rule: str) -> Write:
    return Write("grant_put", {"session_id": session_id, "rule": rule})


# Messages


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
        message=message,
    )


def delete_message(message_id: str) -> Write:
    return Write("message_delete", {"message_id": message_id}, rows=1)


def close_messages(session_id: str, finished_at: str) -> Write:
    """Finish all that are open, as they are."""
    return Write("messages_close", {"session_id": session_id, "finished_at": finished_at})


def set_summary(session_id: str, seq: int) -> Write:
    """The message from which on the model sees the transcript."""
    return Write("session_summary", {"session_id": session_id, "seq": seq}, rows=1)


def find_summary(session_id: str) -> Write:
    """After an undo or redo: the newest summary that is not undone."""
    return Write("session_view", {"session_id": session_id}, rows=1)


def undo_messages(session_id: str, first_seq: int, *, count: int) -> Write:
    """Remove the messages from this one on from the transcript; there must be exactly this many."""
    return Write("messages_undo", {"session_id": session_id, "mark": first_seq, "from_seq": first_seq}, rows=count)


def redo_messages(session_id: str, first_seq: int, *, count: int) -> Write:
    return Write("messages_redo", {"session_id": session_id, "mark": first_seq}, rows=count)


def forget_undone(session_id: str) -> Write:
    """What was undone cannot be redone any more."""
    return Write("messages_forget", {"session_id": session_id})


_NOT_IN_HISTORY = frozenset(
    {"session_touch", "session_title", "session_mark", "session_usage", "session_outcome", "spending_add"}
    | {"tool_call_add", "todos_put", "grant_put", "messages_forget", "read_put", "client_put", "client_delete"}
    | {"run_insert", "run_update", "cancel_cover_insert", "cancel_covers_delete", "cancel_key_insert"}
    | {"request_piece_put", "request_add", "request_end", "permission_put", "question_put", "inbox_leave"}
    | {"events_prune", "requests_prune", "request_pieces_prune", "cancel_keys_prune", "inbox_see", "inbox_prune"}
    | {"inbox_drop_ended", "inbox_add_waiting", "push_put", "push_trim", "push_delete"}
)


def concerns_history(write: Write) -> bool:
    """Whether a write may change what a turn reads of its session. Those that are not known are taken to do so."""
    return write.query not in _NOT_IN_HISTORY


# Runs


def insert_run(record: RunRecord, workspace_id: str) -> Write:
    """A new run: accepted, or started at once."""
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
        "started_at": run.started_at,
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
        "waited_s": run.waited_s,
    }
    return Write("run_update", params, rows=1)


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
        "waited_s": run.waited_s,
        "client_id": run.client_id,
        "parent_run_id": run.parent_run_id,
        "parent_session_id": run.parent_session_id,
    }
    return Write("run_import", params, rows=1)


def give_up_run(seq: int, error: str, finished_at: str) -> Write:
    """End a run of a damaged session without looking at the rest of its row."""
    return Write("run_give_up", {"seq": seq, "error": error, "finished_at": finished_at}, rows=1)


def cover_queue(session_id: str, first_seq: int, last_seq: int, by: str | None) -> Write:
    """A cancel covers the queued runs from the first to the last."""
    params = {"session_id": session_id, "first_seq": first_seq, "last_seq": last_seq, "canceled_by": by}
    return Write("cancel_cover_insert", params, rows=1)


def settle_covers(session_id: str) -> Write:
    return Write("cancel_covers_delete", {"session_id": session_id})


def keep_cancel(session_id: str, key: str, canceled: Canceled, made_s: int) -> Write:
    """The answer to a cancel, for the case that it is sent again."""
    params = {"session_id": session_id, "key": key, "canceled": _encode(canceled), "made_s": made_s}
    return Write("cancel_key_insert", params, rows=1)


def prune_cancels(before_s: int) -> Write:
    """Forget the answers to cancels that were sent before this time."""
    return Write("cancel_keys_prune", {"before_s": before_s})


# What was sent to models


def put_request_piece(session_id: str, digest: bytes, content: bytes, used_s: int) -> Write:
    """A message of a request, or all but its messages. A session's requests have most of them in common."""
    params = {"session_id": session_id, "digest": digest, "content": content, "used_s": used_s}
    return Write("request_piece_put", params)


def add_request(session_id: str, record: RequestRecord, sent_s: int) -> Write:
    params = {
        "session_id": session_id,
        "run_id": record.run_id,
        "request_id": record.request_id,
        "sent_s": sent_s,
        "frame": record.frame,
        "same": record.same,
        "messages": b"".join(record.messages),
        "facts": _encode(record.facts),
    }
    return Write("request_add", params, rows=1)


def end_request(request_id: str, answer: RequestAnswer) -> Write:
    return Write("request_end", {"request_id": request_id, "answer": _encode(answer)})


# Asks


_PUT_ASK = {Permission: "permission_put", Question: "question_put"}


def put_ask(workspace_id: str, ask: Permission | Question, *, rows: int | None = None) -> Write:
    """Changes no row if the ask is no longer pending."""
    params = {
        "id": ask.id,
        "workspace_id": workspace_id,
        "session_id": ask.session_id,
        "run_id": ask.run_id,
        "state": ask.state.value,
        "body": msgspec.json.encode(ask),
    }
    return Write(_PUT_ASK[type(ask)], params, rows=rows)


def withdraw_asks(session_id: str) -> list[Write]:
    """All that the session still asks, without looking at it."""
    return [Write(name, {"session_id": session_id}) for name in ("permissions_withdraw", "questions_withdraw")]


# The inbox

_SHOWN_IN_INBOX = frozenset(
    {"permission_put", "question_put", "permissions_withdraw", "questions_withdraw", "run_give_up"}
    | {"inbox_leave", "inbox_see", "session_title", "session_delete"}
)
SEEN_MOST = 200_000
"""How much is remembered of who has seen what, in all."""


def concerns_inbox(unit: Unit) -> bool:
    """Whether a unit may change what the inbox shows: an ask, the end of a run, the title of a session, what was
    seen."""
    return any(write.query in _SHOWN_IN_INBOX for write in unit.writes) or any(
        entry.run_seq is not None or entry.only_with is not None for entry in unit.entries
    )


def see_items(person: str, places: Sequence[int], *, up_to: int | None) -> Write:
    """A person has seen these, and everything up to a place."""
    params = {"person": person, "places": _encode(list(places)).decode(), "up_to": up_to or 0, "most": SEEN_MOST}
    return Write("inbox_see", params)


def prune_inbox(before_s: int, *, most: int) -> Write:
    """Forget runs that ended before this time, and all but the newest `most`."""
    return Write("inbox_prune", {"before_s": before_s, "most": most})


def recount_inbox(now_s: int) -> list[Write]:
    """Let exactly those asks be in it that wait, whatever happened to the store."""
    return [Write("inbox_drop_ended", {}), Write("inbox_add_waiting", {"now_s": now_s})]


def leave_inbox(session_id: str, run_ids: Sequence[str]) -> Write:
    """That these runs have ended is no longer news."""
    return Write("inbox_leave", {"session_id": session_id, "run_ids": _encode(list(run_ids)).decode()})


def put_subscription(subscription: PushSubscription, created_at: str, *, most: int) -> list[Write]:
    """Keep at most `most`; the oldest go first."""
    params = {
        "endpoint": subscription.endpoint,
        "person": subscription.person,
        "p256dh": subscription.p256dh,
        "auth": subscription.auth,
        "created_at": created_at,
    }
    return [Write("push_put", params, rows=1), Write("push_trim", {"most": most})]


def delete_subscription(endpoint: str) -> Write:
    return Write("push_delete", {"endpoint": endpoint})


# Files


def put_read(session_id: str, path: str, digest: str) -> Write:
    """The session has seen the file with this content."""
    return Write("read_put", {"session_id": session_id, "path": path, "digest": digest}, rows=1)


def copy_reads(session_id: str, origin_id: str) -> Write:
    """What a session has read counts as read in its fork."""
    return Write("reads_copy", {"session_id": session_id, "origin": origin_id})


def expect_change(change: FileChangeRecord) -> Write:
    """A change that is about to be made; `pending` is its key."""
    return Write("change_expect", msgspec.structs.asdict(change), rows=1)


def change_made(key: str) -> Write:
    return Write("change_made", {"pending": key}, rows=1)


def forget_change(key: str) -> Write:
    return Write("change_forget", {"pending": key}, rows=1)


def tell_reverts(session_id: str, run_id: str) -> Write:
    """The prompt of this run tells the model what people undid and redid since the prompt before it."""
    return Write("reverts_tell", {"session_id": session_id, "run_id": run_id})


def import_change(session_id: str, run_id: str, path: str, *, before: bytes | None, after: bytes | None) -> Write:
    params = {"session_id": session_id, "run_id": run_id, "path": path, "before": before, "after": after}
    return Write("change_import", params, rows=1)
