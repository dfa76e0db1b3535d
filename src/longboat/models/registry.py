"""Chooses the model: from names like `provider/model`, the configuration and the usual keys in the environment.

Owns the choice. Must not know any wire format: `adapters.py` makes the adapters. Keys are read here and passed on;
nothing else that leaves this module contains one.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from longboat.config.credentials import Credentials
from longboat.config.settings import Config, ModelEntry, ProviderSection
from longboat.errors import ConfigInvalid, ModelError
from longboat.installation import install_command
from longboat.models import catalogue, refreshed_catalogue, running_servers
from longboat.models.adapters import (
    Access,
    Choice,
    RetirableModel,
    abilities_of,
    build,
    defaults_of,
    entry_of,
    price_of,
    window_of,
)
from longboat.models.error_quotes import display_url
from longboat.models.fallback import advice_on
from longboat.models.local.files import (
    LocalModelSpec,
    all_entries,
    describe_local,
    local_spec,
    missing,
    offered_entries,
)
from longboat.models.local.model import LocalModels
from longboat.models.local.process import runtime_installed
from longboat.models.protocol import Closable, Model
from longboat.models.providers import CLOUDS, KNOWN, LOCAL_TYPE, cloud_address, cloud_wants, keys_of, named_section
from longboat.wire.listings import LocalModelInfo, ModelInfo

__all__ = ["KNOWN", "Overview", "ProviderInfo", "Registry"]

Role = Literal["large", "small"]

NO_CREDENTIALS = Credentials(file=Path(os.devnull))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderInfo:
    """A provider as `longboat doctor` and `longboat models` show it: no secrets."""

    name: str
    type: str
    source: Literal["config", "environment", "stored", "built in", "found running"]
    base_url: str | None
    key: Literal["set", "missing", "not needed"]
    models: tuple[str, ...]
    problem: str | None = None
    """What to do before it can be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What is configured. `large` and `small` are the models with these roles; None if there is none: see `problem`."""

    large: str | None
    small: str | None
    problem: str | None
    providers: tuple[ProviderInfo, ...]
    large_list: tuple[str, ...] = ()
    """All models of the role that are ready, in order of preference."""
    small_list: tuple[str, ...] = ()
    hint: str | None = None
    """What could be set better."""
    advice: str | None = None
    """For someone who got `large` without choosing it: that nothing is configured, and how to do it."""


class Registry:
    """The models of one configuration. Pass `local_models` to share their processes; the caller closes them."""

    def __init__(
        self,
        config: Config,
        environ: Mapping[str, str],
        *,
        data_dir: Path,
        credentials: Credentials = NO_CREDENTIALS,
        local_models: LocalModels | None = None,
        look: Callable[[], running_servers.Found | None] = running_servers.look,
    ) -> None:
        """`look` finds a model server that runs on this machine; it is asked when nothing else is configured."""
        self._config = config
        self._environ = environ
        self._data_dir = data_dir
        self._credentials = credentials
        self._own_local_models = LocalModels(data_dir)
        self._local_models = local_models or self._own_local_models
        self._look = look
        self._found: running_servers.Found | None = None
        self._models: dict[str, RetirableModel] = {}

    def resolve(self, name: str | None, role: Role) -> Model:
        """The model called `name`, or the preferred one that plays `role`. The same name is the same object."""
        return self.line_up(name, role)[0]

    def line_up(self, name: str | None, role: Role) -> tuple[Model, ...]:
        """Return the model called `name`, or all models for `role`, in order of preference. If several are configured,
        leaves out those that are not ready."""
        choices = [self._named(name, role)] if name else self._choices(role)
        return tuple(self._model(choice) for choice in choices)

    def _model(self, choice: Choice) -> Model:
        if choice.section.type == LOCAL_TYPE:
            return self._local(choice)
        if choice.name not in self._models:
            self._models[choice.name] = RetirableModel(self._built(choice))
        return self._models[choice.name]

    def describe(self) -> Overview:
        try:
            larges, smalls = self._choices("large"), self._choices("small")
            large, small = larges[0], smalls[0]
            for choice in (large, small):
                self._check_ready(choice)
        except ModelError as error:
            return Overview(large=None, small=None, problem=error.message, providers=self._infos())
        return Overview(
            large=large.name,
            small=small.name,
            large_list=tuple(choice.name for choice in larges),
            small_list=tuple(choice.name for choice in smalls),
            problem=None,
            providers=self._infos(),
            hint=self._hint(large),
            advice=advice_on(self._config, large.provider),
        )

    def models(self) -> tuple[ModelInfo, ...]:
        """The models that a prompt can name, ready ones first."""
        found = [model for info in self._infos() for model in self.models_of(info.name)]
        return tuple(sorted(found, key=lambda model: not model.ready))

    def models_of(self, provider: str) -> tuple[ModelInfo, ...]:
        section = self._section(provider)
        problem = self._problem(provider, section)
        is_local = section.type == LOCAL_TYPE
        entries = all_entries(section, self._data_dir) if is_local else self._entries(section)
        choices = (Choice(provider=provider, section=section, model=entry.id) for entry in entries)
        return tuple(self._model_info(choice, problem) for choice in choices)

    async def retire(self) -> None:
        """The configuration is no longer used: each model closes as soon as its last stream has ended."""
        for model in self._models.values():
            await model.retire()

    async def aclose(self) -> None:
        models, self._models = self._models, {}
        for model in models.values():
            await model.aclose()
        await self._own_local_models.aclose()

    # For setting up

    def section(self, provider: str) -> ProviderSection:
        """Return the section of a provider; raises ModelError for an unknown name."""
        return self._section(provider)

    def access(self, provider: str, section: ProviderSection) -> Access:
        """How it is reached. Raises ConfigInvalid if a reference leads nowhere."""
        return self._access(provider, section)

    def info(self, provider: str) -> ProviderInfo:
        return self._info(provider)

    def describe_models(self, provider: str, section: ProviderSection) -> tuple[ModelInfo, ...]:
        """What is known of the section's models."""
        choices = (Choice(provider=provider, section=section, model=entry.id) for entry in section.models)
        return tuple(self._model_info(choice, None) for choice in choices)

    # Choosing

    def _named(self, name: str, role: Role) -> Choice:
        """The choice that `name` spells: `provider/model`, or a provider alone for its default."""
        provider, _, model = name.partition("/")
        section = self._section(provider)
        return Choice(provider=provider, section=section, model=model or self._default_model(provider, section, role))

    def _choices(self, role: Role) -> list[Choice]:
        """The models for a role, in order of preference; never empty."""
        models = self._config.models
        choices = [self._named(name, role) for name in models.names(role)]
        if not choices and role == "small":
            choices = [self._small_beside(self._named(name, "large")) for name in models.names("large")]
        if not choices:
            return [self._found_by_itself(role)]
        ready = [choice for choice in choices if self._is_ready(choice)]
        return list({choice.name: choice for choice in ready or choices[:1]}.values())

    def _is_ready(self, choice: Choice) -> bool:
        try:
            self._check_ready(choice)
        except ModelError:
            return False
        return True

    def _found_by_itself(self, role: Role) -> Choice:
        """Where nothing is configured."""
        for provider in (*self._config.providers, *KNOWN):
            if choice := self._ready(provider, role):
                return choice
        if self._config.models.detect and (found := self._look()) is not None:
            self._found = found
        for provider in (*([self._found[0]] if self._found else []), LOCAL_TYPE):
            if choice := self._ready(provider, role):
                return choice
        raise _not_configured("No model is configured. Run `longboat connect` (in the apps: /connect).")

    def _ready(self, provider: str, role: Role) -> Choice | None:
        """The provider's default, if it has one and nothing is missing."""
        section = self._section(provider)
        if self._problem(provider, section) is not None or not (section.models or defaults_of(section)):
            return None
        return Choice(provider=provider, section=section, model=self._default_model(provider, section, role))

    def _small_beside(self, large: Choice) -> Choice:
        """The small model of the provider that has the large one, where we know one; else the large one again."""
        if large.section.type == LOCAL_TYPE:
            return large  # two models would need the memory of both
        if large.section.models or large.section.base_url or not (defaults := defaults_of(large.section)):
            return large
        return Choice(provider=large.provider, section=large.section, model=defaults[1].id)

    def _default_model(self, provider: str, section: ProviderSection, role: Role) -> str:
        if section.models:
            return section.models[0].id
        if defaults := defaults_of(section):
            return defaults[0 if role == "large" else 1].id
        raise _not_configured(f"Which model of {provider!r}? Name it as {provider}/MODEL.")

    def _section(self, provider: str) -> ProviderSection:
        if provider in self._config.providers:
            return self._config.providers[provider]
        if self._found is not None and self._found[0] == provider:
            return self._found[1]
        if section := named_section(provider, self._environ) or running_servers.section_of(provider):
            return section
        names = ", ".join(dict.fromkeys((*self._config.providers, *KNOWN, *CLOUDS, LOCAL_TYPE)))
        raise _not_configured(
            f"There is no provider {provider!r}. Use provider/model with a provider from longboat.json or one of "
            f"{names}."
        )

    # What a provider needs

    def _key(self, provider: str, section: ProviderSection) -> str | None:
        """The provider's key: the configuration's, else the environment's, else the stored one."""
        if section.api_key is not None:
            return self._expanded(section.api_key)
        return self.environment_key(provider, section) or self.stored_key(provider, section)

    def environment_key(self, provider: str, section: ProviderSection) -> str | None:
        """It goes to the provider's own address only, not to a base_url that some project's file gives."""
        if provider in self._config.providers and section.base_url is not None:
            return None
        found = (self._environ.get(key) for key in keys_of(section.type))
        return next((key for key in found if key), None)

    def stored_key(self, provider: str, section: ProviderSection) -> str | None:
        """It goes only to the address it was stored for."""
        if not self._credentials.has(provider):
            return None
        return self._credentials.key_for(provider, section.type, self.address_of(section))

    def address_of(self, section: ProviderSection) -> str | None:
        """Where requests go; None is the provider's own address, which we know."""
        if section.base_url:
            return self._expanded(section.base_url)
        return cloud_address(section.type, self._environ) if section.type in CLOUDS else None

    def _problem(self, provider: str, section: ProviderSection) -> str | None:
        """What to do before this provider can be used, or None."""
        try:
            key = self._access(provider, section).key
        except ConfigInvalid as error:
            return error.message
        if section.type == LOCAL_TYPE:
            return None if runtime_installed() else f"Run `{install_command('local')}`."
        if section.type in ("openai-compatible", "anthropic-compatible"):
            return None if section.base_url else f"Set providers.{provider}.base_url in longboat.json."
        if key is None and not section.base_url:
            return f"Run `longboat connect {provider}`, or set {' or '.join(keys_of(section.type))}."
        if section.type in CLOUDS and not section.base_url and cloud_address(section.type, self._environ) is None:
            return f"Run `longboat connect {provider}`, or set {cloud_wants(section.type)}."
        return None

    def _check_usable(self, provider: str, section: ProviderSection) -> None:
        if problem := self._problem(provider, section):
            raise _not_configured(f"Provider {provider!r} is not ready: {problem}")

    def _check_ready(self, choice: Choice) -> None:
        """Raises ModelError if the model cannot be asked: something of its provider or its own file is missing."""
        self._check_usable(choice.provider, choice.section)
        if choice.section.type == LOCAL_TYPE:
            describe_local(self._local_spec(choice))

    def _expanded(self, value: str) -> str:
        from longboat.config.references import expand

        return expand(value, self._environ)

    # Building

    def _built(self, choice: Choice) -> Closable:
        self._check_usable(choice.provider, choice.section)
        refreshed_catalogue.use_prices(self._data_dir)
        try:
            return build(choice, self._access(choice.provider, choice.section), self._data_dir)
        except ConfigInvalid as error:
            raise _not_configured(error.message) from None

    def _local(self, choice: Choice) -> Model:
        self._check_usable(choice.provider, choice.section)
        return self._local_models.with_tools(self._local_spec(choice))

    def _local_spec(self, choice: Choice) -> LocalModelSpec:
        spec = local_spec(choice.provider, entry_of(choice), self._data_dir)
        if problem := missing(spec):
            raise _not_configured(f"{choice.name} is not downloaded. {problem}")
        return spec

    def _access(self, provider: str, section: ProviderSection) -> Access:
        headers = {name: self._expanded(value) for name, value in section.headers.items()}
        return Access(key=self._key(provider, section), base_url=self.address_of(section), headers=headers)

    def accesses(self) -> dict[str, tuple[ProviderSection, Access]]:
        """Every provider that is ready, and how it is reached: for a refresh of what is known of its models."""
        names = dict.fromkeys((*self._config.providers, *KNOWN, *CLOUDS))
        sections = {name: self._section(name) for name in names}
        return {
            name: (section, self._access(name, section))
            for name, section in sections.items()
            if self._problem(name, section) is None
        }

    # Showing

    def _infos(self) -> tuple[ProviderInfo, ...]:
        found = [self._found[0]] if self._found else []
        names = dict.fromkeys((*self._config.providers, *KNOWN, *CLOUDS, *found, LOCAL_TYPE))
        return tuple(self._info(name) for name in names)

    def _entries(self, section: ProviderSection) -> tuple[ModelEntry, ...]:
        """The models of a provider that we know of, each once."""
        if section.type == LOCAL_TYPE:
            return offered_entries(section, self._data_dir)
        return tuple({entry.id: entry for entry in section.models or defaults_of(section) or ()}.values())

    def _model_info(self, choice: Choice, problem: str | None) -> ModelInfo:
        if choice.section.type == LOCAL_TYPE:
            return self._local_info(choice, problem)
        abilities = abilities_of(choice, self._data_dir)
        return ModelInfo(
            name=choice.name,
            ready=problem is None,
            problem=problem,
            context_window=window_of(choice, self._data_dir),
            images=abilities.images,
            effort=abilities.effort,
            price=None if problem else price_of(choice),
            default_effort=entry_of(choice).effort if abilities.effort else None,
        )

    def _local_info(self, choice: Choice, problem: str | None) -> ModelInfo:
        found: LocalModelInfo | None = None
        try:
            spec = local_spec(choice.provider, entry_of(choice), self._data_dir)
            found, problem = describe_local(spec), problem or missing(spec)
        except ModelError as error:
            problem = problem or error.message
        return ModelInfo(
            name=choice.name,
            ready=problem is None,
            problem=problem,
            context_window=window_of(choice, self._data_dir),
            images=False,
            effort=False,
            price=price_of(choice),
            local=found,
        )

    def _hint(self, choice: Choice) -> str | None:
        if window_of(choice, self._data_dir) is not None:
            return None
        return (
            f"The context window of {choice.name} is unknown; assuming {catalogue.DEFAULT_WINDOW:,} tokens. Set "
            f"its context_window in providers.{choice.provider}.models, or run `longboat models refresh`."
        )

    def _source(
        self, provider: str, section: ProviderSection
    ) -> Literal["config", "built in", "found running", "environment", "stored"]:
        if provider in self._config.providers:
            return "config"
        if section.type == LOCAL_TYPE:
            return "built in"
        if self._found is not None and self._found[0] == provider:
            return "found running"
        if self.environment_key(provider, section) is None and self.stored_key(provider, section) is not None:
            return "stored"
        return "environment"

    def _info(self, provider: str) -> ProviderInfo:
        section = self._section(provider)
        try:
            has_key = self._key(provider, section) is not None
        except ConfigInvalid:
            has_key = False
        keyless = section.type == LOCAL_TYPE or section.base_url is not None
        return ProviderInfo(
            name=provider,
            type=section.type,
            source=self._source(provider, section),
            base_url=display_url(section.base_url) if section.base_url else None,
            key="set" if has_key else "not needed" if keyless and section.api_key is None else "missing",
            models=tuple(f"{provider}/{entry.id}" for entry in self._entries(section)),
            problem=self._problem(provider, section),
        )


def _not_configured(message: str) -> ModelError:
    return ModelError(message, title="Cannot run the prompt", code="model_not_configured")
