"""What was seen from outside, as plain values: requests and answers, the log, the ledger, the traces of commands.

The checks read nothing else, so a test can hand them evidence that it made up.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

Json = dict[str, Any]
NO_ANSWER = 0
"""The status of a request whose connection broke: it may or may not have been heard."""
UNKNOWN = ("owner_lost", "cancel_not_durable")
"""Codes which say that a request may have taken effect, or may yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    promise: str
    """In a few words, the same for every violation of its kind."""
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request of a client and its answer. Times are seconds of the clock that the server has, too."""

    client: str
    kind: str
    workspace: str
    session_id: str = ""
    run_id: str = ""
    ask_id: str = ""
    key: str = ""
    """Requests with the same key are one."""
    body: Json = field(default_factory=dict)
    sent_at: float
    ended_at: float
    status: int
    answer: Json = field(default_factory=dict)

    @property
    def is_certain(self) -> bool:
        """Whether the client knows if it took effect."""
        return self.status != NO_ANSWER and self.answer.get("code") not in UNKNOWN

    @property
    def is_refused(self) -> bool:
        """Whether the client knows that it took no effect."""
        return self.is_certain and self.status >= 400


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of a workspace's log."""

    type: str
    change: str
    payload: Json


@dataclass(frozen=True, slots=True)
class Seen:
    """A frame that a reader got: its cursor, and a digest of its bytes."""

    cursor: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Piece:
    """What a reader got without losing its place."""

    after: str
    """The cursor that it began with."""
    seen: list[Seen] = field(default_factory=list)

    @property
    def end(self) -> str:
        """The cursor that it had in the end."""
        return self.seen[-1].cursor if self.seen else self.after


@dataclass(frozen=True, slots=True)
class Effect:
    """A line that a command wrote."""

    token: str
    what: str
    at: float
    server: str = ""
    """The process that had started the command."""


@dataclass(frozen=True, slots=True)
class Takeover:
    """A server process becomes the owner of a workspace."""

    at: float
    server: str


@dataclass(kw_only=True)
class WorkspaceEvidence:
    name: str
    log: list[Event] = field(default_factory=list)
    """From the first cursor on."""
    replay: list[Seen] = field(default_factory=list)
    """The same, as frames."""
    readers: dict[str, list[Piece]] = field(default_factory=dict)
    """A new piece begins where the reader's cursor was refused."""
    refusals: list[str] = field(default_factory=list)
    """What readers were told instead of a stream, other than that a server or its database is away."""
    takeovers: list[Takeover] = field(default_factory=list)
    ledger: list[Json] = field(default_factory=list)
    transcripts: dict[str, list[Json]] = field(default_factory=dict)
    """The messages of every session that is still there."""
    elsewhere: list[str] = field(default_factory=list)
    """What another server shows differently."""
    imported: set[str] = field(default_factory=set)
    """Sessions that came from a document, with runs that ended elsewhere."""
    pending: list[str] = field(default_factory=list)
    """Asks that still wait although no run is left."""
    effects: list[Effect] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    """Tokens whose file is there."""

    def of_type(self, *types: str) -> Iterator[Json]:
        return (event.payload for event in self.log if event.type in types)

    def last_runs(self) -> dict[str, Json]:
        """Each run as the log told it last; those of deleted sessions, too."""
        return {run["run_id"]: run for run in self.of_type("run")}


@dataclass(kw_only=True)
class Evidence:
    exchanges: list[Exchange] = field(default_factory=list)
    crashes: int = 0
    """Of the database."""
    workspaces: list[WorkspaceEvidence] = field(default_factory=list)
    found: list[Violation] = field(default_factory=list)
    """What was noticed at once, such as a process that outlived its server."""

    def of(self, workspace: WorkspaceEvidence, *kinds: str) -> Iterator[Exchange]:
        """The requests of these kinds at a workspace."""
        return (each for each in self.exchanges if each.workspace == workspace.name and each.kind in kinds)


def instant(text: str) -> float:
    """Seconds of an RFC 3339 time."""
    return datetime.fromisoformat(text).timestamp()


def number_of(cursor: str) -> int:
    """The place in the log of a workspace, which goes on over all restarts."""
    return int(cursor.rpartition("/")[2])


def name_of(mark: str) -> str:
    """The name of the server that a process with this mark is one of."""
    return mark.rpartition(".")[0]


def seen_in(frame: bytes) -> Seen:
    """A frame that begins with its id."""
    cursor = frame.partition(b"\n")[0].removeprefix(b"id: ").decode()
    return Seen(cursor, hashlib.blake2b(frame, digest_size=12).digest())


def event_in(frame: bytes) -> Event:
    data = next(line for line in frame.split(b"\n") if line.startswith(b"data: "))
    outer = msgspec.json.decode(data.removeprefix(b"data: "))
    return Event(outer["type"], outer["payload"]["type"], outer["payload"]["payload"])


def read_effects(file: Path) -> list[Effect]:
    """What commands left behind. The last line may be cut off with its command."""
    lines: Iterable[str] = file.read_text().splitlines() if file.exists() else ()
    words = (line.split() for line in lines)
    return [Effect(token, what, float(at), server) for token, what, at, server in words]
