"""Creates sessions: once, however often a client repeats the request with the same id."""

from typing import Protocol

from longboat.errors import SessionIdTaken, SessionNotFound
from longboat.store.protocol import UniqueViolated
from longboat.wire.ids import check_session_id
from longboat.wire.models import Session
from longboat.wire.requests import CreateSession


class Ground(Protocol):
    """What this module needs from a workspace."""

    async def create_session(self, request: CreateSession) -> Session: ...

    async def session(self, session_id: str) -> Session: ...


async def found(ground: Ground, request: CreateSession) -> tuple[Session, bool]:
    """The session, and whether it is new. One that is there is not compared: it may have been renamed since."""
    if request.session_id is None:
        return await ground.create_session(request), True
    session_id = check_session_id(request.session_id)
    try:
        return await ground.create_session(request), True
    except UniqueViolated:
        known = await _known(ground, session_id)
    if known.parent_id is not None:
        raise SessionIdTaken(session_id)
    return known, False


async def _known(ground: Ground, session_id: str) -> Session:
    try:
        return await ground.session(session_id)
    except SessionNotFound:
        raise SessionIdTaken(session_id) from None  # of another workspace
