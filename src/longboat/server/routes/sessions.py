"""Sessions and their transcripts."""

from litestar import delete, get, patch, post
from litestar.params import FromPath

from longboat.server.bodies import read_body
from longboat.server.routes.request import After, HttpRequest, Limit, W, takes, workspace_of
from longboat.wire.models import MessagePage, Session, SessionPage, Undone
from longboat.wire.requests import CreateSession, UpdateSession

ONE = W + "/sessions/{session_id:str}"


@get(W + "/sessions")
async def list_sessions(request: HttpRequest, limit: Limit = 100, after: After = None) -> SessionPage:
    """The sessions of a workspace, newest first."""
    return await (await workspace_of(request)).sessions(limit=limit, after=after)


@post(W + "/sessions", opt=takes(CreateSession))
async def create_session(request: HttpRequest) -> Session:
    """Create a session. No body means no title."""
    wanted = await read_body(request, CreateSession, empty=b"{}")
    return await (await workspace_of(request)).create_session(wanted)


@get(ONE)
async def get_session(request: HttpRequest, session_id: FromPath[str]) -> Session:
    """One session."""
    return await (await workspace_of(request)).session(session_id)


@patch(ONE, opt=takes(UpdateSession))
async def update_session(request: HttpRequest, session_id: FromPath[str]) -> Session:
    """Rename a session."""
    wanted = await read_body(request, UpdateSession)
    return await (await workspace_of(request)).update_session(session_id, wanted)


@delete(ONE)
async def delete_session(request: HttpRequest, session_id: FromPath[str]) -> None:
    """Cancel the runs of a session, then delete it with the sessions of its sub-agents."""
    await (await workspace_of(request)).delete_session(session_id)


@get(ONE + "/messages")
async def list_messages(
    request: HttpRequest, session_id: FromPath[str], limit: Limit = 100, after: After = None
) -> MessagePage:
    """The transcript, oldest first."""
    return await (await workspace_of(request)).messages(session_id, limit=limit, after=after)


@post(ONE + "/undo", status_code=202)
async def undo_turn(request: HttpRequest, session_id: FromPath[str]) -> Undone:
    """Take the newest turn back: its own file changes, and its messages."""
    return await (await workspace_of(request)).undo_turn(session_id)


@post(ONE + "/redo", status_code=202)
async def redo_turn(request: HttpRequest, session_id: FromPath[str]) -> Undone:
    """Bring back what was undone last, unless a prompt came since."""
    return await (await workspace_of(request)).redo_turn(session_id)


HANDLERS = [
    list_sessions,
    create_session,
    get_session,
    update_session,
    delete_session,
    list_messages,
    undo_turn,
    redo_turn,
]
