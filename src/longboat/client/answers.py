"""What the server's refusals mean to a Python caller: `{code, message}` becomes the error class of that code.

Pure. A body that is not such an object is never shown (R5): it may come from a proxy, or from anything else.
"""

from http import HTTPStatus

import msgspec

from longboat import errors
from longboat.wire.models import ErrorBody

FAMILIES: dict[int, type[errors.LongboatError]] = {
    400: errors.BadInput,
    401: errors.Unauthorized,
    403: errors.ForeignOrigin,
    404: errors.NotFound,
    409: errors.Conflict,
    411: errors.LengthRequired,
    413: errors.BodyTooLarge,
    421: errors.ForeignHost,
    429: errors.TooManyAttempts,
    503: errors.Unavailable,
}
"""The class for a status; the code selects the subclass."""

_GATEWAY = {502, 503, 504}
"""What a reverse proxy answers in place of a server that is away."""


def _codes(family: type[errors.LongboatError]) -> dict[str, type[errors.LongboatError]]:
    found = {family.code: family}
    for child in family.__subclasses__():
        found |= _codes(child)
    return found


_BY_CODE = {code: cls for family in FAMILIES.values() for code, cls in _codes(family).items()}


def error_from(status: int, content: bytes) -> errors.LongboatError:
    """The error that an answer other than 2xx stands for."""
    try:
        body = msgspec.json.decode(content, type=ErrorBody)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        body = ErrorBody(code="", message="")
    if not body.code or not body.message:
        if status in _GATEWAY:
            return errors.ServerUnreachable(f"A proxy answered instead of the Longboat server: {_status_line(status)}.")
        body = ErrorBody(code=f"http_{status}", message=f"The server answered {_status_line(status)}.")
    cls = _BY_CODE.get(body.code) or FAMILIES.get(status, errors.LongboatError)
    # Subclasses compose their message from parts; here it is already composed, so only the base is initialised.
    error = cls.__new__(cls, body.message)
    errors.LongboatError.__init__(error, body.message, code=body.code)
    return error


def untrusted(address: object) -> errors.ServerUnreachable:
    """Of a server whose certificate no authority vouches for that is known here."""
    return errors.ServerUnreachable(
        f"The certificate of the server at {address} is not trusted. If your own authority issued it, set "
        "SSL_CERT_FILE=/path/to/ca.pem.",
        code="certificate_not_trusted",
    )


def may_pass(status: int, error: errors.LongboatError) -> bool:
    """Whether the same request may well succeed in a moment: a server that restarts, a workspace that reopens."""
    return status in _GATEWAY or isinstance(error, errors.WorkspaceClosing)


def _status_line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
