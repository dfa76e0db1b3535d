"""Sessions and their transcripts."""

from typing import Annotated

from litestar import Response, delete, get, patch, post
from litestar.params import FromPath, QueryParameter

from longboat.server.routes.request import (
    After,
    HttpRequest,
    Limit,
    W,
    accepted,
    key_of,
    read_body,
    readable_of,
    takes,
    workspace_of,
)
from longboat.wire.listings import Archived, SessionOrder
from longboat.wire.models import Accepted, MessagePage, Session, SessionPage
from longboat.wire.requests import CreateSession, RedoRevert, Revert, RunShell, UpdateSession
from longboat.wire.review import Reverted
from longboat.wire.workspace_state import Todos, Undone

ONE = W + "/sessions/{session_id:str}"


Search = Annotated[str, QueryParameter(name="q", max_length=200, description="Words of the title, in order.")]
Top = Annotated[bool, QueryParameter(description="Leave out the sessions of sub-agents.")]
Before = Annotated[
    str | None,
    QueryParameter(
        description="Page backwards: empty for the end of the transcript, then `next` of the previous page.",
        schema_extra={"pattern": "^[0-9]{0,18}$"},
    ),
]


WithArchived = Annotated[
    Archived, QueryParameter(description="Archived sessions: `false` leaves them out, `only` lists nothing else.")
]
Order = Annotated[
    SessionOrder, QueryParameter(description="`pinned`: pinned sessions first; `newest`: newest first, pinned or not.")
]


@get(W + "/sessions")
async def list_sessions(
    request: HttpRequest,
    *,
    limit: Limit = 100,
    after: After = None,
    search: Search = "",
    top: Top = False,
    archived: WithArchived = Archived.LEFT_OUT,
    order: Order = SessionOrder.PINNED,
) -> SessionPage:
    """The sessions of a workspace: pinned ones first, then the others, each newest first."""
    ledger = (await readable_of(request)).ledger
    return await ledger.sessions(limit=limit, after=after, search=search, top=top, archived=archived, order=order)


@post(W + "/sessions", opt=takes(CreateSession, also=(200, 409), optional=True))
async def create_session(request: HttpRequest) -> Response[Session]:
    """Create a session. Without a body it has no title. With your own `session_id` it is safe to repeat: 201 if the
    session is new, 200 with its current state if it already exists."""
    wanted = await read_body(request, CreateSession)
    session, new = await (await workspace_of(request)).open_session(wanted)
    return Response(session, status_code=201 if new else 200)


@get(ONE)
async def get_session(request: HttpRequest, session_id: FromPath[str]) -> Session:
    """One session."""
    return await (await readable_of(request)).session(session_id)


@patch(ONE, opt=takes(UpdateSession))
async def update_session(request: HttpRequest, session_id: FromPath[str]) -> Session:
    """Rename, pin or archive a session. What the body leaves out stays as it is."""
    wanted = await read_body(request, UpdateSession)
    return await (await workspace_of(request)).update_session(session_id, wanted)


@delete(ONE)
async def delete_session(request: HttpRequest, session_id: FromPath[str]) -> None:
    """Cancel the runs of a session, then delete it and the sessions of its sub-agents."""
    await (await workspace_of(request)).delete_session(session_id)


@get(ONE + "/messages")
async def list_messages(
    request: HttpRequest,
    session_id: FromPath[str],
    limit: Limit = 100,
    after: After = None,
    before: Before = None,
) -> MessagePage:
    """The transcript, oldest first. With `before` it is paged from the end, each page oldest first."""
    return await (await readable_of(request)).messages(session_id, limit=limit, after=after, before=before)


@get(ONE + "/todos")
async def get_todos(request: HttpRequest, session_id: FromPath[str]) -> Todos:
    """The plan of a session, as in the newest `todo` event."""
    return await (await readable_of(request)).todos(session_id)


@post(ONE + "/shell", status_code=202, opt=takes(RunShell))
async def run_shell(request: HttpRequest, session_id: FromPath[str]) -> Response[Accepted]:
    """Run a shell command in the workspace as a person. This is a run like any other: the call and its output are in
    the transcript, and the model reads them with the next prompt. It cannot be edited."""
    wanted = await read_body(request, RunShell)
    workspace = await workspace_of(request)
    return accepted(workspace.id, await workspace.run_shell(session_id, wanted, key=key_of(request)))


@post(ONE + "/undo", status_code=202)
async def undo_turn(request: HttpRequest, session_id: FromPath[str]) -> Undone:
    """Undo the newest turn: its file changes and its messages."""
    return await (await workspace_of(request)).undo_turn(session_id)


@post(ONE + "/redo", status_code=202)
async def redo_turn(request: HttpRequest, session_id: FromPath[str]) -> Undone:
    """Redo what was undone last, unless there has been a prompt since."""
    return await (await workspace_of(request)).redo_turn(session_id)


@post(ONE + "/revert", status_code=200, opt=takes(Revert, also=(409,)))
async def revert_change(request: HttpRequest, session_id: FromPath[str]) -> Reverted:
    """Undo what is left of the session's changes to a file, or some of its hunks. This is a new change, made by a
    person: the transcript stays, and Longboat tells the model with the next prompt. If the file has changed since you
    looked at it, nothing is undone: 409 `revert_conflict`."""
    wanted = await read_body(request, Revert)
    return await (await workspace_of(request)).revert(session_id, wanted)


@post(ONE + "/reverts/{revert_id:str}/redo", status_code=200, opt=takes(RedoRevert, also=(409,), optional=True))
async def redo_revert(request: HttpRequest, session_id: FromPath[str], revert_id: FromPath[str]) -> Reverted:
    """Redo what a person undid in a file. Like the undo, this is a new change, made by a person. Text written into the
    file since then stays. If the change no longer fits into the file, or someone has already redone it, nothing
    changes: 409 `redo_conflict`."""
    wanted = await read_body(request, RedoRevert)
    return await (await workspace_of(request)).redo_revert(session_id, revert_id, wanted.client_id)


HANDLERS = [
    list_sessions,
    create_session,
    get_session,
    update_session,
    delete_session,
    list_messages,
    get_todos,
    run_shell,
    undo_turn,
    redo_turn,
    revert_change,
    redo_revert,
]
