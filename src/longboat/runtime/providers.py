"""The set-up of providers: which there are, whether one works, and the keys and models that a person chooses.

Owns what may be stored where: keys in the credentials file or the keyring, addresses and the default model in the
user's own `longboat.json`, nothing in a project. What reads files runs off the loop. Nothing returned has a key.
"""

import asyncio
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from longboat.config.credentials import Credentials, credentials_file, forget_key, read_credentials, store_key
from longboat.config.edit import Change, change_user_config
from longboat.config.load import load_user_config, user_config_file
from longboat.config.settings import Config, ModelEntry, ProviderSection
from longboat.errors import BadInput, ModelError, ProviderNotFound
from longboat.installation import install_command
from longboat.models import running_servers
from longboat.models.adapters import Access
from longboat.models.local.process import runtime_installed
from longboat.models.providers import CLOUDS, KNOWN, LISTINGS, LOCAL_TYPE, keys_of
from longboat.models.registry import Registry
from longboat.wire.providers import Need, Provider, ProviderCheck, ProviderPage, Source
from longboat.wire.requests import CheckProvider, ConnectProvider

if TYPE_CHECKING:
    from longboat.models.registry import ProviderInfo

CUSTOM = "custom"
"""The default name of a user's own endpoint."""

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_KEY = re.compile(r"[!-~]+")
_COMPATIBLE = ("openai-compatible", "anthropic-compatible")
_WITHOUT_ADDRESS = (*_COMPATIBLE, *CLOUDS)
"""Kinds of providers whose address only their owner knows."""
_NO_ADDRESS = "Enter the address of the server, such as http://localhost:8000/v1."
_SOURCES: dict[str, Source] = {
    "config": "configuration",
    "environment": "environment",
    "stored": "stored",
    "built in": "local",
    "found running": "running",
}


