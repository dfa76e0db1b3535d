"""Which environment variables matter to a server, and whether the running one has them. Names only, never values."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longboat.client.address import read_discovery
from longboat.config.keys import PROVIDER_KEYS, keys_set
from longboat.errors import LongboatError

if TYPE_CHECKING:
    from longboat.config.settings import Config


def missing_keys(cwd: str) -> tuple[str, ...]:
    """The variables set here, with which models are reached, that the discovered server was started without."""
    found = read_discovery(os.environ)
    return tuple(sorted(_wanted(cwd) - set(found.keys))) if found is not None else ()


def _wanted(cwd: str) -> set[str]:
    """The usual keys, and what longboat.json refers to as `$NAME`, as far as they are set here."""
    import msgspec

    config = config_of(cwd)
    named = _references(msgspec.to_builtins(config)) if config is not None else ()
    return {*keys_set(os.environ), *(name for name in named if os.environ.get(name))}


def keys_of(provider: str, cwd: str) -> tuple[str, ...]:
    """The variables that may hold a provider's key."""
    config = config_of(cwd)
    configured = config.providers.get(provider) if config is not None else None
    if configured is not None and configured.api_key is not None:
        return tuple(_references(configured.api_key))
    return PROVIDER_KEYS.get(provider, ())


def config_of(cwd: str) -> "Config | None":
    """The directory's configuration; the user's own where the project's file is not taken; None if that is wrong."""
    from longboat.config.load import load_config, load_user_config

    with suppress(LongboatError):  # the server tells of it, where it matters
        return load_config(Path(cwd), environ=os.environ, user_dir=Path.home())
    with suppress(LongboatError):
        return load_user_config(environ=os.environ, user_dir=Path.home())
    return None


def _references(value: Any) -> Iterator[str]:
    from longboat.config.references import REFERENCE

    match value:
        case str():
            yield from (found["braced"] or found["bare"] for found in REFERENCE.finditer(value) if not found["dollar"])
        case dict():
            for item in value.values():
                yield from _references(item)
        case list() | tuple():
            for item in value:
                yield from _references(item)
