"""The general adapter: providers with their own wire format (Anthropic, OpenAI, Google, Mistral), through pydantic-ai.

Owns when the library is loaded: on first use and on a thread, because it and a provider's SDK take seconds to import
and other clients' streams must not stop. Must not know the library itself: that is `pydantic_ai.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from longboat.errors import ModelError
from longboat.models.catalogue import Tariff
from longboat.models.images import without_unsupported_images
from longboat.models.protocol import EVERYTHING, Abilities, ModelEvent, ModelRequest
from longboat.models.silence import OWN_API_S
from longboat.wire.requests import Effort

if TYPE_CHECKING:
    from longboat.models.pydantic_ai import Backend

ProviderApi = Literal["anthropic", "openai", "google", "mistral"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A model's address and credentials. `provider` and `name` are our names, which messages are labeled with."""

    provider: str
    name: str
    api: ProviderApi
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    max_output_tokens: int | None = None
    effort: Effort | None = None
    """Unless a request says otherwise."""
    json_schema: bool | None = None
    """Whether it can be held to a schema; None: as the library knows."""
    first_token_s: float = OWN_API_S
    """How long the answer may take to begin."""
    idle_s: float = OWN_API_S
    """How long it may pause between two pieces."""
    tariff: Tariff | None = None
    """What a step costs; None: as the library knows."""


class PydanticModel:
    """A model behind pydantic-ai. Closing it closes its connections; the next request opens them again."""

    def __init__(self, endpoint: Endpoint, *, context_window: int, abilities: Abilities = EVERYTHING) -> None:
        self._endpoint = endpoint if abilities.effort else replace(endpoint, effort=None)
        self.abilities = abilities
        self._context_window = context_window
        self._backend: Backend | None = None
        self._loading = asyncio.Lock()

    @property
    def provider(self) -> str:
        return self._endpoint.provider

    @property
    def name(self) -> str:
        return self._endpoint.name

    @property
    def context_window(self) -> int:
        return self._context_window

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        backend = await self._load()
        async with backend.stream(without_unsupported_images(request, self.abilities)) as events:
            yield events

    async def aclose(self) -> None:
        backend, self._backend = self._backend, None
        if backend is not None:
            await backend.aclose()

    async def _load(self) -> "Backend":
        async with self._loading:
            if self._backend is None:
                self._backend = await asyncio.to_thread(_open_backend, self._endpoint)
            return self._backend


def _open_backend(endpoint: Endpoint) -> "Backend":
    try:
        from longboat.models.pydantic_ai import Backend

        return Backend(endpoint)
    except OSError as error:
        raise ModelError(
            f"{endpoint.provider}/{endpoint.name} cannot be used: {error.strerror or error}.",
            title="The provider cannot be reached",
            code="unreachable",
            retryable=True,
        ) from None
