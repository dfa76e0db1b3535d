"""Provides models: each directory's configuration, reread when its files change, and its registry.

Owns adapters and the local model's process for the life of the server. Heavy imports happen off the event loop, on
first use.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import msgspec

from longboat.config.credentials import Credentials, credentials_file, read_credentials
from longboat.config.load import FILE_NAME, load_config, user_config_file
from longboat.config.settings import Config
from longboat.config.trust import trusted_file
from longboat.errors import ConfigInvalid
from longboat.models.failover import Cooldowns, Lineup
from longboat.models.fallback import advice_on
from longboat.models.protocol import Model, ModelRole
from longboat.runtime.clock import as_text
from longboat.tasks import Tasks
from longboat.wire.listings import ModelCooldown, ModelInfo, ModelPage

if TYPE_CHECKING:
    from longboat.models.local.model import LocalModels
    from longboat.models.registry import Registry

Stamp = tuple[tuple[int, int] | None, ...]
Listener = Callable[[], None]


class ModelSource(Protocol):
    """Where models come from; tests supply their own."""

    def resolve(self, name: str | None, role: ModelRole) -> Model: ...


class ModelPool:
    def __init__(self, data_dir: Path, *, source: ModelSource | None = None) -> None:
        self._data_dir = data_dir
        self._source = source
        self._configs: dict[Path, tuple[Stamp, Config | ConfigInvalid]] = {}
        self._credentials: dict[Path, Credentials] = {}
        """As they were read with the directory's configuration."""
        self._files: dict[Path, tuple[str, ...]] = {}
        self._listeners: dict[Path, Listener] = {}
        self._found: dict[tuple[Path, str | None, ModelRole], tuple[Config, Lineup]] = {}
        """Models that need no look on another thread, as long as the configuration is the same object."""
        self._registries: dict[bytes, Registry] = {}
        self._cooldowns: defaultdict[bytes, Cooldowns] = defaultdict(Cooldowns)
        """Of each registry: with another key or address, a provider may work again at once."""
        self._used: dict[Path, bytes] = {}
        """Which registry each directory has its models from."""
        self._closing = Tasks()
        self._local: LocalModels | None = None
        self._resolving = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._closing.aclose()
        for registry in self._registries.values():
            await registry.aclose()
        if self._local is not None:
            await self._local.aclose()

    def config(self, directory: Path) -> Config:
        """Return the configuration of a directory as its files are now."""
        stamp = self._stamp(directory)
        known = self._configs.get(directory)
        if known is None or known[0] != stamp:
            known = self._configs[directory] = (stamp, self._read(directory))
        if isinstance(known[1], ConfigInvalid):
            raise known[1].with_traceback(None)  # otherwise it would keep the frames of every earlier caller
        return known[1]

    async def look(self, directory: Path) -> None:
        """Reread the configuration if its files have changed. Checks off the event loop first, because no request waits
        for this and the disk may be slow."""
        stamp = await asyncio.to_thread(self._stamp, directory)
        known = self._configs.get(directory)
        if known is None or known[0] != stamp:
            with suppress(ConfigInvalid):
                self.config(directory)

    def listen(self, directory: Path, listener: Listener | None) -> None:
        """Call this function when the configuration of a directory has changed; None to stop."""
        if listener is None:
            self._listeners.pop(directory, None)
        else:
            self._listeners[directory] = listener

    def _stamp(self, directory: Path) -> Stamp:
        files = self._files.get(directory)
        if files is None:
            files = self._files[directory] = _files_of(directory)
        return tuple(_stamp(file) for file in files)

    def _read(self, directory: Path) -> Config | ConfigInvalid:
        """Read the files; return the same object as before if they say the same. Another stored key makes a new object,
        and so new models."""
        now, credentials = _load(directory)
        known, keys_before = self._configs.get(directory), self._credentials.get(directory)
        self._credentials[directory] = credentials
        if known is None:
            return now
        if keys_before == credentials and _says(known[1]) == _says(now):
            return known[1]
        if (listener := self._listeners.get(directory)) is not None:
            listener()
        return now

    async def lineup(self, directory: Path, name: str | None, role: ModelRole) -> Lineup:
        """Return the model of that name, or the models of that role in order of preference."""
        if self._source is not None:
            return Lineup((self._source.resolve(name, role),))
        found = self._found.get((directory, name, role))
        if found is not None and found[0] is self.config(directory):
            return found[1]
        async with self._resolving:
            config, credentials = self.config(directory), self._credentials[directory]
            key = _key_of(config, credentials)
            self._turn_to(directory, key)
            models = await asyncio.to_thread(self._resolve, config, credentials, key, name, role)
            lineup = Lineup(models, self._cooldowns[key])
            self._found[directory, name, role] = (config, lineup)
        return lineup

    async def list_models(self, directory: Path) -> ModelPage:
        """List the models that a prompt in this directory can name."""
        if self._source is not None:
            model = self._source.resolve(None, "large")
            name = f"{model.provider}/{model.name}"
            return ModelPage(items=(ModelInfo(name=name, ready=True),), large=name, small=name)
        config = self.config(directory)
        return await asyncio.to_thread(self._look_up, config, self._credentials[directory])

    def _look_up(self, config: Config, credentials: Credentials) -> ModelPage:
        from longboat.models.registry import Registry

        registry = Registry(config, os.environ, data_dir=self._data_dir, credentials=credentials)
        overview = registry.describe()
        cooldowns = self._cooldowns[_key_of(config, credentials)]
        return ModelPage(
            items=registry.models(),
            large=_first(overview.large_list, cooldowns),
            small=_first(overview.small_list, cooldowns),
            large_list=overview.large_list,
            small_list=overview.small_list,
            cooldowns=tuple(_describe_cooldowns((*overview.large_list, *overview.small_list), cooldowns)),
            problem=overview.problem,
            advice=overview.advice,
        )

    def advice(self, directory: Path, model: Model) -> str | None:
        """Return a notice for someone who got this model without naming it."""
        return advice_on(self.config(directory), model.provider) if self._source is None else None

    def _turn_to(self, directory: Path, key: bytes) -> None:
        """Use this registry for the directory from now on. Retire the previous one if no other directory uses it."""
        before = self._used.get(directory)
        if before == key:
            return
        self._used[directory] = key
        self._found = {asked: found for asked, found in self._found.items() if asked[0] != directory}
        if before in self._registries and before not in self._used.values():
            # Beside the run that happens to be first after an edit: it neither waits for this nor fails with it.
            self._closing.spawn(self._registries.pop(before).retire(), name="retire models")
            self._cooldowns.pop(before, None)

    def _resolve(
        self, config: Config, credentials: Credentials, key: bytes, name: str | None, role: ModelRole
    ) -> tuple[Model, ...]:
        from longboat.models.local.model import LocalModels
        from longboat.models.registry import Registry

        if self._local is None:
            self._local = LocalModels(self._data_dir)
        if key not in self._registries:
            self._registries[key] = Registry(
                config, os.environ, data_dir=self._data_dir, credentials=credentials, local_models=self._local
            )
        return self._registries[key].line_up(name, role)


