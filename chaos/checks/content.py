"""Transcripts: whole, the same for whoever followed the stream, and in step with the files that undo keeps."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from chaos.evidence import NO_ANSWER, Evidence, Json, Violation, WorkspaceEvidence
from chaos.plan import Kind


@dataclass
class Followed:
    """What a client has that followed the log."""

    sessions: dict[str, dict[str, Json]] = field(default_factory=dict)
    """The messages of each session, by their id."""
    ever: dict[str, set[bytes]] = field(default_factory=dict)
    """All whole messages that each session ever had, without their ids."""
    gaps: list[Json] = field(default_factory=list)
    """Deltas that did not fit."""


def follow(workspace: WorkspaceEvidence) -> Followed:
    followed = Followed()
    for event in workspace.log:
        payload = event.payload
        if event.type == "message":
            messages = followed.sessions.setdefault(payload["session_id"], {})
            followed.ever.setdefault(payload["session_id"], set()).add(_content(payload))
            if event.change == "deleted":
                messages.pop(payload["id"], None)
            else:
                messages[payload["id"]] = msgspec.json.decode(msgspec.json.encode(payload))
        elif event.type == "message_delta":
            _extend(followed, payload)
    return followed


def _extend(followed: Followed, delta: Json) -> None:
    message = followed.sessions.get(delta["session_id"], {}).get(delta["message_id"])
    parts = message["parts"] if message is not None else []
    part = parts[delta["part"]] if delta["part"] < len(parts) else {}
    name = next((name for name in ("text", "input", "content") if name in part), None)
    if name is None or len(part[name]) != delta["offset"]:
        followed.gaps.append(delta)
    else:
        part[name] += delta["text"]


def _content(message: Json) -> bytes:
    return msgspec.json.encode([message["role"], message["parts"]])


def check_transcripts(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    followed = follow(workspace)
    for delta in followed.gaps:
        yield Violation(promise="deltas leave no gap", what=f"{workspace.name}: {delta}")
    for session_id, messages in workspace.transcripts.items():
        where = f"{workspace.name}, session {session_id}"
        if complaint := _complaint(messages):
            yield Violation(promise="a transcript is whole", what=f"{where}: {complaint}")
        mine = followed.sessions.get(session_id, {})
        shown = {message["id"]: _content(message) for message in messages}
        told = {message_id: _content(message) for message_id, message in mine.items()}
        if shown != told:
            apart = [key for key in shown.keys() | told.keys() if shown.get(key) != told.get(key)]
            yield Violation(promise="the events tell the transcript", what=f"{where}: messages {apart} differ")


def _complaint(messages: list[Json]) -> str:
    """What keeps a model from going on from here; empty if nothing does."""
    open_calls: list[str] = []
    for message in messages:
        results = [part["tool_call_id"] for part in message["parts"] if part["type"] == "tool_result"]
        if unknown := set(results) - set(open_calls):
            return f"results without a call: {unknown}"
        open_calls = [call for call in open_calls if call not in results]
        if open_calls and message["role"] != "tool":
            return f"calls without a result: {open_calls}"
        if message["finished_at"] is None:
            return f"message {message['id']} is not finished"
        open_calls += [part["id"] for part in message["parts"] if part["type"] == "tool_call"]
    if open_calls:
        return f"calls without a result: {open_calls}"
    return "" if not messages or messages[0]["role"] == "user" or messages[0]["summary"] else "it begins with an answer"


def check_forks(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """A fork begins with messages of its origin."""
    followed = follow(workspace)
    own_runs = {run["run_id"] for run in workspace.of_type("run")}
    for fork in evidence.of(workspace, "fork"):
        if fork.status != 202:
            continue
        copies = [m for m in workspace.transcripts.get(fork.answer["id"], ()) if m["run_id"] not in own_runs]
        if any(_content(copy) not in followed.ever.get(fork.session_id, ()) for copy in copies):
            what = f"{workspace.name}: {fork.answer['id']} has what {fork.session_id} never had"
            yield Violation(promise="a fork is a copy of its origin", what=what)


def check_files(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """A4: a file is there if the call that wrote it stands in the transcript, and gone if that was undone.

    Files are put back before the transcript is: where a kill or an outage of the database came in between, they may be
    apart until the next undo.
    """
    cut_off = {each.session_id for each in evidence.of(workspace, "undo", "redo") if each.status in (NO_ANSWER, 503)}
    for token, (session_id, stands) in _written(workspace).items():
        if session_id not in workspace.transcripts or session_id in cut_off:
            continue
        if stands != (token in workspace.files):
            state = "stands in the transcript" if stands else "was undone"
            what = f"{workspace.name}, session {session_id}: {token} {state}; file there: {token in workspace.files}"
            yield Violation(promise="undo and files agree", what=what)


def _written(workspace: WorkspaceEvidence) -> dict[str, tuple[str, bool]]:
    """The tokens of files that were written for certain: the session that did it, and whether the call stands."""
    own_runs = {run["run_id"] for run in workspace.of_type("run")}
    written: dict[str, str] = {}
    for event in workspace.log:
        if event.type == "message" and event.payload["run_id"] in own_runs:
            for part in event.payload["parts"]:
                if part["type"] == "tool_result" and part["finished"] and not part["is_error"]:
                    written.setdefault(part["tool_call_id"].removeprefix("call-"), event.payload["session_id"])
    standing = {
        part["id"].removeprefix("call-")
        for messages in workspace.transcripts.values()
        for message in messages
        if message["run_id"] in own_runs
        for part in message["parts"]
        if part["type"] == "tool_call"
    }
    return {token: (where, token in standing) for token, where in written.items() if token.endswith(f".{Kind.WRITE}")}
