"""One model behind pydantic-ai: connections and settings. Import it through `pydantic_adapter.py` only: it is heavy.

`pydantic_request` builds requests, `pydantic_stream` reads answers, `pydantic_failure` explains errors. The library's
objects never leave these modules: they change with its releases, while ours are stored. The SDKs' own retries are off,
because the turn retries and reports it.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from typing import assert_never

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import StreamedResponse
from pydantic_ai.settings import ModelSettings

from longboat.models.protocol import Finished, ModelEvent, ModelRequest, Sent, as_json
from longboat.models.pydantic_adapter import Endpoint
from longboat.models.pydantic_failure import translating_errors
from longboat.models.pydantic_http import TimedClient
from longboat.models.pydantic_request import library_messages, parameters
from longboat.models.pydantic_stream import Translation, stop_reason, usage


class Backend:
    """One model of one endpoint, with its own connections."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        with translating_errors(endpoint, opened=False):
            self._http = TimedClient(first_s=endpoint.first_token_s, idle_s=endpoint.idle_s, headers=_headers(endpoint))
            self._model = _library_model(endpoint, self._http)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        limit = request.max_output_tokens or self._endpoint.max_output_tokens
        request = replace(request, max_output_tokens=limit, effort=request.effort or self._endpoint.effort)
        async with aclosing(self._events(request)) as events:
            yield events

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        yield Sent(as_json(request, model=self._endpoint.name), exact=False)
        translation = Translation()
        async with AsyncExitStack() as stack:
            with translating_errors(self._endpoint, opened=False):
                response = await stack.enter_async_context(self._send(request))
            with translating_errors(self._endpoint, opened=True):
                async for event in response:
                    for ours in translation.feed(event):
                        yield ours
                final = response.get()
                for ours in translation.finish(final):
                    yield ours
                yield Finished(stop_reason(final), usage(final, self._endpoint.tariff), final.usage.cache_read_tokens)

    def _send(self, request: ModelRequest) -> AbstractAsyncContextManager[StreamedResponse]:
        return model_request_stream(
            self._model,
            library_messages(request.messages, self._endpoint, self._model.system),
            model_settings=_settings(request),
            model_request_parameters=parameters(request, native_schema=self._holds_to(request)),
            instrument=False,
        )

    def _holds_to(self, request: ModelRequest) -> bool:
        """Whether the provider can be given the schema of the answer: it must take it beside tools, and as it is."""
        if request.schema is None or request.schema.get("type") != "object":
            return False
        if self._endpoint.json_schema is not None:
            return self._endpoint.json_schema
        # Gemini and Mistral refuse it where there are tools.
        able = self._endpoint.api in ("openai", "anthropic")
        return able and bool(self._model.profile.get("supports_json_schema_output"))


def _settings(request: ModelRequest) -> ModelSettings:
    settings = ModelSettings(max_retries=0, cache=True)
    if request.max_output_tokens is not None:
        settings["max_tokens"] = request.max_output_tokens
    if request.effort is not None:
        settings["thinking"] = request.effort
    return settings


def _headers(endpoint: Endpoint) -> dict[str, str]:
    if endpoint.api == "anthropic" and endpoint.base_url and endpoint.api_key:
        # The SDK sends the key as a bearer token; servers that only resemble Anthropic's know the older header.
        return {"x-api-key": endpoint.api_key, **endpoint.headers}
    return dict(endpoint.headers)


def _library_model(endpoint: Endpoint, http: httpx2.AsyncClient) -> LibraryModel:
    key = endpoint.api_key or "none"
    url = endpoint.base_url
    match endpoint.api:
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
            assert_never(endpoint.api)
