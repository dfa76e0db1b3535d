"""Import: a session from an exported document, written here or elsewhere.

Owns what is refused: the document is untrusted. All ids are new. The file changes of its runs are kept so that they can
be viewed and exported again; undo never writes them to disk.
"""

import asyncio
import base64
import binascii
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from longboat.core.history import calls_of, is_object
from longboat.errors import BadInput
from longboat.runtime.archive.exports import LISTS
from longboat.runtime.archive.transcript import TITLE_LENGTH, copy_message, new_session, unit_of_new_sessions
from longboat.runtime.store_retry import retry_store
from longboat.store.changes import add_session_usage, import_change, import_run, set_last_outcome
from longboat.store.protocol import Store, Unit, Write
from longboat.store.records import Transcript
from longboat.tools.files.images import MEDIA_TYPES, flaw
from longboat.tools.todos import MAX_ITEMS, MAX_TEXT
from longboat.wire.archive import (
    FORMAT,
    FORMAT_VERSION,
    ExportedChange,
    ExportedSubAgent,
    FileContent,
    SessionExport,
)
from longboat.wire.ids import new_id
from longboat.wire.models import FilePart, Message, Part, Role, Run, RunState, Session, ToolResultPart
from longboat.wire.workspace_state import TodoItem

MAX_PATH = 4_096
"""Bytes. No system takes a longer one."""
MOST = 2**53
"""No count is larger: beyond it JSON loses the last digits."""
SEQS_S = 20.0
"""How long an import waits for the numbers of its runs."""


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0


class _Broken(Exception):
    """A document is invalid; the message says why."""


def parse(raw: bytes | bytearray) -> SessionExport:
    """The document, checked. Raises BadInput with the code bad_export or export_version. Takes its time on a large
    one: call it off the loop."""
    try:
        head = msgspec.json.decode(raw, type=_Head)
        if head.format != FORMAT:
            raise _Broken(f"its format is not {FORMAT!r}")
        if head.version != FORMAT_VERSION:
            raise BadInput(
                f"This export has version {head.version}; this server reads version {FORMAT_VERSION}.",
                code="export_version",
            )
        document = _decoded(raw)
        _check(document)
    except (_Broken, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadInput(f"This is not a complete export of a session: {error}.", code="bad_export") from None
    return document


def _decoded(raw: bytes | bytearray) -> SessionExport:
    """Piece by piece, as decoding is one step to Python, however much there is: nothing else in the process would go on
    meanwhile. Only finding the pieces is one step, and ten times as fast."""
    pieces = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    lists = {name: msgspec.json.decode(pieces[name], type=tuple[msgspec.Raw, ...]) for name in LISTS if name in pieces}
    rest = msgspec.json.encode(pieces | dict.fromkeys(lists, msgspec.Raw(b"[]")))
    document = msgspec.json.decode(rest, type=SessionExport)
    found = {name: tuple([_DECODERS[name].decode(item) for item in items]) for name, items in lists.items()}
    return msgspec.structs.replace(document, **found)


_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "messages": msgspec.json.Decoder(Message),
    "runs": msgspec.json.Decoder(Run),
    "changes": msgspec.json.Decoder(ExportedChange),
    "sub_agents": msgspec.json.Decoder(ExportedSubAgent),
}


async def import_session(store: Store, workspace_id: str, directory: Path, raw: bytes | bytearray) -> Session:
    """One transaction: a session with all of it, or none."""
    document = await asyncio.to_thread(parse, raw)
    runs = sum(len(each.runs) for each in _family(document))
    seqs = [await retry_store(partial(_next_seq, store), for_s=SEQS_S) for _ in range(runs)]
    session, unit = await asyncio.to_thread(_made, iter(seqs), workspace_id, directory, document)
    await store.submit(unit)
    return session


async def _next_seq(store: Store) -> int:
    """On the loop. A long document may need more of them than the store has at hand."""
    return store.next_seq()


