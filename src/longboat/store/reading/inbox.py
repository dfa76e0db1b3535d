"""The inbox: pages of it, and what changed since a client last looked."""

from collections.abc import Collection
from typing import Any

import msgspec

from longboat.errors import SessionDamaged
from longboat.store.protocol import Row
from longboat.store.queries import Reader
from longboat.store.reads import InboxMarks
from longboat.store.rows import ask_from_row, decode_readable, legible_text
from longboat.wire.asks import Permission, Question
from longboat.wire.inbox import InboxChange, InboxEvent, InboxItem, InboxKind, InboxPage

TEXT = 300
"""How much of a prompt is shown, in characters."""
ERROR = 2_000


async def read_inbox(reader: Reader, person: str, *, before: int, limit: int) -> InboxPage:
    rows = await reader.fetch("inbox_page", person=person, before=before, limit=limit)
    items = tuple(decode_readable(_item, rows))
    following = str(rows[-1]["place"]) if len(rows) == limit else None
    return InboxPage(items=items, next=following, **await _counts(reader, person))


async def read_inbox_since(
    reader: Reader, person: str, known: InboxMarks | None, *, limit: int
) -> tuple[InboxMarks, InboxEvent]:
    rows = await reader.fetch("inbox_marks", person=person)
    marks = {row["place"]: (legible_text(row["session_title"]), bool(row["seen"])) for row in rows}
    changed = [place for place, mark in marks.items() if known is None or known.get(place) != mark]
    if known is None or len(changed) > limit:
        return marks, await read_inbox(reader, person, before=2**62, limit=limit)
    items = await _read_some(reader, person, changed)
    removed = tuple(str(place) for place in known if place not in marks)
    return marks, InboxChange(changed=tuple(items), removed=removed, **await _counts(reader, person))


async def read_inbox_after(reader: Reader, place: int | None, *, limit: int) -> tuple[int, list[InboxItem]]:
    if place is None:
        newest = await reader.fetch("inbox_newest")
        return (newest[0]["seq"] if newest else 0), []
    rows = await reader.fetch("inbox_after", after=place, limit=limit)
    return (rows[-1]["place"] if rows else place), decode_readable(_item, rows)


async def read_inbox_items(reader: Reader, places: Collection[int]) -> list[InboxItem]:
    """These items as far as they are still there, oldest first."""
    return (await _read_some(reader, "", places))[::-1]


async def _read_some(reader: Reader, person: str, places: Collection[int]) -> list[InboxItem]:
    wanted = msgspec.json.encode(list(places)).decode()
    return decode_readable(_item, await reader.fetch("inbox_some", person=person, places=wanted))


async def _counts(reader: Reader, person: str) -> dict[str, int]:
    (row,) = await reader.fetch("inbox_counts", person=person)
    return {"waiting": row["waiting"], "unseen": row["unseen"]}


def _item(row: Row) -> InboxItem:
    kind = InboxKind(row["kind"])
    permission = ask_from_row(row, Permission) if kind is InboxKind.PERMISSION else None
    question = ask_from_row(row, Question) if kind is InboxKind.QUESTION else None
    ask = permission or question
    fields: dict[str, Any] = {
        "id": str(row["place"]),
        "kind": kind,
        "workspace_id": row["workspace_id"],
        "workspace_path": row["workspace_path"],
        "session_id": row["session_id"],
        "session_title": row["session_title"],
        "run_id": row["run_id"],
        "client_id": row["client_id"],
        "at": ask.asked_at if ask is not None else row["finished_at"],
        "seen": bool(row["seen"]),
        "text": _shortened(legible_text(row["prompt"] or ""), TEXT),
        "outcome": row["outcome"] if ask is None else None,
        "error": _shortened(legible_text(row["error"]), ERROR) if row["error"] is not None else None,
    }
    try:
        item = msgspec.convert(fields, InboxItem)
    except msgspec.ValidationError as error:
        raise SessionDamaged(legible_text(row["session_id"]), f"run {legible_text(row['run_id'])}") from error
    return msgspec.structs.replace(item, permission=permission, question=question)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
