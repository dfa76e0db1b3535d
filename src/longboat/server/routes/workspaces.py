"""Workspaces, the clients that keep them open, and their event streams."""

from litestar import Response, delete, get, post
from litestar.params import FromPath, FromQuery
from litestar.types import ASGIApp

from longboat.runtime.workspace.client_environment import check_environ
from longboat.server.bodies import read_body
from longboat.server.events import EventStream
from longboat.server.routes.request import ClientId, HttpRequest, W, app_of, client_id_of, needs, takes, workspace_of
from longboat.wire.ids import check_own_id
from longboat.wire.models import Workspace, WorkspacePage
from longboat.wire.requests import CreateWorkspace


@get("/v1/workspaces")
async def list_workspaces(request: HttpRequest) -> WorkspacePage:
    """All workspaces that were ever opened on this server."""
    return await app_of(request).workspaces()


@post("/v1/workspaces", opt=takes(CreateWorkspace, also=(200,)))
async def join_workspace(request: HttpRequest) -> Response[Workspace]:
    """Create or join the workspace of a directory: 201 if it is new, 200 if it exists. Safe to repeat. `env` is the
    environment for the commands of this client's runs: it stays in memory and is never shown to anyone."""
    wanted = await read_body(request, CreateWorkspace)
    if wanted.client_id is not None:
        check_own_id(wanted.client_id, field="client_id")
    if wanted.env is not None:
        check_environ(wanted.env)
    workspace, created = await app_of(request).join(wanted.path, wanted.client_id, wanted.env)
    return Response(await workspace.describe(), status_code=201 if created else 200)


@get(W)
async def get_workspace(request: HttpRequest) -> Workspace:
    """One workspace and the clients attached to it."""
    return await (await workspace_of(request)).describe()


@delete(W, status_code=200, opt=needs("client_id"))
async def release_workspace(request: HttpRequest, client_id: ClientId = None) -> Workspace:
    """Release this client's claim. The workspace closes once no claim and no unfinished run is left."""
    name = client_id_of(client_id)
    workspace = await workspace_of(request)
    await workspace.presence.release(name)
    return await workspace.describe()


@delete("/v1/clients/{client_id:str}")
async def drop_client(request: HttpRequest, client_id: FromPath[str]) -> None:
    """Release all claims of a client."""
    await app_of(request).drop_client(client_id_of(client_id))


@get(W + "/events", media_type="text/event-stream", opt=needs("client_id"))
async def stream_events(
    request: HttpRequest,
    client_id: ClientId = None,
    session_id: FromQuery[str | None] = None,
    after: FromQuery[str | None] = None,
) -> ASGIApp:
    """The event stream (server-sent events). `Last-Event-ID` or `after` resumes exactly there; without them a
    snapshot comes first. `session_id` leaves out the events of other sessions."""
    name = client_id_of(client_id)
    workspace = await workspace_of(request)
    cursor = request.headers.get("last-event-id") or after or None
    return EventStream(workspace.stream(client_id=name, after=cursor, session_id=session_id))


HANDLERS = [list_workspaces, join_workspace, get_workspace, release_workspace, drop_client, stream_events]