def _made(seqs: Iterator[int], workspace_id: str, directory: Path, document: SessionExport) -> tuple[Session, Unit]:
    run_of: defaultdict[str, str] = defaultdict(new_id)
    sessions: dict[str | None, Session] = {}
    family = []
    more: list[Write] = []
    for origin in _family(document):
        session = _session(workspace_id, origin.session, sessions.get(origin.session.parent_id))
        sessions[origin.session.id] = session
        family.append(_copy(origin, session, run_of))
        more += [add_session_usage(session, session.usage), set_last_outcome(session)]
        more += [_run(next(seqs), session, run, run_of) for run in origin.runs]
    head = family[0].session
    return head, unit_of_new_sessions(family, [*more, *_changes(head, directory, document, run_of)])


def _family(document: SessionExport) -> tuple[Transcript, ...]:
    parts: tuple[SessionExport | ExportedSubAgent, ...] = (document, *document.sub_agents)
    return tuple(
        Transcript(
            session=each.session,
            messages=each.messages,
            summary_seq=each.summary_seq,
            runs=each.runs,
            todos=each.todos,
        )
        for each in parts
    )


def _session(workspace_id: str, told: Session, sender: Session | None) -> Session:
    # A title may come from a prompt, and so may have a tab in it: that is no reason to refuse.
    title = "".join(char if char.isprintable() else " " for char in told.title)
    if sender is None:
        session = new_session(workspace_id, title)
    else:
        session = new_session(workspace_id, title, parent_id=sender.id, call_id=told.parent_call_id)
    return msgspec.structs.replace(
        session, usage=told.usage, context_tokens=told.context_tokens, last_outcome=told.last_outcome
    )


def _copy(origin: Transcript, session: Session, run_of: defaultdict[str, str]) -> Transcript:
    places = {message.seq: place for place, message in enumerate(origin.messages, 1)}
    messages = tuple(
        copy_message(message, session.id, run_of.__getitem__, seq=places[message.seq]) for message in origin.messages
    )
    return Transcript(
        session=session, messages=messages, summary_seq=places.get(origin.summary_seq, 0), todos=origin.todos
    )


def _run(seq: int, session: Session, run: Run, run_of: defaultdict[str, str]) -> Write:
    # What was exported by itself, without its sender, is no one's sub-agent any more.
    sender = run.parent_run_id if session.parent_id is not None else None
    new = msgspec.structs.replace(
        run,
        run_id=run_of[run.run_id],
        seq=seq,
        session_id=session.id,
        folded_into=run_of[run.folded_into] if run.folded_into is not None else None,
        parent_run_id=run_of[sender] if sender is not None else None,
        parent_session_id=session.parent_id if sender is not None else None,
    )
    return import_run(new, session.workspace_id)


def _changes(
    session: Session, directory: Path, document: SessionExport, run_of: defaultdict[str, str]
) -> Iterator[Write]:
    for change in document.changes:
        yield import_change(
            session.id,
            run_of[change.run_id],
            str(directory / change.path),
            before=_bytes(change.before),
            after=_bytes(change.after),
        )


def _bytes(content: FileContent | None) -> bytes | None:
    if content is None:
        return None
    if content.text is not None:
        return content.text.encode()
    return base64.b64decode(content.data or "", validate=True)


# What is refused


def _check(document: SessionExport) -> None:
    family = _family(document)
    for transcript in family:
        _check_transcript(transcript)
    _check_senders(family)
    run_ids = [run.run_id for transcript in family for run in transcript.runs]
    if len(set(run_ids)) != len(run_ids):
        raise _Broken("it contains a run twice")
    for change in document.changes:
        _check_change(change.path, change.before, change.after)


def _check_transcript(transcript: Transcript) -> None:
    seqs = [message.seq for message in transcript.messages]
    if any(after <= before for before, after in pairwise(seqs)):
        raise _Broken("its messages are not in order")
    if transcript.summary_seq != 0 and transcript.summary_seq not in seqs:
        raise _Broken("summary_seq does not name a message")
    if len(transcript.session.title) > TITLE_LENGTH:
        raise _Broken(f"its title has more than {TITLE_LENGTH} characters")
    _check_todos(transcript.todos)
    _check_usage(transcript.session)
    _check_files(transcript.messages)
    _check_calls(transcript.messages)
    for run in transcript.runs:
        _check_run(run)


