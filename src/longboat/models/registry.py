"""Which model answers: names like `provider/model`, the configuration and the usual environment keys become models.

Owns the choice and the table of known providers. Must not know any wire: adapters are imported when first chosen, for
they are heavy. Keys are read here and handed to adapters; nothing that leaves this module otherwise holds one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit, urlunsplit

from longboat.config.keys import PROVIDER_KEYS
from longboat.config.settings import Config, ModelEntry, ProviderSection
from longboat.errors import ConfigInvalid, ModelError
from longboat.models import local
from longboat.models.lending import Closable, LentModel
from longboat.models.seam import Model

if TYPE_CHECKING:
    from longboat.models.general import Wire

Role = Literal["large", "small"]

LOCAL_TYPE = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProvider:
    """A provider that a key in the environment is enough for. Its name is also its type in `longboat.json`."""

    keys: tuple[str, ...]
    large: ModelEntry
    small: ModelEntry
    chat_url: str | None = None
    """Where it speaks OpenAI's chat wire, if that is how we speak to it."""


KNOWN: dict[str, KnownProvider] = {
    # In order of preference when several keys are set.
    "anthropic": KnownProvider(
        keys=PROVIDER_KEYS["anthropic"],
        large=ModelEntry(id="claude-sonnet-5-5", context_window=1_000_000),
        small=ModelEntry(id="claude-haiku-5-5", context_window=1_000_000),
    ),
    "openai": KnownProvider(
        keys=PROVIDER_KEYS["openai"],
        large=ModelEntry(id="gpt-6.1-sol", context_window=1_050_000),
        small=ModelEntry(id="gpt-6-luna", context_window=1_050_000),
    ),
    "google": KnownProvider(
        keys=PROVIDER_KEYS["google"],
        large=ModelEntry(id="gemini-4-argon", context_window=1_048_576),
        small=ModelEntry(id="gemini-3.5-flash-lite", context_window=1_000_000),
    ),
    "openrouter": KnownProvider(
        keys=PROVIDER_KEYS["openrouter"],
        large=ModelEntry(id="anthropic/claude-sonnet-5.5", context_window=1_000_000),
        small=ModelEntry(id="anthropic/claude-haiku-5.5", context_window=1_000_000),
        chat_url="https://openrouter.ai/api/v1",
    ),
    "groq": KnownProvider(
        keys=PROVIDER_KEYS["groq"],
        large=ModelEntry(id="openai/gpt-oss-120b", context_window=131_072),
        small=ModelEntry(id="openai/gpt-oss-20b", context_window=131_072),
        chat_url="https://api.groq.com/openai/v1",
    ),
    "mistral": KnownProvider(
        keys=PROVIDER_KEYS["mistral"],
        large=ModelEntry(id="mistral-large-latest"),
        small=ModelEntry(id="mistral-small-latest"),
    ),
}

