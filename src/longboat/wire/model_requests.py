"""What was sent to a model: the responses of `GET …/runs/{run_id}/requests`."""

from typing import Any, Literal

from longboat.wire.models import Usage
from longboat.wire.shape import Shape

ToolMode = Literal["native", "steps", "text"]
"""How a model calls tools: natively, as steps in JSON, or as text."""
PartName = Literal["system", "tools", "user", "assistant", "tool", "settings"]
"""`tool` means the results of calls; `assistant` has the calls themselves."""


class RequestPart(Shape, frozen=True, kw_only=True):
    """The share of one kind of content in a request."""

    name: PartName
    size: int
    """Bytes of JSON. An attachment counts only as its name."""
    tokens: int | None = None
    """An estimate: the input tokens that the provider counted, divided by size. Null until the provider has
    answered."""


class SentRequest(Shape, frozen=True, kw_only=True):
    """One request of a run to a model, without the messages themselves."""

    number: int
    """Counts the requests of the run, from 1. A retry counts as a separate request."""
    model: str
    """As provider/model."""
    tool_mode: ToolMode
    summary: bool
    """Whether it asked for a summary of the session."""
    exact: bool
    """Whether the body is what the provider received. If false, it is what Longboat passed to the provider's
    library."""
    sent_at: str
    messages: int
    new_messages: int
    """How many of them, at the end, were not in the previous request."""
    parts: tuple[RequestPart, ...]
    usage: Usage | None = None
    """Like the fields below, null until the model has answered, or if it failed."""
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
    """One request with its body, without headers. Attachments are replaced by their size."""

    request: SentRequest
    body: dict[str, Any]