def _check_senders(family: Sequence[Transcript]) -> None:
    """Each sub-agent was sent by a call of a session before it."""
    calls: dict[str | None, set[str]] = {}
    for place, transcript in enumerate(family):
        session = transcript.session
        if place and session.parent_call_id not in calls.get(session.parent_id, ()):
            raise _Broken(f"nothing in it started the sub-agent {session.id!r}")
        if session.id in calls:
            raise _Broken(f"it contains the session {session.id!r} twice")
        calls[session.id] = {call.id for message in transcript.messages for call in calls_of(message)}


def _check_todos(todos: Sequence[TodoItem]) -> None:
    """What the todos tool takes too."""
    if len(todos) > MAX_ITEMS:
        raise _Broken(f"it has more than {MAX_ITEMS} todos")
    if not all(0 < len(item.text) <= MAX_TEXT for item in todos):
        raise _Broken(f"a todo is empty or has more than {MAX_TEXT} characters")


def _check_files(messages: Sequence[Message]) -> None:
    """A provider refuses every request with a broken image in it."""
    for part in (part for message in messages for part in message.parts):
        match part:
            case ToolResultPart():
                wrong = next((wrong for image in part.images if (wrong := flaw(image.media_type, image.data))), None)
            case FilePart():
                wrong = _flaw_of(part)
            case _:
                wrong = None
        if wrong is not None:
            raise _Broken(f"a file or image in it cannot be shown to a model: {wrong}")


def _flaw_of(part: FilePart) -> str | None:
    if (part.text is None) == (part.data is None):
        return "it is neither text nor data"
    if part.data is None:
        return None
    if part.media_type in MEDIA_TYPES:
        return flaw(part.media_type, part.data)
    try:
        base64.b64decode(part.data, validate=True)
    except ValueError:
        return "it is not base64"
    return None


def _check_usage(session: Session) -> None:
    used = session.usage
    numbers = (used.input_tokens, used.output_tokens, used.cost or 0.0, used.unpriced_tokens, session.context_tokens)
    if not all(0 <= number <= MOST for number in numbers):
        raise _Broken("the usage is invalid")


def _check_times(part: Part) -> None:
    if isinstance(part, ToolResultPart):
        _check_instants(part.began_at)
        _check_seconds(part.waited_s, part.ran_s or 0.0)


def _check_seconds(*seconds: float) -> None:
    if not all(0 <= each <= MOST for each in seconds):
        raise _Broken("a duration in it is invalid")


def _check_calls(messages: Sequence[Message]) -> None:
    """T3: a transcript that the next model request accepts; every call is answered by the very next message."""
    open_calls: set[str] = set()
    for message in messages:
        _check_instants(message.created_at, message.finished_at)
        for part in message.parts:
            _check_times(part)
        if message.finished_at is None:
            raise _Broken(f"message {message.seq} is not finished")
        results = {part.tool_call_id for part in message.parts if isinstance(part, ToolResultPart) and part.finished}
        calls = calls_of(message)
        if results != open_calls or (message.role is Role.TOOL) != bool(results):
            raise _Broken(f"message {message.seq} does not answer the calls before it")
        if calls and message.role is not Role.ASSISTANT:
            raise _Broken(f"message {message.seq} calls tools but is not from the agent")
        if not all(call.finished and is_object(call.input) for call in calls):
            raise _Broken(f"message {message.seq} has an incomplete call")
        open_calls = {call.id for call in calls}
    if open_calls:
        raise _Broken("the last calls have no results")


def _check_run(run: Run) -> None:
    if run.state is not RunState.FINISHED or run.outcome is None:
        raise _Broken(f"run {run.run_id!r} is not finished")
    _check_instants(run.accepted_at, run.started_at, run.finished_at)
    _check_seconds(run.waited_s)


def _check_instants(*instants: str | None) -> None:
    for instant in instants:
        try:
            aware = instant is None or datetime.fromisoformat(instant).tzinfo is not None
        except ValueError:
            aware = False
        if not aware:
            raise _Broken(f"{instant!r} is not a time")


def _check_change(path: str, *contents: FileContent | None) -> None:
    if not path or "\0" in path or len(path.encode()) > MAX_PATH:
        raise _Broken("a file change has no path or an invalid one")
    for content in contents:
        if content is not None and (content.text is None) == (content.data is None):
            raise _Broken(f"the content of {path!r} is neither text nor data")
        try:
            _bytes(content)
        except (binascii.Error, ValueError):
            raise _Broken(f"the content of {path!r} is not base64") from None
