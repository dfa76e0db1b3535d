"""Shared by all handlers: the runtime of a request, its body (JSON of a known type,
limited in size), client ids, and paging."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, cast

import msgspec
from litestar import Request, Response
from litestar.exceptions import InternalServerException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.params import QueryParameter
from litestar.types import Receive

from longboat.errors import BadInput, BodyTooLarge, OwnerUnreachable
from longboat.runtime.ownership import OBSERVED
from longboat.server.errors import bad_body
from longboat.tasks import Tasks
from longboat.wire.ids import check_own_id
from longboat.wire.models import Accepted

if TYPE_CHECKING:
    from longboat.runtime.app import App
    from longboat.runtime.workspace.observed import ObservedWorkspace
    from longboat.runtime.workspace.workspace import Workspace


HttpRequest: TypeAlias = Request[Any, Any, Any]
T = TypeVar("T")

W = "/v1/workspaces/{workspace_id:str}"
S = W + "/agent/sessions/{session_id:str}"

Limit = Annotated[int, QueryParameter(ge=1, le=500, description="Maximum number of items.")]
ClientId = Annotated[str | None, QueryParameter(description="The client's name; required here.")]
After = Annotated[
    str | None, QueryParameter(description="`next` of the previous page.", schema_extra={"pattern": "^[0-9]{1,18}$"})
]


def app_of(request: HttpRequest) -> "App":
    return cast("App", request.app.state["app"])


async def workspace_of(request: HttpRequest) -> "Workspace":
    """The workspace in the path; opened again if it was closed."""
    if (owner := _owner_out_of_reach(request)) is not None:
        raise OwnerUnreachable(owner)
    return await app_of(request).workspace(request.path_params["workspace_id"])


async def readable_of(request: HttpRequest) -> "Workspace | ObservedWorkspace":
    """The same for requests that only read what the store has: they are answered even if another node works on the
    workspace and cannot be reached."""
    if _owner_out_of_reach(request) is not None:
        return await app_of(request).observe(request.path_params["workspace_id"])
    return await workspace_of(request)


def _owner_out_of_reach(request: HttpRequest) -> str | None:
    return cast("str | None", cast("dict[str, Any]", request.scope).get(OBSERVED))


def key_of(request: HttpRequest) -> str | None:
    """By which a repeated request is recognized."""
    return request.headers.get("idempotency-key")


def name_of(client_id: str | None) -> str | None:
    """The client_id, where it is optional."""
    return None if client_id is None else client_id_of(client_id)


def client_id_of(value: str | None) -> str:
    """The client_id, where it is required."""
    if value is None:
        raise BadInput("client_id is missing: add ?client_id=… with your name.", code="bad_client_id")
    return check_own_id(value, field="client_id")


def accepted(workspace_id: str, answer: Accepted) -> Response[Accepted]:
    """The response to any request that became a run, with its location."""
    place = f"/v1/workspaces/{workspace_id}/runs/{answer.run_id}"
    return Response(answer, status_code=202, headers={"location": place})


def takes(shape: type[msgspec.Struct], *, also: tuple[int, ...] = (), optional: bool = False) -> dict[str, Any]:
    """For a handler's `opt`: the shape of the body, and whether it may be omitted, which means `{}`. `also`: further
    statuses for the API description."""
    return {"body": shape, "body_optional": optional, "also": also}


def needs(*names: str) -> dict[str, Any]:
    """For a handler's `opt`: its required query parameters."""
    return {"needs": names}


async def wait_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(request: HttpRequest, reading: Coroutine[Any, Any, T]) -> T:
    """The result of work that only reads, and may take long. It ends when the client leaves."""
    async with Tasks() as tasks:
        work = tasks.spawn(reading, name="read for a client", awaited=True)
        leaving = tasks.spawn(wait_disconnected(request.receive), name="wait for the client to leave")
        try:
            await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
            await asyncio.wait((work,))
    if work.cancelled():
        raise BadInput("The connection closed before there was an answer.")  # no one reads it
    return work.result()


Shape = TypeVar("Shape", bound=msgspec.Struct)

_decoder = cache(msgspec.json.Decoder)


async def read_body(request: Request[Any, Any, Any], shape: type[Shape]) -> Shape:
    """The body as `shape`. No body counts as `{}` if the route allows that."""
    _check_type(request.headers.get("content-type", ""))
    raw = await read_bytes(request)
    if not raw and request.route_handler.opt["body_optional"]:
        raw = b"{}"
    if not raw:
        raise BadInput("The body is empty. Send a JSON object.", code="bad_json")
    try:
        decoded: Shape = _decoder(shape).decode(raw)
    except msgspec.ValidationError as error:
        raise bad_body(error, shape) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"The body is not JSON: {error}.", code="bad_json") from None
    return decoded


async def read_document(request: Request[Any, Any, Any], limit_mb: int) -> bytearray:
    """A raw body for another parser, which may be larger than others. It is in memory once, without a copy."""
    _check_type(request.headers.get("content-type", ""))
    _check_size(request.content_length or 0, limit_mb)
    taken = bytearray()
    with _hung_up():
        async for piece in request.stream():
            taken += piece
            _check_size(len(taken), limit_mb)
    return taken


def _check_size(size: int, limit_mb: int) -> None:
    if size > limit_mb << 20:
        raise BodyTooLarge(f"The document is larger than {limit_mb} MB (server.max_import_mb in longboat.json).")


async def read_bytes(request: Request[Any, Any, Any]) -> bytes:
    """The body as it came, at most `server.max_body_mb`."""
    try:
        with _hung_up():
            return await request.body()
    except RequestEntityTooLarge:
        limit = (request.route_handler.resolve_request_max_body_size() or 0) >> 20
        raise BodyTooLarge(f"The body is larger than {limit} MB (server.max_body_mb in longboat.json).") from None


@contextmanager
def _hung_up() -> Iterator[None]:
    """A client that disconnects is not a server error, so there is no 500 in the log."""
    try:
        yield
    except InternalServerException:
        raise BadInput(
            "The connection closed before the whole body arrived. Send it again.", code="body_incomplete"
        ) from None


def _check_type(content_type: str) -> None:
    """A missing type counts as JSON. Any other type is a mistake, or a form on a foreign page: it is refused."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise BadInput(
            f"The body must be application/json (got {kind[:100]!r}). Set Content-Type, or use `curl --json`.",
            code="bad_content_type",
        )
