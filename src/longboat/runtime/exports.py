"""Export: all that is finished of a session as one document."""

import base64
from collections.abc import Sequence
from pathlib import Path

from longboat.runtime.clock import now
from longboat.runtime.transcript import Transcript, read_finished
from longboat.store.protocol import Row, Store
from longboat.tools.paths import shown
from longboat.wire.archive import FORMAT, FORMAT_VERSION, ExportedChange, FileContent, SessionExport


async def export(store: Store, workspace_id: str, directory: Path, session_id: str) -> SessionExport:
    transcript, rows = await store.read(
        lambda reader: (
            read_finished(reader, workspace_id, session_id),
            reader.fetch("changes_standing", session_id=session_id, run_id=None),
        )
    )
    return SessionExport(
        format=FORMAT,
        version=FORMAT_VERSION,
        exported_at=now(),
        session=transcript.session,
        summary_seq=transcript.summary_seq,
        messages=transcript.messages,
        runs=transcript.runs,
        todos=transcript.todos,
        changes=_changes(directory, transcript, rows),
    )


def _changes(directory: Path, transcript: Transcript, rows: Sequence[Row]) -> tuple[ExportedChange, ...]:
    finished = {message.run_id for message in transcript.messages}
    return tuple(
        ExportedChange(
            run_id=row["run_id"],
            path=shown(directory, Path(row["path"])),
            before=_content(row["before"]),
            after=_content(row["after"]),
        )
        for row in rows
        if row["run_id"] in finished
    )


def _content(raw: bytes | None) -> FileContent | None:
    if raw is None:
        return None
    try:
        return FileContent(text=raw.decode())
    except UnicodeDecodeError:
        return FileContent(data=base64.b64encode(raw).decode())
