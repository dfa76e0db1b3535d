"""Which run or session a person means: its id, or as much of the beginning as only one has."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from longboat.cli.main import HINTS, Failure
from longboat.client import calls
from longboat.errors import LongboatError, RunNotFound, SessionNotFound
from longboat.wire.models import Run, Session

if TYPE_CHECKING:
    from longboat.cli.connection import Connection

T = TypeVar("T")

SHORTEST = 4
"""Less is more likely a mistake than an id."""
SHOWN = 10


def run_meant(connection: "Connection", workspace_id: str, text: str) -> Run:
    """The run. A whole id wins over being the beginning of others."""
    text = _given(text)
    try:
        return connection.send(calls.get_run(workspace_id, text))
    except RunNotFound as missing:
        pages = connection.pages(lambda after: calls.runs(workspace_id, limit=500, after=after))
        return _only("runs", text, ((run.run_id, run) for page in pages for run in page.items), missing)


def session_meant(connection: "Connection", workspace_id: str, text: str) -> Session:
    """The session, likewise."""
    text = _given(text)
    try:
        return connection.send(calls.session(workspace_id, text))
    except SessionNotFound as missing:
        pages = connection.pages(lambda after: calls.sessions(workspace_id, limit=500, after=after))
        return _only("sessions", text, ((each.id, each) for page in pages for each in page.items), missing)


def _given(text: str) -> str:
    """Tables cut long ids with …, and people paste them."""
    if not (text := text.strip().rstrip("…")):
        raise Failure("The id is empty.", "`longboat runs` and `longboat session list` show what there is.")
    return text


def _only(kind: str, text: str, known: Iterable[tuple[str, T]], missing: LongboatError) -> T:
    found = [(name, item) for name, item in known if name.startswith(text)] if len(text) >= SHORTEST else []
    if not found:
        raise Failure(f"No {kind.removesuffix('s')} {text!r} in this directory.", HINTS[missing.code]) from missing
    if len(found) > 1:
        names = [name for name, _ in found[:SHOWN]] + [f"and {len(found) - SHOWN} more"] * (len(found) > SHOWN)
        raise Failure(f"{len(found)} {kind} begin with {text!r}: give more of the id.", "\n  ".join(names))
    return found[0][1]
