"""Builds the adapter for a chosen model: which wire format, which address, what is known about it.

Owns when the connections of a model that was retired close: as soon as no stream is open. Must not know how the choice
was made. Adapters are imported here, on the thread that builds them, because they are heavy.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from longboat.config.settings import ModelEntry, ProviderSection
from longboat.errors import ModelError
from longboat.models import catalogue, refreshed_catalogue
from longboat.models.local.files import local_spec
from longboat.models.local.fit import this_machine
from longboat.models.local.known import DEMO
from longboat.models.protocol import Abilities, Closable, ModelEvent, ModelRequest, WrappedModel
from longboat.models.providers import KNOWN, LOCAL_TYPE
from longboat.models.silence import OWN_API_S, silence_limit_s
from longboat.models.tool_modes.memory import ToolMemory
from longboat.models.tool_modes.model import ToolModel
from longboat.wire.listings import ModelPrice
from longboat.wire.model_requests import ToolMode

if TYPE_CHECKING:
    from longboat.models.pydantic_adapter import ProviderApi


class RetirableModel(WrappedModel):
    """An adapter shared by turns. A retired one still answers, but keeps nothing open between answers."""

    def __init__(self, adapter: Closable) -> None:
        super().__init__(adapter)
        self._streams = 0
        self._retired = False

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        self._streams += 1
        try:
            async with self.adapter.stream(request) as events:
                yield events
        finally:
            self._streams -= 1
            await self._close_if_done()

    async def retire(self) -> None:
        """Close now, or after the last open stream."""
        self._retired = True
        await self._close_if_done()

    async def _close_if_done(self) -> None:
        if self._retired and self._streams == 0:
            await self.adapter.aclose()


_APIS: dict[str, "ProviderApi"] = {
    "anthropic": "anthropic",
    "anthropic-compatible": "anthropic",
    "openai": "openai",
    "azure": "openai",
    "google": "google",
    "mistral": "mistral",
    "bedrock": "anthropic",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    provider: str
    section: ProviderSection
    model: str

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A provider's address and credentials, with all references replaced."""

    key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def defaults_of(section: ProviderSection) -> tuple[ModelEntry, ModelEntry] | None:
    """The large and the small model of a provider whose models are not listed."""
    if section.type == LOCAL_TYPE:
        return ModelEntry(id=DEMO.id), ModelEntry(id=DEMO.id)
    known = KNOWN.get(section.type)
    return (known.large, known.small) if known else None


def entry_of(choice: Choice) -> ModelEntry:
    """What the configuration or our table says of the model."""
    listed: tuple[ModelEntry, ...] = (*choice.section.models, *(defaults_of(choice.section) or ()))
    return next((entry for entry in listed if entry.id == choice.model), ModelEntry(id=choice.model))


def window_of(choice: Choice, data_dir: Path) -> int | None:
    """The context window; None if unknown."""
    entry = entry_of(choice)
    if choice.section.type == LOCAL_TYPE:
        with suppress(ModelError):
            return local_spec(choice.provider, entry, data_dir).fit(this_machine()).context_window
        return None
    return entry.context_window or _facts(choice, choice.section.base_url, data_dir).context_window


def price_of(choice: Choice) -> ModelPrice | None:
    """The price of a million tokens, if the configuration or the price list has it."""
    if choice.section.type == LOCAL_TYPE:
        return ModelPrice(input=0, output=0)
    if (price := entry_of(choice).price) is not None:
        return ModelPrice(input=price.input, output=price.output)
    return catalogue.price_of(choice.section.type, choice.model, base_url=choice.section.base_url)


def build(choice: Choice, access: Access, data_dir: Path) -> Closable:
    section, entry = choice.section, entry_of(choice)
    known = KNOWN.get(section.type)
    if section.type == "azure":
        return _general(choice, entry, _azure(access), data_dir)
    if section.type == "bedrock":
        return _bedrock(choice, entry, access, data_dir)
    chat_url = (known.chat_url if known else None) or (access.base_url if "openai" in section.type else None)
    if chat_url:
        return _chat(choice, entry, access, access.base_url or chat_url, data_dir)
    return _general(choice, entry, access, data_dir)


def _azure(access: Access) -> Access:
    """Azure's OpenAI models on its OpenAI-compatible path, which takes the key in a separate header."""
    address = (access.base_url or "").rstrip("/")
    url = address if "/openai" in address else f"{address}/openai/v1"
    own = {"api-key": access.key} if access.key else {}
    return Access(key=access.key, base_url=url, headers={**own, **access.headers})


def _bedrock(choice: Choice, entry: ModelEntry, access: Access, data_dir: Path) -> Closable:
    """Claude speaks its own wire there, all others OpenAI's chat wire."""
    origin = (access.base_url or "").rstrip("/").removesuffix("/v1")
    if "anthropic." in choice.model:
        there = Access(key=access.key, base_url=f"{origin}/anthropic", headers=access.headers)
        return _general(choice, entry, there, data_dir)
    return _chat(choice, entry, access, f"{origin}/v1", data_dir)


