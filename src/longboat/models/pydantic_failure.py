"""Errors of pydantic-ai and the SDKs below it as `ModelError`: what happened, what to do, whether to retry.

Import it through `pydantic_adapter.py` only: the library is heavy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from pydantic_ai import exceptions as theirs

from longboat.errors import ModelError
from longboat.models.error_quotes import quote_error, secrets_of, with_advice
from longboat.models.http_client import ServerSilent
from longboat.models.pydantic_adapter import Endpoint
from longboat.models.silence import silent_error

_MAX_DETAIL = 1000
"""How many characters of a provider's own words go into an error."""


@contextmanager
def translating_errors(endpoint: Endpoint, *, opened: bool) -> Iterator[None]:
    """Let out `ModelError` only. The cause is cut off: an SDK's exception holds the request with its key."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        raise _model_error(error, endpoint, opened=opened) from None


def _model_error(error: Exception, endpoint: Endpoint, *, opened: bool) -> ModelError:
    if (silent := _silence(error)) is not None:
        return silent_error(endpoint.provider, endpoint.name, silent.seconds, began=silent.began)
    code, title, advice, retryable = _classify(error, opened=opened)
    secrets = secrets_of(endpoint.api_key, endpoint.headers, endpoint.base_url)
    said = quote_error(_detail(error), secrets, limit=_MAX_DETAIL)
    return ModelError(
        with_advice(f"{endpoint.provider}/{endpoint.name}: {said}", advice),
        title=title,
        code=code,
        retryable=retryable,
        retry_after_s=getattr(error, "retry_after", None),
    )


def _silence(error: BaseException) -> ServerSilent | None:
    """The SDKs wrap what our client raised."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, ServerSilent):
        seen = seen.__cause__ or seen.__context__
    return seen


_REFUSED = ("bad_request", "The request was rejected", "", False)
_TROUBLE = ("server_error", "Provider error", "", True)
_SETTINGS = ("bad_request", "The provider's settings are wrong", "Check its base_url, key and headers.", False)

_CLASSES: tuple[tuple[type[Exception] | tuple[type[Exception], ...], tuple[str, str, str, bool]], ...] = (
    # The first that fits counts: the special ones come before their bases.
    (
        theirs.ModelAuthenticationError,
        ("auth", "The API key was rejected", "Check the provider's key in the environment or longboat.json.", False),
    ),
    (theirs.ModelNotFoundError, ("model_not_found", "No such model", "Check the model's name.", False)),
    (theirs.ModelContextWindowExceededError, ("context_overflow", "The context window is full", "", False)),
    (theirs.ModelRequestRejectedError, _REFUSED),
    (theirs.ModelQuotaExceededError, ("quota", "The quota is used up", "Check the account's credit and plan.", False)),
    (theirs.ModelRateLimitError, ("rate_limited", "Too many requests", "", True)),
    (theirs.ModelUnavailableError, _TROUBLE),
    (theirs.ModelServerError, _TROUBLE),
    (theirs.ModelHTTPError, _REFUSED),
    (theirs.UnexpectedModelBehavior, _TROUBLE),
    (theirs.UserError, _REFUSED),
    (NotImplementedError, _REFUSED),
    ((httpx2.InvalidURL, UnicodeEncodeError), _SETTINGS),
)


def _classify(error: Exception, *, opened: bool) -> tuple[str, str, str, bool]:
    """(code, title, advice, retryable) of a failure."""
    for kind, verdict in _CLASSES:
        if isinstance(error, kind):
            return verdict
    if isinstance(error, theirs.ModelAPIError | httpx2.TransportError | httpx2.StreamError | OSError):
        # What is left of these are connections: refused, timed out, dropped, or ended too early.
        if opened:
            return "stream_broken", "The model's answer broke off", "", True
        return "unreachable", "The provider cannot be reached", "Check the network and the provider's base_url.", True
    return "model_error", "Model request failed", "", False


def _detail(error: Exception) -> str:
    """The provider's own sentence if it sent one, else the library's."""
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error")
        body = inner if isinstance(inner, dict) else body
        if isinstance(message := body.get("message"), str) and message:
            return message
    return str(error) or type(error).__name__
