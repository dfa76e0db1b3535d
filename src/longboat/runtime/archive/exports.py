"""Export: the finished part of a session and of its sub-agents as one document."""

import asyncio
import base64
from collections.abc import Sequence
from pathlib import Path

import msgspec

from longboat.runtime.clock import now
from longboat.store.protocol import Store
from longboat.store.records import ExportRecord, FileChangeRecord, Transcript
from longboat.tools.files.paths import display_path
from longboat.wire.archive import (
    FORMAT,
    FORMAT_VERSION,
    ExportedChange,
    ExportedSubAgent,
    FileContent,
    SessionExport,
)

LISTS = ("messages", "runs", "changes", "sub_agents")
"""The fields of a document that may be long."""

_encode = msgspec.json.Encoder().encode


async def export(store: Store, workspace_id: str, directory: Path, session_id: str) -> SessionExport:
    """Also of a damaged session, with what is readable: the document says what it lacks (D12)."""
    found = await store.reads.export(workspace_id, session_id)
    return await asyncio.to_thread(_document, directory, found)


def encode_export(document: SessionExport) -> bytes:
    """The document as JSON. Piece by piece, as encoding is one step to Python, however much there is: nothing else in
    the process would go on meanwhile. Call it off the loop."""
    fields: dict[str, object] = {name: getattr(document, name) for name in document.__struct_fields__}
    for name in LISTS:
        fields[name] = msgspec.Raw(b"[%b]" % b",".join([_encode(item) for item in getattr(document, name)]))
    return _encode(fields)


def _document(directory: Path, found: ExportRecord) -> SessionExport:
    transcript, *children = found.transcripts
    return SessionExport(
        format=FORMAT,
        version=FORMAT_VERSION,
        exported_at=now(),
        session=transcript.session,
        summary_seq=transcript.summary_seq,
        messages=transcript.messages,
        runs=transcript.runs,
        todos=transcript.todos,
        changes=_changes(directory, transcript, found.changes),
        sub_agents=tuple(
            ExportedSubAgent(
                session=child.session,
                summary_seq=child.summary_seq,
                messages=child.messages,
                runs=child.runs,
                todos=child.todos,
            )
            for child in children
        ),
        left_out=found.left_out,
    )


def _changes(
    directory: Path, transcript: Transcript, changes: Sequence[FileChangeRecord]
) -> tuple[ExportedChange, ...]:
    finished = {message.run_id for message in transcript.messages}
    return tuple(
        ExportedChange(
            run_id=change.run_id,
            path=display_path(directory, Path(change.path)),
            before=_content(change.before),
            after=_content(change.after),
        )
        for change in changes
        if change.run_id in finished
    )


def _content(raw: bytes | None) -> FileContent | None:
    if raw is None:
        return None
    try:
        return FileContent(text=raw.decode())
    except UnicodeDecodeError:
        return FileContent(data=base64.b64encode(raw).decode())
