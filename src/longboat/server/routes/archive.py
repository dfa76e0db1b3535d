"""Fork, export, import and summarize sessions."""

from typing import Annotated, Literal, cast

from litestar import Response, get, post
from litestar.params import FromPath, QueryParameter

from longboat.server.bodies import read_body, read_document
from longboat.server.routes.request import HttpRequest, W, accepted, app_of, takes, workspace_of
from longboat.server.routes.sessions import ONE
from longboat.wire.archive import SessionExport
from longboat.wire.models import Accepted, Session
from longboat.wire.requests import ForkSession, Summarize

Style = Annotated[Literal["json", "markdown"], QueryParameter(name="format", description="json can be imported again.")]


@post(ONE + "/fork", status_code=202, opt=takes(ForkSession, optional=True))
async def fork_session(request: HttpRequest, session_id: FromPath[str]) -> Session:
    """Fork a session: a new session with the same transcript, plan and read files, up to `message_id` if given.
    Granted permissions and unfinished turns are not copied."""
    wanted = await read_body(request, ForkSession)
    return await (await workspace_of(request)).archive.fork(session_id, wanted.message_id)


@get(ONE + "/export", opt={"media_types": ("text/markdown",)})
async def export_session(
    request: HttpRequest, session_id: FromPath[str], style: Style = "json"
) -> Response[SessionExport]:
    """Export the finished part of a session as one document: JSON that can be imported, or Markdown for people."""
    archive = (await workspace_of(request)).archive
    if style == "json":
        page = Response(await archive.document(session_id), media_type="application/json")
    else:
        page = Response((await archive.markdown(session_id)).encode(), media_type="text/markdown")
    return cast("Response[SessionExport]", page)


@post(W + "/sessions/import", opt=takes(SessionExport), request_max_body_size=None)
async def import_session(request: HttpRequest) -> Session:
    """Import a session from an export, with new ids and its sub-agents, all or nothing. Its files are not written.
    The document may be larger than other bodies: `server.max_import_mb`."""
    workspace = await workspace_of(request)
    return await workspace.archive.take(await read_document(request, app_of(request).settings.server.max_import_mb))


@post(ONE + "/summarize", status_code=202, opt=takes(Summarize, optional=True))
async def summarize_session(request: HttpRequest, session_id: FromPath[str]) -> Response[Accepted]:
    """Summarize the conversation; the model then continues from the summary. This is a run like any other: it can be
    queued and canceled, and ends with one terminal event, whose text is the summary. It cannot be edited."""
    wanted = await read_body(request, Summarize)
    workspace = await workspace_of(request)
    return accepted(workspace.id, await workspace.summarize_session(session_id, wanted))


HANDLERS = [fork_session, export_session, import_session, summarize_session]
