"""The protocol between a turn and a language model.

Owns what a turn requests and what it gets back. Must not know any provider. An adapter converts our messages into the
provider's wire format and its stream into these events. It raises only `ModelError`, with `retryable` set for temporary
errors (429, 5xx, a dropped or truncated stream) and not set for permanent ones (401, unknown model, quota).
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

import msgspec

from longboat.core.tool import ToolSpec
from longboat.wire.model_requests import ToolMode
from longboat.wire.models import Message, Usage
from longboat.wire.requests import Effort

ModelRole = Literal["large", "small"]
"""`large` answers prompts, `small` writes titles."""


class StopReason(StrEnum):
    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    CONTENT_FILTER = "content_filter"


@dataclass(frozen=True, slots=True)
class Sent:
    """A request is about to leave: before everything else that comes of it, once for each try that says something new.

    Never with headers: they hold keys.
    """

    body: bytes = field(repr=False)
    """JSON."""
    exact: bool = True
    """It is what the provider gets, byte for byte. Otherwise it is what a provider's library is given to send."""
    tool_mode: ToolMode = "native"


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str
    signature: str | None = None
    """Comes once, with the last (perhaps empty) piece, where a provider signs its reasoning."""


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """The calls of a step are numbered by `index`, in order of appearance from 0."""

    index: int
    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """Always the last event of a step. A stream that ends without it is broken: the adapter raises instead."""

    reason: StopReason
    usage: Usage = field(default_factory=Usage)
    cached_tokens: int = 0
    """Of the input tokens: those that the provider had evaluated before and took from its cache."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A notice for people who are waiting, such as that a model is being loaded."""

    message: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice for people that the answer is got in another way than expected."""

    message: str
    withdraw: bool = False
    """What came before it in this step does not count."""


ModelEvent = Sent | TextDelta | ReasoningDelta | ToolCallStart | ToolCallDelta | Finished | Progress | Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One step. `messages` is a transcript that any provider accepts: every tool call has its result."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int | None = None
    effort: Effort | None = None
    """How much to think; without one, as the model's configuration says."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of the answer, for servers that can hold a model to one. The system prompt says it as well."""
    openai_schema: bool = True
    """Where a chat server finds the schema: in `response_format`, or in the fields that llama.cpp and Ollama have."""
    may_call: bool = True
    """Whether calls are of use. A summary has none; its tools are there for the provider's cache."""


def as_json(request: ModelRequest, *, model: str) -> bytes:
    """The request for people to read, where only a library knows how it goes over the wire."""
    body: dict[str, Any] = {
        "model": model,
        "system": request.system,
        "messages": [{"role": message.role, "parts": message.parts} for message in request.messages],
    }
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
            for tool in request.tools
        ]
    limits = {"max_output_tokens": request.max_output_tokens, "effort": request.effort, "schema": request.schema}
    return msgspec.json.encode(body | {name: value for name, value in limits.items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a model can do. Unknown abilities are assumed."""

    images: bool = True
    tools: bool = True
    effort: bool = True
    agent: bool = True
    """Whether it can work as an agent. One that only talks gets another prompt."""


EVERYTHING = Abilities()


class Model(Protocol):
    """A configured language model. One object serves many turns at once."""

    @property
    def provider(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def context_window(self) -> int: ...

    @property
    def abilities(self) -> Abilities: ...

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """Send the request. Leaving the context early, by cancel too, closes the provider's stream at once."""
        ...


class Closable(Model, Protocol):
    """A model that holds connections or processes, and opens them again when it is used again."""

    async def aclose(self) -> None: ...


class WrappedModel:
    """Base of a model that answers by another one, and is known by the same name. Subclasses bring `stream`."""

    def __init__(self, adapter: Closable) -> None:
        self.adapter = adapter

    @property
    def provider(self) -> str:
        return self.adapter.provider

    @property
    def name(self) -> str:
        return self.adapter.name

    @property
    def context_window(self) -> int:
        return self.adapter.context_window

    @property
    def abilities(self) -> Abilities:
        return self.adapter.abilities

    async def aclose(self) -> None:
        await self.adapter.aclose()
