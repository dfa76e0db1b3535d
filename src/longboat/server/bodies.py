"""Reads a request body: JSON of a known type, limited in size. Must not know how it is used."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import msgspec
from litestar import Request
from litestar.exceptions import InternalServerException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge

from longboat.errors import BadInput, BodyTooLarge
from longboat.server.errors import bad_body

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
        raise BadInput("The connection closed before the whole body arrived.", code="body_incomplete") from None


def _check_type(content_type: str) -> None:
    """A missing type counts as JSON. Any other type is a mistake, or a form on a foreign page: it is refused."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise BadInput(
            f"The body must be application/json (got {kind[:100]!r}). Set Content-Type, or use `curl --json`.",
            code="bad_content_type",
        )