def _chat(choice: Choice, entry: ModelEntry, access: Access, url: str, data_dir: Path) -> Closable:
    from longboat.models.chat_habits import ChatMemory
    from longboat.models.openai_chat import OpenAIChatModel
    from longboat.models.openai_request import Dialect

    facts = _facts(choice, access.base_url, data_dir)
    dialect = Dialect(
        max_output_tokens=_limit(entry, facts),
        effort=entry.effort,
        nested_effort=choice.section.type == "openrouter",
        json_schema=bool(entry.json_schema),
        send_reasoning=entry.send_reasoning,
    )
    chat = OpenAIChatModel(
        provider=choice.provider,
        name=choice.model,
        base_url=url,
        api_key=access.key,
        headers=access.headers,
        context_window=_window(entry, facts),
        abilities=_abilities(entry, facts),
        dialect=dialect,
        first_token_s=entry.first_token_s,
        idle_s=entry.idle_s,
        tariff=_configured_tariff(entry)
        or catalogue.tariff_of(choice.section.type, choice.model, base_url=_priced_at(choice, access)),
        memory=ChatMemory(data_dir, address=url, model=choice.model),
    )
    if not chat.abilities.tools:
        return chat
    memory = ToolMemory(data_dir, address=url, model=choice.model)
    return ToolModel(chat, memory, wanted=_tool_mode(entry, facts), has_tools=bool(facts.tools))


def _general(choice: Choice, entry: ModelEntry, access: Access, data_dir: Path) -> Closable:
    from longboat.models.pydantic_adapter import Endpoint, PydanticModel

    facts = _facts(choice, access.base_url, data_dir)
    endpoint = Endpoint(
        provider=choice.provider,
        name=choice.model,
        api=_APIS[choice.section.type],
        api_key=access.key,
        base_url=access.base_url,
        headers=access.headers,
        max_output_tokens=_limit(entry, facts),
        effort=entry.effort,
        json_schema=entry.json_schema,
        first_token_s=silence_limit_s(access.base_url, entry.first_token_s, elsewhere_s=OWN_API_S),
        idle_s=silence_limit_s(access.base_url, entry.idle_s, elsewhere_s=OWN_API_S),
        tariff=_configured_tariff(entry),
    )
    general = PydanticModel(endpoint, context_window=_window(entry, facts), abilities=_abilities(entry, facts))
    mode = _tool_mode(entry, facts)
    if mode in (None, "native"):
        return general  # these providers have tools
    memory = ToolMemory(data_dir, address=access.base_url or endpoint.api, model=choice.model)
    return ToolModel(general, memory, wanted=mode)


def abilities_of(choice: Choice, data_dir: Path) -> Abilities:
    """What is known of a model, without making it."""
    return _abilities(entry_of(choice), _facts(choice, choice.section.base_url, data_dir))


def _configured_tariff(entry: ModelEntry) -> catalogue.Tariff | None:
    return catalogue.configured_tariff(entry.price) if entry.price is not None else None


def _priced_at(choice: Choice, access: Access) -> str | None:
    """The address that tells whose prices count; the clouds' own addresses are as good as their names."""
    return None if choice.section.type == "bedrock" else access.base_url


def _facts(choice: Choice, base_url: str | None, data_dir: Path) -> catalogue.Facts:
    entry = entry_of(choice)
    family = catalogue.family_of(choice.model)
    listed = refreshed_catalogue.listing(data_dir).get(choice.provider, {})
    if entry.context_window is not None and choice.model not in listed:
        # The price list would only be asked for the window: spare its import.
        return catalogue.of_family(family)
    url = None if choice.section.type in ("azure", "bedrock") else base_url
    return catalogue.facts_of(choice.section.type, choice.model, base_url=url, listed=listed)


def _window(entry: ModelEntry, facts: catalogue.Facts) -> int:
    return entry.context_window or facts.context_window or catalogue.DEFAULT_WINDOW


def _limit(entry: ModelEntry, facts: catalogue.Facts) -> int | None:
    """The configured value, limited to what the model supports. Without one, the provider's own default applies."""
    if entry.max_output_tokens is None or facts.max_output_tokens is None:
        return entry.max_output_tokens
    return min(entry.max_output_tokens, facts.max_output_tokens)


def _tool_mode(entry: ModelEntry, facts: catalogue.Facts) -> ToolMode | None:
    """As configured, or steps if the model is known to have no tools; None means to detect it."""
    if entry.tools is None or entry.tools == "none":
        return "steps" if facts.tools is False else None
    return entry.tools


def _abilities(entry: ModelEntry, facts: catalogue.Facts) -> Abilities:
    def is_able(configured: bool | None, known: bool | None) -> bool:
        return configured if configured is not None else known is not False

    return Abilities(
        images=is_able(entry.images, facts.images),
        tools=entry.tools != "none",
        effort=is_able(entry.reasoning, facts.effort),
    )
