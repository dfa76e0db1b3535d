"""Reading a request body: JSON of a known shape, bounded in size. Must not know what is done with it."""

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


async def read_body(request: Request[Any, Any, Any], shape: type[Shape], *, empty: bytes = b"") -> Shape:
    """The body as `shape`. `empty` is what no body at all stands for."""
    _check_type(request.headers.get("content-type", ""))
    raw = await _read(request) or empty
    if not raw:
        raise BadInput("The body is empty: send a JSON object.", code="bad_json")
    try:
        decoded: Shape = _decoder(shape).decode(raw)
    except msgspec.ValidationError as error:
        raise bad_body(error, shape) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"The body is not JSON: {error}.", code="bad_json") from None
    return decoded


async def read_raw(request: Request[Any, Any, Any]) -> bytes:
    """The body of a JSON document that somebody else reads."""
    _check_type(request.headers.get("content-type", ""))
    return await _read(request)


async def _read(request: Request[Any, Any, Any]) -> bytes:
    try:
        return await request.body()
    except RequestEntityTooLarge:
        limit = (request.route_handler.resolve_request_max_body_size() or 0) >> 20
        raise BodyTooLarge(f"The body is over {limit} MB, the limit: server.max_body_mb in longboat.json.") from None
    except InternalServerException:
        # Litestar's word for a client that hung up: no fault of the server, so no 500 in its log.
        raise BadInput("The connection closed before the whole body came.", code="body_incomplete") from None


def _check_type(content_type: str) -> None:
    """No type is taken for JSON. Another is a mistake, or a form on a page somewhere: it is refused."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise BadInput(
            f"The body must be application/json (got {kind[:100]!r}): set Content-Type, or use `curl --json`.",
            code="bad_content_type",
        )
