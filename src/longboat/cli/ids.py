"""Finds a run, session, request or job by its id or by a unique prefix of it."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from longboat.cli.main import HINTS, Failure
from longboat.client import calls
from longboat.errors import (
    BadInput,
    JobNotFound,
    LongboatError,
    PermissionNotFound,
    QuestionNotFound,
    RunNotFound,
    SessionDamaged,
    SessionNotFound,
)
from longboat.wire.ids import check_own_id
from longboat.wire.listings import Archived
from longboat.wire.models import Run, Session

if TYPE_CHECKING:
    from longboat.cli.connection import Connection

T = TypeVar("T")

SHORTEST = 4
"""The shortest accepted prefix; anything less is probably a mistake."""
WHOLE = 36
"""The length of a complete id."""
SHOWN = 10
SHORT = 13
"""The shortest prefix of an id. That much of an id from the server is the millisecond in which it was made."""


def short_ids(ids: Sequence[str], known: Iterable[str] = ()) -> list[str]:
    """The ids for a table on a terminal: as short as tells them from each other and from all `known` ones, and accepted
    by every command. Elsewhere they are whole, for programs."""
    if not sys.stdout.isatty():
        return list(ids)
    ordered = sorted({*ids, *known})
    places = {name: place for place, name in enumerate(ordered)}
    return [_short(name, ordered[max(0, places[name] - 1) : places[name] + 2]) for name in ids]


def _short(name: str, neighbours: Iterable[str]) -> str:
    """The ids beside it in order have the most letters in common with it."""
    length = SHORT
    for other in neighbours:
        while other != name and length < len(name) and other.startswith(name[:length]):
            length += 1
    return name[:length]


def run_meant(connection: "Connection", workspace_id: str, text: str) -> Run:
    """The run with this id or prefix. An exact id wins over other ids that start with it."""
    text = _given(text)
    try:
        return connection.send(calls.get_run(workspace_id, check_own_id(text, field="run_id")))
    except (RunNotFound, BadInput) as missing:
        pages = connection.pages(lambda after: calls.runs(workspace_id, limit=500, after=after))
        return _only("runs", text, ((run.run_id, run) for page in pages for run in page.items), missing)


def session_meant(connection: "Connection", workspace_id: str, text: str) -> Session:
    """The session with this id or prefix. A damaged one comes from the list: it can still be exported and deleted."""
    text = _given(text)
    try:
        return connection.send(calls.session(workspace_id, check_own_id(text, field="session_id")))
    except (SessionNotFound, SessionDamaged, BadInput) as missing:
        pages = connection.pages(
            lambda after: calls.sessions(workspace_id, limit=500, after=after, archived=Archived.INCLUDED)
        )
        return _only("sessions", text, ((each.id, each) for page in pages for each in page.items), missing)


def ask_meant(kind: str, text: str, pending: Iterable[str]) -> str:
    """The id of a pending permission request or question. A complete id is passed on even if it is not pending: the
    server knows whether someone has answered it."""
    text = _given(text)
    known = list(pending)
    if text in known or len(text) >= WHOLE:
        return text
    missing = PermissionNotFound(text) if kind == "permissions" else QuestionNotFound(text)
    return _only(kind, text, ((name, name) for name in known), missing, where="that waits for an answer")


def job_meant(text: str, known: Iterable[str]) -> str:
    """The id of a job, given by that id or a prefix."""
    text, names = _given(text), list(known)
    return text if text in names else _only("jobs", text, ((name, name) for name in names), JobNotFound(text))


def _given(text: str) -> str:
    """The text without a trailing "…": tables shorten ids with it, and people paste them."""
    if not (text := text.strip().rstrip("…")):
        raise Failure("The id is empty.", "`longboat runs` and `longboat session list` show ids.")
    return text


def _only(
    kind: str, text: str, known: Iterable[tuple[str, T]], missing: LongboatError, where: str = "in this directory"
) -> T:
    one = kind.removesuffix("s")
    if len(text) < SHORTEST and not isinstance(missing, BadInput):
        message = f"{text!r} is too short for a {one} id: type at least {SHORTEST} characters."
        raise Failure(message, HINTS[f"{one}_not_found"]) from missing
    found = [(name, item) for name, item in known if name.startswith(text)]
    if not found:
        raise Failure(f"No {one} {text!r} {where}.", HINTS[f"{one}_not_found"]) from missing
    if len(found) > 1:
        names = [name for name, _ in found[:SHOWN]] + [f"and {len(found) - SHOWN} more"] * (len(found) > SHOWN)
        raise Failure(f"{len(found)} {kind} start with {text!r}: type more of the id.", "\n  ".join(names))
    return found[0][1]