def _key_of(config: Config, credentials: Credentials) -> bytes:
    return msgspec.json.encode(config) + credentials.digest.encode()


def _first(names: Sequence[str], cooldowns: Cooldowns) -> str | None:
    """The model that answers now."""
    return min(names, key=cooldowns.left_s, default=None)


def _describe_cooldowns(names: Iterable[str], cooldowns: Cooldowns) -> Iterator[ModelCooldown]:
    for name in dict.fromkeys(names):
        if (cooldown := cooldowns.of(name)) is not None:
            until = as_text(datetime.fromtimestamp(cooldown.until, UTC))
            yield ModelCooldown(name=name, until=until, why=cooldown.why)


def _load(directory: Path) -> tuple[Config | ConfigInvalid, Credentials]:
    file = credentials_file(user_config_file(os.environ, Path.home()))
    try:
        credentials = read_credentials(file)
        return load_config(directory, environ=os.environ, user_dir=Path.home()), credentials
    except ConfigInvalid as error:
        return error, Credentials(file=file)


def _says(found: Config | ConfigInvalid) -> Config | str:
    return found.message if isinstance(found, ConfigInvalid) else found


def _files_of(directory: Path) -> tuple[str, ...]:
    """As strings: they are looked at several times in every run, and a Path takes longer than its stat."""
    user = user_config_file(os.environ, Path.home())
    return str(directory / FILE_NAME), str(user), str(trusted_file(user)), str(credentials_file(user))


def _stamp(file: str) -> tuple[int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
