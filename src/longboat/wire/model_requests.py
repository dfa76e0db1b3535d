"""What was sent to a model: the responses of `GET …/runs/{run_id}/requests`."""

from typing import Any, Literal

from longboat.wire.models import Usage
from longboat.wire.shape import Shape

ToolMode = Literal["native", "steps", "text"]
"""How a model is to call tools: as its provider has it, as steps in JSON, or written as text."""
PartName = Literal["system", "tools", "user", "assistant", "tool", "settings"]
"""`tool` is the results of calls; `assistant` has the calls themselves."""


class RequestPart(Shape, frozen=True, kw_only=True):
    """All that one kind of content takes up in a request."""

    name: PartName
    size: int
    """Bytes of JSON. An attachment counts as its name does."""
    tokens: int | None = None
    """An estimate: the input tokens that the provider counted, shared out by size. Null until it has answered."""


class SentRequest(Shape, frozen=True, kw_only=True):
    """One request of a run to a model, without the messages themselves."""

    number: int
    """Counts the requests of the run, from 1. A retry is a request of its own."""
    model: str
    """As provider/model."""
    tool_mode: ToolMode
    summary: bool
    """It asked for a summary of the session."""
    exact: bool
    """The body is what the provider got. False: it is what Longboat gave to the provider's library to send."""
    sent_at: str
    messages: int
    new_messages: int
    """How many of them, at the end, were not in the request before it."""
    parts: tuple[RequestPart, ...]
    usage: Usage | None = None
    """Null until the model has answered, or if it failed; so are the others below."""
    cached_tokens: int | None = None
    """Input tokens that the provider took from its cache."""
    seconds: float | None = None
    """How long the answer took."""
    stop_reason: str | None = None
    error: str | None = None


class SentRequests(Shape, frozen=True, kw_only=True):
    """All requests of a run that are still stored, in order. They are deleted along with old events."""

    run_id: str
    items: tuple[SentRequest, ...]


class SentRequestBody(Shape, frozen=True, kw_only=True):
    """One request with its body, never with headers. In place of attachments it says how large they were."""

    request: SentRequest
    body: dict[str, Any]
