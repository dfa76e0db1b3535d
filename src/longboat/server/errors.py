"""The table from error class to status, and the `{code, message}` body of every error.

Handles Litestar's errors as well as ours. An unexpected error becomes a 500 without details, and is logged with its
traceback.
"""

import enum
import logging
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from longboat import errors
from longboat.wire.models import ErrorBody

log = logging.getLogger(__name__)

STATUS: dict[type[errors.LongboatError], int] = {
    errors.BadInput: 400,
    errors.Unauthorized: 401,
    errors.ForeignOrigin: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.LengthRequired: 411,
    errors.BodyTooLarge: 413,
    errors.ForeignHost: 421,
    errors.TooManyAttempts: 429,
    errors.Unavailable: 503,
}
"""A class that is not listed has the status of its nearest base class."""

JSON_HEADERS = {"content-type": "application/json", "x-content-type-options": "nosniff"}

OWN_CODES = {
    400: "bad_input",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
}
"""The codes of requests that Litestar refuses before we see them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """How an error is answered."""

    status: int
    code: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> ErrorBody:
        return ErrorBody(code=self.code, message=self.message)


_INTERNAL = Refusal(
    status=500, code="internal_error", message="The server failed on this request. Its log says why. Try again."
)


def refusal(error: Exception) -> Refusal:
    """The answer to one of our errors. An error without a status is a bug; its text stays in the log."""
    for cls in type(error).__mro__:
        if status := STATUS.get(cls):
            assert isinstance(error, errors.LongboatError)
            return Refusal(status=status, code=error.code, message=error.message, headers=_headers(error))
    return _INTERNAL


def _headers(error: errors.LongboatError) -> dict[str, str]:
    match error:
        case errors.Unauthorized():
            return {"www-authenticate": "Bearer"}
        case errors.TooManyAttempts():
            return {"retry-after": str(error.retry_after_s)}
    return {}


def answer_error(request: Request[Any, Any, Any], error: Exception) -> Response[ErrorBody]:
    """The exception handler of all routes."""
    found = _http_refusal(request, error) if isinstance(error, HTTPException) else refusal(error)
    if found.status >= 500 and not isinstance(error, errors.Unavailable):
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    headers = {"x-content-type-options": "nosniff", **found.headers}
    return Response(found.body, status_code=found.status, headers=headers, media_type="application/json")


def _http_refusal(request: Request[Any, Any, Any], error: HTTPException) -> Refusal:
    status = error.status_code
    if status not in OWN_CODES:
        return _INTERNAL
    return Refusal(
        status=status,
        code=OWN_CODES[status],
        message=_http_message(request, error),
        headers=error.headers or {},
    )


def _http_message(request: Request[Any, Any, Any], error: HTTPException) -> str:
    where = f"{request.method} {request.url.path}"
    match error.status_code:
        case 404:
            return f"There is no {where}. GET /v1/docs lists all routes."
        case 405:
            return f"There is no {where}. This path allows {(error.headers or {}).get('allow', 'other methods')}."
    if isinstance(error, ValidationException) and isinstance(error.extra, list):
        return "; ".join(_bad_parameter(request, item) for item in error.extra) + "."
    return error.detail


def _bad_parameter(request: Request[Any, Any, Any], item: Mapping[str, str]) -> str:
    key = item.get("key", "request")
    definition = request.route_handler.parsed_fn_signature.parameters.get(key)
    name = getattr(definition and definition.kwarg_definition, "name", None) or key
    return f"{name}: {item['message']}" + _choices(definition.annotation if definition else None)


def bad_body(error: msgspec.ValidationError, shape: type[msgspec.Struct]) -> errors.BadInput:
    """The error for a JSON body that does not have this shape: names the field and what was expected."""
    text, _, place = str(error).partition(" - at `$")
    path = place.removesuffix("`").lstrip(".") or "body"
    if text.startswith("Invalid enum value"):
        top = path.partition(".")[0].partition("[")[0]
        text += _choices(typing.get_type_hints(shape).get(top))
    elif text.startswith("Object contains unknown field") and path == "body":
        text += f"; known fields: {', '.join(item.encode_name for item in msgspec.structs.fields(shape))}"
    return errors.BadInput(f"{path}: {text}.")


def _choices(annotation: Any) -> str:
    names = sorted(set(_allowed(annotation)))
    return f"; expected one of {', '.join(names)}" if names else ""


def _allowed(annotation: Any) -> Iterable[str]:
    """The values that an enum or a literal, however wrapped, allows."""
    if isinstance(annotation, enum.EnumMeta):
        yield from (str(member.value) for member in typing.cast(type[enum.Enum], annotation))
    elif typing.get_origin(annotation) is typing.Literal:
        yield from map(str, typing.get_args(annotation))
    else:
        for inner in typing.get_args(annotation):
            yield from _allowed(inner)