_WIRES: dict[str, "Wire"] = {
    "anthropic": "anthropic",
    "anthropic-compatible": "anthropic",
    "openai": "openai",
    "google": "google",
    "mistral": "mistral",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderInfo:
    """A provider as `longboat doctor` and `longboat models` show it: no secrets."""

    name: str
    type: str
    source: Literal["config", "environment", "built in"]
    base_url: str | None
    key: Literal["set", "missing", "not needed"]
    models: tuple[str, ...]
    problem: str | None = None
    """What to do before it can be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What is configured. `large` and `small` are the names that play these roles, None if `problem` tells why not."""

    large: str | None
    small: str | None
    problem: str | None
    providers: tuple[ProviderInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    provider: str
    section: ProviderSection
    model: str

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"


class Registry:
    """The models of one configuration. Hand in a `local_model` to share its process; the giver closes that one."""

    def __init__(
        self, config: Config, environ: Mapping[str, str], *, data_dir: Path, local_model: Model | None = None
    ) -> None:
        self._config = config
        self._environ = environ
        self._data_dir = data_dir
        self._local_model = local_model
        self._models: dict[str, LentModel] = {}

    def resolve(self, name: str | None, role: Role) -> Model:
        """The model called `name`, or the one that plays `role`. The same name is the same object."""
        choice = self._named(name, role) if name else self._chosen(role)
        if choice.section.type == LOCAL_TYPE and self._local_model is not None:
            return self._local_model
        if choice.name not in self._models:
            self._models[choice.name] = LentModel(self._built(choice))
        return self._models[choice.name]

    def describe(self) -> Overview:
        providers = tuple(self._info(name) for name in dict.fromkeys((*self._config.providers, *KNOWN, LOCAL_TYPE)))
        try:
            large, small = self._chosen("large"), self._chosen("small")
            for choice in (large, small):
                self._check_usable(choice.provider, choice.section)
        except ModelError as error:
            return Overview(large=None, small=None, problem=error.message, providers=providers)
        return Overview(large=large.name, small=small.name, problem=None, providers=providers)

    async def retire(self) -> None:
        """The configuration is not in use any more: each model closes as soon as nobody hears it."""
        for model in self._models.values():
            await model.retire()

    async def aclose(self) -> None:
        models, self._models = self._models, {}
        for model in models.values():
            await model.aclose()

    # Choosing

    def _named(self, name: str, role: Role) -> _Choice:
        """The choice that `name` spells: `provider/model`, or a provider alone for its default."""
        provider, _, model = name.partition("/")
        section = self._section(provider)
        return _Choice(provider=provider, section=section, model=model or self._default_model(provider, section, role))

    def _chosen(self, role: Role) -> _Choice:
        if name := getattr(self._config.models, role):
            return self._named(name, role)
        if role == "small" and self._config.models.large:
            return self._small_beside(self._named(self._config.models.large, "large"))
        for provider in (*self._config.providers, *KNOWN, LOCAL_TYPE):
            section = self._section(provider)
            if self._problem(provider, section) is None and (section.models or _defaults(section)):
                model = self._default_model(provider, section, role)
                return _Choice(provider=provider, section=section, model=model)
        raise _not_configured(
            "No model is configured. Set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or write a longboat.json "
            "with a provider and models.large, or run `pip install 'longboat[local]'` for a small model on this "
            "machine."
        )

    def _small_beside(self, large: _Choice) -> _Choice:
        """The small model of the provider that has the large one, where we know one; else the large one again."""
        if large.section.models or large.section.base_url or not (defaults := _defaults(large.section)):
            return large
        return _Choice(provider=large.provider, section=large.section, model=defaults[1].id)

    def _default_model(self, provider: str, section: ProviderSection, role: Role) -> str:
        if section.models:
            return section.models[0].id
        if defaults := _defaults(section):
            return defaults[0 if role == "large" else 1].id
        raise _not_configured(f"Which model of {provider!r}? Name it as {provider}/MODEL.")

    def _section(self, provider: str) -> ProviderSection:
        if provider in self._config.providers:
            return self._config.providers[provider]
        if provider in KNOWN or provider == LOCAL_TYPE:
            base_url = self._environ.get("OPENAI_BASE_URL") if provider == "openai" else None
            # msgspec checked config types; a name from our own table is one of them.
            return ProviderSection(type=provider, base_url=base_url or None)  # type: ignore[arg-type]
        names = ", ".join(dict.fromkeys((*self._config.providers, *KNOWN, LOCAL_TYPE)))
        raise _not_configured(
            f"No provider {provider!r}: models are named provider/model, with a provider of longboat.json or one of "
            f"{names}."
        )

    # What a provider needs

    def _key(self, provider: str, section: ProviderSection) -> str | None:
        """The provider's key. One from the environment goes to the provider's own address only, not to a base_url
        that some project's file gives."""
        if section.api_key is not None:
            return self._expanded(section.api_key)
        if provider in self._config.providers and section.base_url is not None:
            return None
        known = KNOWN.get(section.type)
        found = (self._environ.get(key) for key in known.keys) if known else ()
        return next((key for key in found if key), None)

    def _problem(self, provider: str, section: ProviderSection) -> str | None:
        """What to do before this provider can be used, or None."""
        try:
            key = self._key(provider, section)
        except ConfigInvalid as error:
            return error.message
        if section.type == LOCAL_TYPE:
            return None if local.runtime_installed() else "Run `pip install 'longboat[local]'`."
        if section.type in ("openai-compatible", "anthropic-compatible"):
            return None if section.base_url else f"Give providers.{provider}.base_url in longboat.json."
        if key is None and not section.base_url:
            return f"Set {' or '.join(KNOWN[section.type].keys)}."
        return None

    def _check_usable(self, provider: str, section: ProviderSection) -> None:
        if problem := self._problem(provider, section):
            raise _not_configured(f"Provider {provider!r} is not ready: {problem}")

    def _expanded(self, value: str) -> str:
        from longboat.config.references import expand

        return expand(value, self._environ)

    # Building

    def _built(self, choice: _Choice) -> Closable:
        self._check_usable(choice.provider, choice.section)
        if choice.section.type == LOCAL_TYPE:
            return local.LocalModel(self._data_dir)
        try:
            return self._adapter(choice)
        except ConfigInvalid as error:
            raise _not_configured(error.message) from None

    def _adapter(self, choice: _Choice) -> Closable:
        section, entry = choice.section, _entry(choice)
        key = self._key(choice.provider, section)
        base_url = self._expanded(section.base_url) if section.base_url else None
        headers = {name: self._expanded(value) for name, value in section.headers.items()}
        known = KNOWN.get(section.type)
        if chat_url := (known.chat_url if known else None) or (base_url if "openai" in section.type else None):
            from longboat.models.openai_chat import OpenAIChatModel

            return OpenAIChatModel(
                provider=choice.provider,
                name=choice.model,
                base_url=base_url or chat_url,
                api_key=key,
                headers=headers,
                context_window=entry.context_window,
                max_output_tokens=entry.max_output_tokens,
            )
        from longboat.models.general import Endpoint, GeneralModel

        endpoint = Endpoint(
            provider=choice.provider,
            name=choice.model,
            wire=_WIRES[section.type],
            api_key=key,
            base_url=base_url,
            headers=headers,
            max_output_tokens=entry.max_output_tokens,
        )
        return GeneralModel(endpoint, context_window=entry.context_window)

    # Showing

    def _info(self, provider: str) -> ProviderInfo:
        section = self._section(provider)
        configured = provider in self._config.providers
        try:
            has_key = self._key(provider, section) is not None
        except ConfigInvalid:
            has_key = False
        keyless = section.type == LOCAL_TYPE or section.base_url is not None
        entries = section.models or _defaults(section) or ()
        return ProviderInfo(
            name=provider,
            type=section.type,
            source="config" if configured else "built in" if section.type == LOCAL_TYPE else "environment",
            base_url=_shown(section.base_url) if section.base_url else None,
            key="set" if has_key else "not needed" if keyless and section.api_key is None else "missing",
            models=tuple(dict.fromkeys(f"{provider}/{entry.id}" for entry in entries)),
            problem=self._problem(provider, section),
        )


def _defaults(section: ProviderSection) -> tuple[ModelEntry, ModelEntry] | None:
    """The large and the small model of a provider whose models are not listed."""
    if section.type == LOCAL_TYPE:
        entry = ModelEntry(id=local.NAME, context_window=local.CONTEXT_WINDOW)
        return entry, entry
    known = KNOWN.get(section.type)
    return (known.large, known.small) if known else None


def _entry(choice: _Choice) -> ModelEntry:
    """What is known of a model: from the configuration, our table, or the price list's."""
    listed: tuple[ModelEntry, ...] = (*choice.section.models, *(_defaults(choice.section) or ()))
    for entry in listed:
        if entry.id == choice.model:
            return entry
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(choice.model, None, choice.section.type, None)
    except LookupError:
        return ModelEntry(id=choice.model)
    return ModelEntry(id=choice.model, context_window=found.context_window or ModelEntry(id="").context_window)


def _shown(url: str) -> str:
    """The URL without a user and password in it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))


def _not_configured(message: str) -> ModelError:
    return ModelError(message, title="No model to ask", code="model_not_configured")
