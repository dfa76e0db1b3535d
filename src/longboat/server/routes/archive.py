"""Sessions as a whole: fork, export, import, summarize."""

from typing import Annotated, Literal, cast

from litestar import Response, get, post
from litestar.params import FromPath, QueryParameter

from longboat.server.routes.request import (
    HttpRequest,
    W,
    accepted,
    app_of,
    key_of,
    read_body,
    read_document,
    takes,
    workspace_of,
)
from longboat.server.routes.sessions import ONE
from longboat.wire.archive import SessionExport
from longboat.wire.models import Accepted, Session
from longboat.wire.requests import ForkSession, Summarize

Style = Annotated[Literal["json", "markdown"], QueryParameter(name="format", description="Only json can be imported.")]


@post(ONE + "/fork", status_code=202, opt=takes(ForkSession, optional=True))
async def fork_session(request: HttpRequest, session_id: FromPath[str]) -> Session:
    """Create a session with the same transcript, plan and read files, up to `message_id` if given. Granted permissions
    are not copied, and neither is a running turn."""
    wanted = await read_body(request, ForkSession)
    return await (await workspace_of(request)).archive.fork(session_id, wanted.message_id)


@get(ONE + "/export", opt={"media_types": ("text/markdown",)})
async def export_session(
    request: HttpRequest, session_id: FromPath[str], style: Style = "json"
) -> Response[SessionExport]:
    """Export the finished turns of a session: as JSON that can be imported, or as Markdown for people."""
    archive = (await workspace_of(request)).archive
    if style == "json":
        page = Response(await archive.document(session_id), media_type="application/json")
    else:
        page = Response((await archive.markdown(session_id)).encode(), media_type="text/markdown")
    return cast("Response[SessionExport]", page)


@post(W + "/sessions/import", opt=takes(SessionExport), request_max_body_size=None)
async def import_session(request: HttpRequest) -> Session:
    """Create a session from an export, with new ids and with its sub-agents: all of it or nothing. No files are
    written. The document may be larger than other bodies: see `server.max_import_mb`."""
    workspace = await workspace_of(request)
    return await workspace.archive.take(await read_document(request, app_of(request).settings.server.max_import_mb))


@post(ONE + "/summarize", status_code=202, opt=takes(Summarize, optional=True))
async def summarize_session(request: HttpRequest, session_id: FromPath[str]) -> Response[Accepted]:
    """Summarize the conversation; the model continues from the summary. This is a run like any other: it is queued,
    can be canceled, and ends with one terminal event, whose text is the summary. It cannot be edited."""
    wanted = await read_body(request, Summarize)
    workspace = await workspace_of(request)
    return accepted(workspace.id, await workspace.summarize_session(session_id, wanted, key=key_of(request)))


HANDLERS = [fork_session, export_session, import_session, summarize_session]
