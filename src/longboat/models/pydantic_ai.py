"""Our messages and events in pydantic-ai's terms. Import it through `general.py` only: it is heavy.

Owns the translation of requests, streams and failures. Nothing of the library's leaves this module: its objects change
with its releases, ours are stored. The SDKs' own retries are off, because the turn retries and says so.
"""

import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from typing import Any, assert_never

import httpx2
from pydantic_ai import exceptions as theirs
from pydantic_ai import messages as pai
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from longboat.errors import ModelError
from longboat.models.general import Endpoint
from longboat.models.quotation import advised, quote, secrets_of
from longboat.models.seam import (
    Finished,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from longboat.wire import models as wire

_TIMEOUT = httpx2.Timeout(300.0, connect=10.0)
_MAX_DETAIL = 1000
"""How many characters of a provider's own words go into an error."""


class Backend:
    """One model of one endpoint, with its own connections."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        with translated(endpoint, opened=False):
            self._http = httpx2.AsyncClient(timeout=_TIMEOUT, headers=_headers(endpoint))
            self._model = _library_model(endpoint, self._http)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        async with AsyncExitStack() as stack:
            with translated(self._endpoint, opened=False):
                response = await stack.enter_async_context(
                    model_request_stream(
                        self._model,
                        _messages(request.messages, self._endpoint.provider, self._model.system),
                        model_settings=self._settings(request),
                        model_request_parameters=_parameters(request),
                        instrument=False,
                    )
                )
            events = self._events(response)
            yield await stack.enter_async_context(aclosing(events))

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _events(self, response: StreamedResponse) -> AsyncGenerator[ModelEvent, None]:
        translation = _Translation()
        with translated(self._endpoint, opened=True):
            async for event in response:
                for ours in translation.feed(event):
                    yield ours
            final = response.get()
            for ours in translation.finish(final):
                yield ours
            yield Finished(_stop_reason(final), _usage(final))

    def _settings(self, request: ModelRequest) -> ModelSettings:
        settings = ModelSettings(max_retries=0, cache=True)
        if (limit := request.max_output_tokens or self._endpoint.max_output_tokens) is not None:
            settings["max_tokens"] = limit
        return settings


def _headers(endpoint: Endpoint) -> dict[str, str]:
    if endpoint.wire == "anthropic" and endpoint.base_url and endpoint.api_key:
        # The SDK sends the key as a bearer token; servers that only resemble Anthropic's know the older header.
        return {"x-api-key": endpoint.api_key, **endpoint.headers}
    return dict(endpoint.headers)


def _library_model(endpoint: Endpoint, http: httpx2.AsyncClient) -> LibraryModel:
    key = endpoint.api_key or "none"
    url = endpoint.base_url
    match endpoint.wire:
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(
                endpoint.name, provider=AnthropicProvider(api_key=key, base_url=url, http_client=http)
            )
        case "openai":
            from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
            from pydantic_ai.providers.openai import OpenAIProvider

            return OpenAIResponsesModel(
                endpoint.name,
                provider=OpenAIProvider(api_key=key, base_url=url, http_client=http),
                # Transcripts live here and nowhere else; reasoning comes back encrypted for us to return.
                settings=OpenAIResponsesModelSettings(openai_store=False),
            )
        case "google":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            return GoogleModel(endpoint.name, provider=GoogleProvider(api_key=key, base_url=url, http_client=http))
        case "mistral":
            from pydantic_ai.models.mistral import MistralModel
            from pydantic_ai.providers.mistral import MistralProvider

            return MistralModel(endpoint.name, provider=MistralProvider(api_key=key, base_url=url, http_client=http))
        case _:
            assert_never(endpoint.wire)


# --- what we ask -----------------------------------------------------------------------------------------------------


def _parameters(request: ModelRequest) -> ModelRequestParameters:
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.schema))
            for tool in request.tools
        ],
        instruction_parts=[pai.InstructionPart(content=request.system)] if request.system else [],
    )


def _messages(messages: Sequence[wire.Message], provider: str, system: str) -> list[pai.ModelMessage]:
    tool_names: dict[str, str] = {}
    translated_messages: list[pai.ModelMessage] = []
    for message in messages:
        if message.role is wire.Role.ASSISTANT:
            answer = _response_parts(message, system if message.provider == provider else None)
            tool_names |= {part.tool_call_id: part.tool_name for part in answer if isinstance(part, pai.ToolCallPart)}
            if answer:
                translated_messages.append(pai.ModelResponse(parts=answer, provider_name=system))
        elif question := _request_parts(message, tool_names):
            translated_messages.append(pai.ModelRequest(parts=question))
    return translated_messages


def _request_parts(message: wire.Message, tool_names: dict[str, str]) -> list[pai.ModelRequestPart]:
    results: list[pai.ModelRequestPart] = []
    prompt: list[pai.UserContent] = []
    for part in message.parts:
        match part:
            case wire.ToolResultPart():
                results.append(
                    pai.ToolReturnPart(
                        tool_name=tool_names.get(part.tool_call_id, "unknown"),
                        content=part.content,
                        tool_call_id=part.tool_call_id,
                        outcome="failed" if part.is_error else "success",
                    )
                )
            case wire.TextPart() if part.text:
                prompt.append(part.text)
            case wire.FilePart():
                prompt.append(_file(part))
    return [*results, pai.UserPromptPart(content=prompt)] if prompt else results


def _file(part: wire.FilePart) -> pai.UserContent:
    """Pictures and PDFs go as they are; what is text goes as text, as on our other wire."""
    data = base64.b64decode(part.data or "")
    if part.text is None and (part.media_type.startswith("image/") or part.media_type == "application/pdf"):
        return pai.BinaryContent(data=data, media_type=part.media_type, identifier=part.name)
    try:
        text = data.decode() if part.text is None else part.text
    except UnicodeDecodeError:
        return f"[The file {part.name} ({part.media_type}) cannot be shown to this model.]"
    return f'<file name="{part.name}">\n{text}\n</file>'


def _response_parts(message: wire.Message, signed_by: str | None) -> list[pai.ModelResponsePart]:
    parts: list[pai.ModelResponsePart] = []
    for part in message.parts:
        match part:
            case wire.TextPart() if part.text:
                parts.append(pai.TextPart(content=part.text))
            case wire.ToolCallPart():
                parts.append(pai.ToolCallPart(tool_name=part.name, args=_arguments(part.input), tool_call_id=part.id))
            case wire.ReasoningPart(signature=str(signature)) if signed_by is not None:
                # Reasoning without a signature, or signed by another provider, is not sent: no provider can use it.
                part_id, secret = _unpack_signature(signature)
                parts.append(pai.ThinkingPart(content=part.text, id=part_id, signature=secret, provider_name=signed_by))
    return parts


def _arguments(text: str) -> str:
    """What a cancel cut off is no object any more, and providers refuse it."""
    try:
        return text if isinstance(json.loads(text), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def _pack_signature(part_id: str | None, secret: str) -> str:
    """One string for our schema. Some providers want an id back besides the signature."""
    return secret if part_id is None else json.dumps({"id": part_id, "signature": secret})


def _unpack_signature(packed: str) -> tuple[str | None, str]:
    if not packed.startswith("{"):
        return None, packed
    fields = json.loads(packed)
    return fields["id"], fields["signature"]


# --- what we hear ----------------------------------------------------------------------------------------------------


class _Translation:
    """Turns one response's events into ours: calls get numbers, a signature waits until its reasoning is over."""

    def __init__(self) -> None:
        self._calls: dict[int, int] = {}
        self._sent: dict[str, str] = {}
        self._call_ids: list[str] = []
        self._reasoning_id: str | None = None
        self._signature: str | None = None

    def feed(self, event: pai.ModelResponseStreamEvent) -> Iterator[ModelEvent]:
        match event:
            case pai.PartStartEvent(part=pai.ThinkingPart() as part):
                yield from self._reasoning_start(part)
            case pai.PartStartEvent(part=pai.TextPart() as part):
                yield from self._sign()
                yield from _text(part.content)
            case pai.PartStartEvent(part=pai.ToolCallPart() as part) if event.index not in self._calls:
                yield from self._sign()
                yield from self._call_start(event.index, part)
            case pai.PartDeltaEvent(delta=pai.ThinkingPartDelta() as delta):
                if delta.content_delta:
                    yield ReasoningDelta(delta.content_delta)
                self._signature = delta.signature_delta or self._signature
            case pai.PartDeltaEvent(delta=pai.TextPartDelta() as delta):
                yield from _text(delta.content_delta)
            case pai.PartDeltaEvent(delta=pai.ToolCallPartDelta(args_delta=str(args))):
                yield from self._arguments(self._calls[event.index], args)

    def finish(self, final: pai.ModelResponse) -> Iterator[ModelEvent]:
        """What the stream did not spell out: arguments that came as an object, and the last signature."""
        for part in final.parts:
            if isinstance(part, pai.ToolCallPart) and part.tool_call_id in self._sent:
                whole, sent = part.args_as_json_str(), self._sent[part.tool_call_id]
                if whole.startswith(sent):
                    yield from self._arguments(self._call_ids.index(part.tool_call_id), whole[len(sent) :])
        yield from self._sign()

    def _reasoning_start(self, part: pai.ThinkingPart) -> Iterator[ModelEvent]:
        same = part.id is not None and part.id == self._reasoning_id
        if not same:
            yield from self._sign()
        text = f"\n\n{part.content}" if same else part.content
        self._reasoning_id = part.id
        self._signature = part.signature or self._signature
        if text:
            yield ReasoningDelta(text)

    def _sign(self) -> Iterator[ModelEvent]:
        if self._signature:
            yield ReasoningDelta("", _pack_signature(self._reasoning_id, self._signature))
        self._signature = self._reasoning_id = None

    def _call_start(self, part_index: int, part: pai.ToolCallPart) -> Iterator[ModelEvent]:
        if secret := (part.provider_details or {}).get("thought_signature"):
            # Gemini signs the call itself and takes the signature back on empty reasoning before it.
            yield ReasoningDelta("", secret)
        index = self._calls[part_index] = len(self._call_ids)
        self._call_ids.append(part.tool_call_id)
        self._sent[part.tool_call_id] = ""
        yield ToolCallStart(index, part.tool_call_id, part.tool_name)
        if isinstance(part.args, str):
            yield from self._arguments(index, part.args)

    def _arguments(self, index: int, text: str) -> Iterator[ModelEvent]:
        if text:
            self._sent[self._call_ids[index]] += text
            yield ToolCallDelta(index, text)


def _text(text: str) -> Iterator[ModelEvent]:
    if text:
        yield TextDelta(text)


def _stop_reason(final: pai.ModelResponse) -> StopReason:
    match final.finish_reason:
        case "length":
            return StopReason.MAX_TOKENS
        case "content_filter":
            return StopReason.CONTENT_FILTER
        case "error":
            raise theirs.UnexpectedModelBehavior("The model stopped with an error of its own.")
        case None if "finish_reason" not in (final.provider_details or {}):
            raise theirs.ModelAPIError(final.model_name or "", "The stream ended before the answer was complete.")
    called = any(isinstance(part, pai.ToolCallPart) for part in final.parts)
    return StopReason.TOOL_USE if called else StopReason.END_TURN


def _usage(final: pai.ModelResponse) -> wire.Usage:
    try:
        cost = float(final.cost().total_price)
    except (LookupError, ValueError):
        # No price is known for this model: report tokens alone.
        cost = 0.0
    return wire.Usage(input_tokens=final.usage.input_tokens, output_tokens=final.usage.output_tokens, cost=cost)


# --- what goes wrong -------------------------------------------------------------------------------------------------


@contextmanager
def translated(endpoint: Endpoint, *, opened: bool) -> Iterator[None]:
    """Let out `ModelError` only. The cause is cut off: an SDK's exception holds the request with its key."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        raise _model_error(error, endpoint, opened=opened) from None


def _model_error(error: Exception, endpoint: Endpoint, *, opened: bool) -> ModelError:
    code, title, advice, retryable = _classify(error, opened=opened)
    secrets = secrets_of(endpoint.api_key, endpoint.headers, endpoint.base_url)
    said = quote(_detail(error), secrets, limit=_MAX_DETAIL)
    return ModelError(
        advised(f"{endpoint.provider}/{endpoint.name}: {said}", advice),
        title=title,
        code=code,
        retryable=retryable,
        retry_after_s=getattr(error, "retry_after", None),
    )


_REFUSED = ("bad_request", "The request was refused", "", False)
_TROUBLE = ("server_error", "The provider has trouble", "", True)
_SETTINGS = ("bad_request", "The provider's settings are wrong", "Check its base_url, key and headers.", False)

_CLASSES: tuple[tuple[type[Exception] | tuple[type[Exception], ...], tuple[str, str, str, bool]], ...] = (
    # The first that fits counts: the special ones come before their bases.
    (
        theirs.ModelAuthenticationError,
        ("auth", "The API key was refused", "Check the provider's key in the environment or longboat.json.", False),
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
    return "model_error", "The model request failed", "", False


def _detail(error: Exception) -> str:
    """The provider's own sentence if it sent one, else the library's."""
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error")
        body = inner if isinstance(inner, dict) else body
        if isinstance(message := body.get("message"), str) and message:
            return message
    return str(error) or type(error).__name__
