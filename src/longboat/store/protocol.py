"""The interface of a store. SQLite and PostgreSQL implement it.

Owns units: a state change, its events, and whether they must survive a power cut. Must not know how a session or a turn
uses them.
"""

from asyncio import Future
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from longboat.store.reads import Reads
from longboat.wire.events import Change, encode_body
from longboat.wire.models import Message

Row = Mapping[str, Any]


class UniqueViolated(Exception):
    """A unit violated a unique constraint (named in the message) and was rolled back."""


class WriteMissed(Exception):
    """A write changed the wrong number of rows, or violated another constraint; the unit was rolled back."""


@dataclass(frozen=True, slots=True)
class Write:
    """One change of rows, made by a function of `longboat.store.changes`. `rows`: how many rows it must change for the
    unit to hold. `message`: what it writes, if that is a message."""

    query: str
    params: Mapping[str, Any]
    rows: int | None = None
    message: Message | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Frames without their ids, to become one row of the log."""

    bodies: tuple[bytes, ...]
    session_id: str | None
    parent_session_id: str | None = None
    """For a sub-agent's session: the parent session, whose readers get this too."""
    message_id: str | None = None
    """Set on deltas: the message they extend."""
    run_seq: int | None = None
    """Set on a terminal event, which is a separate entry: a second one for the run makes the unit fail (E2)."""
    only_with: Write | None = None
    """Made first, in the same unit. If it changes no row, somebody else was faster, and this entry is left out: what
    the row says is what the log says."""

    @classmethod
    def of(
        cls, change: Change, *payloads: msgspec.Struct, session_id: str | None = None, parent: str | None = None
    ) -> "Entry":
        """One kind of change told of these. `parent`: of a sub-agent's session, the one that sent it."""
        bodies = tuple(encode_body(change, payload, parent=parent) for payload in payloads)
        return cls(bodies=bodies, session_id=session_id, parent_session_id=parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """All or nothing: the writes and the entries of one decision."""

    workspace_id: str
    writes: Sequence[Write] = ()
    entries: Sequence[Entry] = ()
    durable: bool = True
    """False: survives kill -9, but perhaps not a power cut. For deltas, and for the start of a run that
    was accepted before."""


@dataclass(frozen=True, slots=True)
class Published:
    """A committed entry as clients get it: whole frames with the numbers first to last."""

    first: int
    last: int
    sessions: tuple[str | None, str | None]
    """Whose it is, and whose sub-agent's; of no session at all: for every reader."""
    data: bytes = field(repr=False)


Listener = Callable[[Sequence[Published]], None]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem found in a store."""

    kind: str
    """`file`, `reference`, `row`, `log`, `run` or `ask`."""
    detail: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check. Without problems, everything that was checked is intact."""

    file: str
    size: int
    """Bytes, with what is not yet in the main file."""
    schema: int
    counts: dict[str, int]
    problems: tuple[Problem, ...]
    """At most a hundred."""
    complete: bool = True
    """False if time ran out first."""


class Store(Protocol):
    """Commit, then publish. Units take effect, and are published, in the order of `submit`."""

    epoch: int

    @property
    def reads(self) -> Reads: ...

    @property
    def problem(self) -> str | None:
        """Why the last commit failed, until one succeeds."""
        ...

    def next_seq(self) -> int:
        """A seq that was never handed out before."""
        ...

    def submit(self, unit: Unit) -> "Future[None]":
        """Resolves after the commit, once its entries were published. Fails with StoreUnavailable and the like."""
        ...

    async def check(self, *, limit_s: float) -> Report:
        """Look for damage, beside all other work and no longer than this."""
        ...

    def when_gone(self, told: Callable[[], None]) -> None:
        """Call this once if the store's file disappears: from then on it refuses every unit."""
        ...

    def listen(self, workspace_id: str, listener: Listener | None) -> None:
        """Call this with a workspace's committed entries; None to stop."""
        ...

    def watch(self, watcher: Callable[[Unit], None] | None) -> None:
        """Whom to tell of every committed unit of any workspace; None to stop. Called for each delta: it must be
        quick."""
        ...