class Providers:
    """Rereads files and environment each time, because people change them while the server runs."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    async def list(self) -> ProviderPage:
        return await asyncio.to_thread(self._list)

    async def check(self, provider: str, request: CheckProvider) -> ProviderCheck:
        asked = await asyncio.to_thread(self._prepare_check, provider, request)
        if isinstance(asked, ProviderCheck):
            return asked
        from longboat.models.provider_check import check

        registry, section, access = asked
        found = await check(_label(provider), section, access)
        if found.problem is not None:
            return ProviderCheck(ok=False, problem=found.problem)
        entries = tuple(_with_usual_window(provider, entry) for entry in found.models)
        listed = msgspec.structs.replace(section, models=entries)
        models = await asyncio.to_thread(registry.describe_models, provider, listed)
        return ProviderCheck(ok=True, base_url=found.base_url, models=models)

    async def connect(self, provider: str, request: ConnectProvider) -> Provider:
        return await asyncio.to_thread(self._connect, provider, request)

    async def forget(self, provider: str) -> Provider:
        return await asyncio.to_thread(self._forget, provider)

    # Listing

    def _list(self) -> ProviderPage:
        config, registry = self._read()
        names = (*config.providers, *KNOWN, *CLOUDS, *(each.name for each in running_servers.USUAL), LOCAL_TYPE)
        items = [self._describe(config, registry, name) for name in dict.fromkeys(names)]
        items.append(_another(config))
        items.sort(key=lambda each: not each.connected)
        return ProviderPage(items=tuple(items), model=registry.describe().large)

    def _describe(self, config: Config, registry: Registry, name: str) -> Provider:
        if name not in config.providers:
            if name == CUSTOM:
                return _another(config)
            if name in {each.name for each in running_servers.USUAL}:
                return self._describe_running(name, looked_for=config.models.detect)
        info = registry.info(name)
        return Provider(
            id=name,
            name=_label(name),
            connected=info.problem is None,
            source=_SOURCES[info.source] if info.problem is None else None,
            stored=self._credentials().has(name),
            key=_needs_key(info),
            url=_needs_url(registry, registry.section(name)),
            variable=next(iter(keys_of(info.type)), None),
            key_page=LISTINGS[name].key_page if name in LISTINGS else None,
            base_url=info.base_url,
            problem=info.problem,
        )

    def _describe_running(self, name: str, *, looked_for: bool) -> Provider:
        servers = [each for each in running_servers.USUAL if each.name == name]
        running = looked_for and running_servers.look(servers) is not None
        return Provider(
            id=name,
            name=LISTINGS[name].label,
            connected=running,
            source="running" if running else None,
            key="none",
            url="optional",
            base_url=servers[0].base_url,
            problem=None if running else f"Start it with a model; it was not found at {servers[0].base_url}.",
        )

    # Checking

    def _prepare_check(
        self, provider: str, request: CheckProvider
    ) -> ProviderCheck | tuple[Registry, ProviderSection, Access]:
        """Return where to send the check, or the result if none is needed."""
        _check_entered(request)
        _, registry = self._read()
        before = self._section(registry, provider)
        if before.type == LOCAL_TYPE:
            return self._check_local(registry, provider)
        section = _moved(registry, before, request.base_url)
        access = _access(registry, provider, section, is_moved=section is not before)
        if request.api_key is not None:
            access = replace(access, key=_checked_key(request.api_key))
        if problem := _missing(provider, section, access):
            return ProviderCheck(ok=False, problem=problem)
        return registry, section, access

    def _check_local(self, registry: Registry, provider: str) -> ProviderCheck:
        if not runtime_installed():
            return ProviderCheck(ok=False, problem=f"Its runtime is not installed: run `{install_command('local')}`.")
        ready = tuple(model for model in registry.models_of(provider) if model.ready)
        return ProviderCheck(ok=True, models=ready)

    # Changing

    def _connect(self, provider: str, request: ConnectProvider) -> Provider:
        _check_entered(request)
        config, registry = self._read()
        before = self._section(registry, provider)
        if before.type == LOCAL_TYPE:  # it needs neither
            request = msgspec.structs.replace(request, api_key=None, base_url=None)
        section = _moved(registry, before, request.base_url)
        if registry.address_of(section) is None and section.type in _WITHOUT_ADDRESS:
            raise BadInput(_NO_ADDRESS, code="bad_base_url")
        if request.api_key is not None:
            used = registry.environment_key(provider, section) if section is before else None
            self._store(registry, provider, section, _checked_key(request.api_key), used=used)
        changes = _config_changes(config, provider, before, section, request)
        if changes:
            change_user_config(changes, environ=os.environ, user_dir=Path.home())
        return self._describe(*self._read(), provider)

    def _store(
        self, registry: Registry, provider: str, section: ProviderSection, api_key: str, *, used: str | None
    ) -> None:
        """Store the settings. Refuses a key that would not be used, because its owner would blame the next error on it.
        `used`: the environment's key."""
        if section.api_key is not None:
            raise BadInput(
                f"Your longboat.json sets the key of {provider}, which comes first. "
                f"Change providers.{provider}.api_key there.",
                code="key_set_elsewhere",
            )
        if used == api_key:
            return
        if used is not None:
            name = next(each for each in keys_of(section.type) if os.environ.get(each))
            raise BadInput(
                f"The server's environment sets {name}, which comes first. Unset it, then restart the server with "
                "`longboat stop`.",
                code="key_set_elsewhere",
            )
        file = credentials_file(user_config_file(os.environ, Path.home()))
        store_key(file, provider, kind=section.type, base_url=registry.address_of(section), api_key=api_key)

    def _forget(self, provider: str) -> Provider:
        forgotten = forget_key(credentials_file(user_config_file(os.environ, Path.home())), provider)
        config, registry = self._read()
        if not forgotten and provider not in {*config.providers, *LISTINGS, CUSTOM}:
            raise ProviderNotFound(provider)
        if provider in {*config.providers, *LISTINGS, CUSTOM}:
            return self._describe(config, registry, provider)
        return Provider(id=provider, name=provider, connected=False, key="optional", url="required")

    # Reading

    def _read(self) -> tuple[Config, Registry]:
        config = load_user_config(environ=os.environ, user_dir=Path.home())
        registry = Registry(config, os.environ, data_dir=self._data_dir, credentials=self._credentials())
        return config, registry

    def _credentials(self) -> Credentials:
        return read_credentials(credentials_file(user_config_file(os.environ, Path.home())))

    def _section(self, registry: Registry, provider: str) -> ProviderSection:
        """Return the provider's section. An unknown name is the user's own endpoint."""
        if not _ID.fullmatch(provider):
            raise ProviderNotFound(provider)
        try:
            return registry.section(provider)
        except ModelError:
            return ProviderSection(type="openai-compatible")


