"""What of the log and of the sent requests is old enough to be forgotten: found by a few rows of an index each time.

Clocks are set back and forth, so the times of rows do not always rise. That may keep some for longer, but not for ever.
"""

from longboat.store.protocol import Row
from longboat.store.queries import Reader


async def read_old_events(reader: Reader, workspace_id: str, *, before_s: int, now_s: int) -> int | None:
    """The number up to which the log may be forgotten. Halves what is between the oldest entry and the newest."""
    oldest = await _entry_behind(reader, workspace_id, 0)
    if oldest is None or before_s <= oldest["written_s"] <= now_s:
        return None
    (newest,) = await reader.fetch("event_newest", workspace_id=workspace_id)
    old, kept = 0, newest["last"] - 1
    while old < kept:
        middle = (old + kept) // 2
        entry = await _entry_behind(reader, workspace_id, middle)
        if entry is not None and entry["written_s"] < before_s and entry["last"] < newest["last"]:
            old = entry["last"]
        else:
            kept = middle
    (needed,) = await reader.fetch("events_needed", workspace_id=workspace_id)
    if needed["number"] is not None:
        old = min(old, needed["number"])
    return old if old >= oldest["last"] else None


async def _entry_behind(reader: Reader, workspace_id: str, number: int) -> Row | None:
    rows = await reader.fetch("event_written", workspace_id=workspace_id, number=number)
    return rows[0] if rows else None


async def read_old_requests(reader: Reader, *, after: int, before_s: int, now_s: int, most: int) -> int | None:
    """Ends at a stretch that is new as a whole: what follows was sent later."""
    rows = await reader.fetch("requests_by_age", after=after, most=most)
    if all(before_s <= row["sent_s"] <= now_s for row in rows):
        return None
    place: int = rows[-1]["place"]
    return place
