"""What was sent to models, put together again."""

from longboat.core.request_body import digest_of, put_together
from longboat.store.queries import Reader
from longboat.store.records import RequestRecord
from longboat.store.rows import request_from_row


async def read_requests(reader: Reader, workspace_id: str, run_id: str) -> list[RequestRecord]:
    return [record for _, record in await _requests(reader, workspace_id, run_id)]


async def read_request_body(
    reader: Reader, workspace_id: str, run_id: str, number: int
) -> tuple[RequestRecord, bytes] | None:
    found = (await _requests(reader, workspace_id, run_id))[:number]
    if not 1 <= number == len(found):
        return None
    digests: list[bytes] = []
    for _, record in found:
        digests = [*digests[: record.same], *record.messages]
    session_id, wanted = found[-1]
    pieces = [await _piece(reader, session_id, digest) for digest in (wanted.frame, *digests)]
    frame, *messages = (piece for piece in pieces if piece is not None)
    return (wanted, put_together(frame, messages)) if len(messages) == len(digests) else None


async def _piece(reader: Reader, session_id: str, digest: bytes) -> bytes | None:
    """None if it was pruned, or is damaged."""
    rows = await reader.fetch("request_piece", session_id=session_id, digest=digest)
    return next((row["content"] for row in rows if digest_of(row["content"]) == digest), None)


async def _requests(reader: Reader, workspace_id: str, run_id: str) -> list[tuple[str, RequestRecord]]:
    """Each with its session."""
    runs = await reader.fetch("run_by_id", workspace_id=workspace_id, run_id=run_id)
    return [
        (run["session_id"], request_from_row(row))
        for run in runs
        for row in await reader.fetch("requests_of", session_id=run["session_id"], run_id=run_id)
    ]