def _config_changes(
    config: Config, provider: str, before: ProviderSection, section: ProviderSection, request: ConnectProvider
) -> list[Change]:
    """What to set in the user's own longboat.json."""
    changes: list[Change] = []
    own = ("providers", provider)
    known = config.providers.get(provider)
    is_running_server = provider in {each.name for each in running_servers.USUAL}
    if known is None and (section.base_url != before.base_url or (is_running_server and request.model)):
        entry = {"id": request.model, "context_window": request.context_window}
        kept = {key: value for key, value in entry.items() if value is not None}
        models = [kept] if request.model and section.type in _COMPATIBLE else []
        changes.append(
            (own, {"type": section.type, "base_url": section.base_url} | ({"models": models} if models else {}))
        )
    elif section.base_url != before.base_url:
        changes.append(((*own, "base_url"), section.base_url))
    if request.model is not None:
        chosen, names = f"{provider}/{request.model}", config.models.names("large")
        listed = [chosen, *(each for each in names if each != chosen)]
        changes.append((("models", "large"), listed if len(names) > 1 else chosen))
    return changes


def _access(registry: Registry, provider: str, section: ProviderSection, *, is_moved: bool) -> Access:
    """How to reach the provider. A new address never gets a key that was meant for another."""
    if not is_moved:
        return registry.access(provider, section)
    return Access(key=registry.stored_key(provider, section), base_url=registry.address_of(section))


def _missing(provider: str, section: ProviderSection, access: Access) -> str | None:
    """What to enter before a check makes sense."""
    if access.base_url is None and section.type in _WITHOUT_ADDRESS:
        return _NO_ADDRESS
    if access.key is None and access.base_url is None:
        page = LISTINGS[provider].key_page if provider in LISTINGS else None
        return f"{_label(provider)} needs an API key.{f' Create one at {page}.' if page else ''}"
    return None


def _moved(registry: Registry, section: ProviderSection, base_url: str | None) -> ProviderSection:
    """Move the section to another address, without the keys and headers that the configuration has for the old one."""
    if base_url is None:
        return section
    address = _checked_url(base_url)
    if address == registry.address_of(section):
        return section
    if section.api_key is not None or section.headers:
        raise BadInput(
            "Your longboat.json sets a key or headers for this provider. Change its base_url there.",
            code="key_set_elsewhere",
        )
    return msgspec.structs.replace(section, base_url=address.replace("$", "$$"))


def _check_entered(request: CheckProvider | ConnectProvider) -> None:
    """Refuse what cannot be a key or an address, for any provider."""
    if request.api_key is not None:
        _checked_key(request.api_key)
    if request.base_url is not None:
        _checked_url(request.base_url)


def _checked_url(given: str) -> str:
    url = given.rstrip("/")
    try:
        parts = urlsplit(url)
        plain = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        plain = False
    if not plain or not _KEY.fullmatch(url) or parts.query or parts.fragment:
        raise BadInput("The base URL must look like https://example.com/v1.", code="bad_base_url")
    if parts.username is not None or parts.password is not None:
        raise BadInput(
            "The base URL must not contain a user or password. Enter the API key in its own field.", code="bad_base_url"
        )
    return url


def _checked_key(given: str) -> str:
    key = given.strip()
    if not _KEY.fullmatch(key):
        raise BadInput(
            "An API key has no spaces, line breaks or special characters: copy it again.", code="bad_api_key"
        )
    return key


def _needs_key(info: "ProviderInfo") -> Need:
    if info.type == LOCAL_TYPE:
        return "none"
    return "optional" if info.type in _COMPATIBLE or info.base_url is not None else "required"


def _needs_url(registry: Registry, section: ProviderSection) -> Need:
    if section.type in _COMPATIBLE:
        return "required"
    if section.type in CLOUDS:
        return "required" if registry.address_of(section) is None else "optional"
    return "none"


def _with_usual_window(provider: str, entry: ModelEntry) -> ModelEntry:
    if provider != "ollama" or entry.context_window is not None:
        return entry
    return ModelEntry(id=entry.id, context_window=running_servers.OLLAMA_WINDOW)


def _label(provider: str) -> str:
    return LISTINGS[provider].label if provider in LISTINGS else provider


def _another(config: Config) -> Provider:
    """An entry for a server that is not configured yet, under a free name."""
    names = (CUSTOM, *(f"{CUSTOM}-{number}" for number in range(2, len(config.providers) + 3)))
    free = next(name for name in names if name not in config.providers)
    return Provider(id=free, name="Another server (OpenAI-compatible)", connected=False, key="optional", url="required")
