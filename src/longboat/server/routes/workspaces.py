"""Workspaces, the clients that keep them open, and their event streams.

A stream does no work per frame: a chunk contains the frames that were ready, or a slice of a large one, and is sent at
once.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from litestar import Response, delete, get, post
from litestar.params import FromPath, FromQuery
from litestar.types import ASGIApp, Receive, Scope, Send

from longboat.errors import BadInput, StoreUnavailable
from longboat.runtime.workspace.client_environment import check_environ
from longboat.server.routes.request import (
    ClientId,
    HttpRequest,
    W,
    app_of,
    client_id_of,
    needs,
    read_body,
    readable_of,
    takes,
    wait_disconnected,
    workspace_of,
)
from longboat.tasks import Tasks
from longboat.wire.ids import check_own_id
from longboat.wire.models import Workspace, WorkspacePage
from longboat.wire.requests import CreateWorkspace, MoveWorkspace

logger = logging.getLogger(__name__)

_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]


class EventStream:
    """An ASGI application for one connection. If the source cannot be opened, it answers with the error."""

    def __init__(self, source: AbstractAsyncContextManager[AsyncIterator[bytes]]) -> None:
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._source as chunks, Tasks() as tasks:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            sending = tasks.spawn(_send_all(chunks, send), name="send events", awaited=True)
            leaving = tasks.spawn(wait_disconnected(receive), name="wait for the client to leave")
            try:
                await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            finally:
                # The source must not be left while it is still being read.
                await _end(leaving, sending)
        if not sending.cancelled():
            sending.result()


async def _send_all(chunks: AsyncIterator[bytes], send: Send) -> None:
    try:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            del chunk  # a stream may be silent for days
    except StoreUnavailable as error:
        logger.debug("a stream ends, and can be continued: %s", error)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


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
    app = app_of(request)
    if app.ownership.alone and wanted.node not in (None, app.settings.node):  # otherwise the door has looked
        raise BadInput(f"There is no node {wanted.node!r} here. `longboat nodes` lists the nodes.", code="unknown_node")
    workspace, created = await app.join(wanted.path, wanted.client_id, wanted.env, node=wanted.node)
    return Response(await workspace.describe(), status_code=201 if created else 200)


@get(W)
async def get_workspace(request: HttpRequest) -> Workspace:
    """One workspace and the clients attached to it."""
    return await (await readable_of(request)).describe()


@post(W + "/move", status_code=200, opt=takes(MoveWorkspace))
async def move_workspace(request: HttpRequest, workspace_id: FromPath[str]) -> Workspace:
    """Move a workspace to another node. All nodes must share its directory. Streams pause and continue; queued runs
    start there. While a run is active, this is refused unless you pass `force`. Safe to repeat."""
    return await app_of(request).move(workspace_id, await read_body(request, MoveWorkspace))


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
    answers: FromQuery[bool] = False,
) -> ASGIApp:
    """The event stream (server-sent events). `Last-Event-ID` or `after` resumes exactly there; without them a
    snapshot comes first. `session_id` leaves out the events of other sessions. `answers` says that someone at this
    client can answer questions; if no attached client says so, the agent decides for itself, and a turn ends at its
    limits."""
    name = client_id_of(client_id)
    workspace = await readable_of(request)
    cursor = request.headers.get("last-event-id") or after or None
    return EventStream(workspace.stream(client_id=name, after=cursor, session_id=session_id, answers=answers))


HANDLERS = [
    list_workspaces,
    join_workspace,
    get_workspace,
    move_workspace,
    release_workspace,
    drop_client,
    stream_events,
]
