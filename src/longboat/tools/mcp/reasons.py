"""Why a server cannot be used, for people and models, and whether to retry automatically."""

from dataclasses import dataclass

import httpx2
import mcp_types as types
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from longboat.errors import ConfigInvalid
from longboat.tools.mcp.connection import ServerGone
from longboat.tools.mcp.settings import Target
from longboat.tools.mcp.transport import TransportState

_LONGEST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    text: str
    may_pass: bool
    """Whether the same try can succeed a moment later."""


def reason_of(error: BaseException, target: Target, witness: TransportState) -> Reason:
    """Why a connection failed or ended."""
    error = _leaf(error)
    text, may_pass = _connecting(error, target, witness)
    if witness.last_words:
        text = f"{text}; it wrote: {witness.last_words}"
    return Reason(text=target.without_secrets(text)[:_LONGEST], may_pass=may_pass)


def complaint_of(error: BaseException, target: Target) -> str:
    """What is wrong with an answer, or with the request."""
    match _leaf(error):
        case MCPError(code=types.REQUEST_TIMEOUT):
            text = f"it did not answer within {target.timeout_s:g} s (mcp.{target.name}.timeout_s)"
        case MCPError() as refused:
            text = refused.message or "it refused without giving a reason"
        case ValidationError() as broken:
            text = _broken(broken)
        case other:
            text = str(other) or type(other).__name__
    return target.without_secrets(text)[:_LONGEST]


def _leaf(error: BaseException) -> BaseException:
    """The one that matters: the SDK's tasks fail in groups within groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _connecting(error: BaseException, target: Target, witness: TransportState) -> tuple[str, bool]:
    may_pass = True
    match error:
        case ConfigInvalid():
            text, may_pass = error.message, False
        case OAuthFlowError() | OAuthRegistrationError() | OAuthTokenError():
            text, may_pass = f"the login failed: {error}", False
        case ServerGone():
            text = "it ended"
        case MCPError() | httpx2.HTTPStatusError() if witness.status:
            text, may_pass = _refused(witness.status, target), witness.status not in (401, 403, 404)
        case httpx2.TransportError():
            text = f"it cannot be reached: {str(error) or type(error).__name__}"
        case MCPError(message="Connection closed"):
            text = "it exited before it was ready"
        case ValidationError():
            text, may_pass = _broken(error), False
        case OSError() if not isinstance(error, TimeoutError):
            text, may_pass = f"it cannot be started: {error.strerror or error}", False
        case _:
            text = str(error) or type(error).__name__
    return text, may_pass


def _broken(error: ValidationError) -> str:
    return f"its answer does not follow the protocol: {error.errors()[0]['msg']}"


def _refused(status: int, target: Target) -> str:
    match status:
        case 401 | 403:
            hint = f": add the headers it needs, such as Authorization, to mcp.{target.name}.headers"
        case 404:
            hint = f": check mcp.{target.name}.url"
        case _:
            hint = ""
    return f"it answered with HTTP {status}{hint}"
