"""The inbox over all workspaces, its stream, and push subscriptions. None of them opens a workspace."""

from typing import Annotated

from litestar import delete, get, post
from litestar.params import FromQuery, QueryParameter
from litestar.types import ASGIApp

from longboat.server.routes.request import ClientId, HttpRequest, Limit, app_of, client_id_of, needs, read_body, takes
from longboat.server.routes.workspaces import EventStream
from longboat.wire.inbox import InboxPage, MarkSeen, PushInfo, Subscribe

Before = Annotated[
    str | None, QueryParameter(description="`next` of the previous page.", schema_extra={"pattern": "^[0-9]{1,18}$"})
]

Endpoint = Annotated[
    str, QueryParameter(min_length=1, max_length=2_048, description="The endpoint of the subscription.")
]


@get("/v1/inbox", opt=needs("client_id"))
async def get_inbox(
    request: HttpRequest, client_id: ClientId = None, limit: Limit = 50, before: Before = None
) -> InboxPage:
    """What waits for an answer and which runs have ended, in all workspaces, newest first: pending permissions and
    questions, and runs that finished or failed in the last seven days. Answer permissions and questions with the routes
    of their workspace. Opens no workspace."""
    return await app_of(request).inbox.page(client_id_of(client_id), before=before, limit=limit)


@post("/v1/inbox/seen", status_code=204, opt=takes(MarkSeen))
async def mark_seen(request: HttpRequest) -> None:
    """Remember what a person has seen: for all clients whose client_id begins with the same name, the part before the
    first colon."""
    await app_of(request).inbox.mark_seen(await read_body(request, MarkSeen))


@get("/v1/inbox/events", media_type="text/event-stream", opt=needs("client_id"))
async def stream_inbox(request: HttpRequest, client_id: ClientId = None, answers: FromQuery[bool] = False) -> ASGIApp:
    """The inbox as a stream (server-sent events): `inbox` with its first page, then an `inbox_change` whenever it
    changes. It cannot be resumed: a new connection begins with a new `inbox`. Opens no workspace, keeps none open.
    `answers` says that someone at this client can answer the questions of all workspaces."""
    return EventStream(app_of(request).inbox.stream(client_id_of(client_id), answers=answers))


@get("/v1/push")
async def get_push(request: HttpRequest) -> PushInfo:
    """The key that a browser needs to subscribe to Web Push notifications. Created at the first request."""
    return await app_of(request).push.info()


@post("/v1/push/subscriptions", status_code=204, opt=takes(Subscribe))
async def subscribe_push(request: HttpRequest) -> None:
    """Send notifications to a browser: of everything that waits for an answer, and of the end of this person's runs.
    Safe to repeat. Its endpoint must be public and use https, unless `server.push.allowed_networks` allows more."""
    await app_of(request).push.subscribe(await read_body(request, Subscribe))


@delete("/v1/push/subscriptions", opt=needs("endpoint"))
async def unsubscribe_push(request: HttpRequest, endpoint: Endpoint) -> None:
    """Stop sending notifications to a browser."""
    await app_of(request).push.unsubscribe(endpoint)


HANDLERS = [get_inbox, mark_seen, stream_inbox, get_push, subscribe_push, unsubscribe_push]
