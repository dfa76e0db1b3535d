"""Finds the environment variables a server needs and whether the running one has them. Names only, never values."""

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
    """The variables for models that are set in this shell but were not set when the discovered server started."""
    found = read_discovery(os.environ)
    return tuple(sorted(_wanted(cwd) - set(found.keys))) if found is not None else ()


def _wanted(cwd: str) -> set[str]:
    """The usual provider keys and the `$NAME` references of longboat.json that are set in this shell."""
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
    """The directory's configuration; the user's own if the project's file is invalid; None if that is invalid too."""
    from longboat.config.load import load_config, load_user_config

    with suppress(LongboatError):  # the server reports it where it matters
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
