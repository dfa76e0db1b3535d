"""Reads `longboat.json`: merges the user's file and the project's, checks them, and reports errors by file and line.

Owns where the files are, which of them wins, and that an untrusted file is refused. Must not know what providers do
with their values: `$NAME` references stay as they are until someone calls `expand`, so a key that is not used does not
have to be set.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from longboat.config.demands import Demand, demands
from longboat.config.settings import Config
from longboat.config.source import Source, format_path, locate, read
from longboat.config.trust import TrustState, find_trust_state, trusted_file
from longboat.errors import ConfigInvalid, ProjectNotTrusted

FILE_NAME = "longboat.json"

_ADDING = frozenset({"permissions", "hooks"})
_NAMED = 5
"""The number of other fields that a refusal names; a file may have thousands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A project's file, for review before the user trusts it."""

    file: Path
    digest: str
    trust_state: TrustState
    demands: tuple[Demand, ...]


def load_config(directory: Path, *, environ: Mapping[str, str], user_dir: Path) -> Config:
    """The configuration of a workspace: the user's file overlaid, key by key, with the project's.

    `user_dir` is the user's home directory; `XDG_CONFIG_HOME` in `environ` moves the file elsewhere. A project's file
    that needs trust and has none is refused, so the result never contains an untrusted setting.
    """
    user, project = _sources(directory, environ, user_dir)
    config = _overlaid(user, project)
    found = _reviewed(user, project)
    if found.trust_state in (TrustState.STRANGER, TrustState.CHANGED):
        raise _refusal(found, user, project)
    return config


def review(directory: Path, *, environ: Mapping[str, str], user_dir: Path) -> Review:
    """Whether the project's file is trusted, and what needs trust in it. Nothing it names is run unless `TRUSTED`."""
    user, project = _sources(directory, environ, user_dir)
    _overlaid(user, project)
    return _reviewed(user, project)


def load_user_config(*, environ: Mapping[str, str], user_dir: Path) -> Config:
    """The user's own configuration alone: what a server starts with before it knows any project."""
    user = read(user_config_file(environ, user_dir))
    return _checked(user.value, (user,))


def user_config_file(environ: Mapping[str, str], user_dir: Path) -> Path:
    """Where the user's own `longboat.json` is, or would be."""
    base = environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else user_dir / ".config") / "longboat" / FILE_NAME


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `longboat.json`, for editors (`$schema`)."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Config)}


def _sources(directory: Path, environ: Mapping[str, str], user_dir: Path) -> tuple[Source, Source]:
    return read(user_config_file(environ, user_dir)), read(directory / FILE_NAME)


def _reviewed(user: Source, project: Source) -> Review:
    asked = demands(project.value, user.value)
    state = (
        find_trust_state(trusted_file(user.file), project.file.parent, project.digest) if asked else TrustState.HARMLESS
    )
    return Review(file=project.file, digest=project.digest, trust_state=state, demands=asked)


def _refusal(found: Review, user: Source, project: Source) -> ProjectNotTrusted:
    first, *others = found.demands
    since = "has changed since you trusted it" if found.trust_state is TrustState.CHANGED else "is not trusted"
    message = (
        f"{locate((project,), first.path)}: {first.why}, and this file {since}. Run `longboat trust "
        f"{shlex.quote(str(project.file.parent))}` to review it and decide, or move the setting to {user.file}."
    )
    if others:
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        message += f" The same applies to {', '.join(format_path(each.path) for each in others[:_NAMED])}{more}."
    return ProjectNotTrusted(message)


def _overlaid(user: Source, project: Source) -> Config:
    if "server" in project.value:
        where = locate((project,), ("server",))
        raise ConfigInvalid(f"{where}: this section is only allowed in your own file; move it to {user.file}")
    return _checked(_merge(_without_stray_keys(user.value, project.value), project.value), (project, user))


def _without_stray_keys(user: dict[str, Any], project: dict[str, Any]) -> dict[str, Any]:
    """The user's values without the secrets of providers whose address the project changes.

    This applies to trusted files too: the user reviewed the file, and the user's key was not in it.
    """
    sections, theirs = user.get("providers"), project.get("providers")
    if not isinstance(sections, dict) or not isinstance(theirs, dict):
        return user
    kept = {name: _without_secrets(mine) if _moves(theirs.get(name), mine) else mine for name, mine in sections.items()}
    return {**user, "providers": kept}


def _moves(theirs: Any, mine: Any) -> bool:
    both = isinstance(theirs, dict) and isinstance(mine, dict)
    return both and "base_url" in theirs and theirs["base_url"] != mine.get("base_url")


def _without_secrets(section: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key not in ("api_key", "headers")}


def _merge(below: dict[str, Any], above: dict[str, Any], *, adding: bool = False) -> dict[str, Any]:
    """`adding`: lists are concatenated. A project's rules and hooks never replace the user's own."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = _merge(old, value, adding=adding or key in _ADDING)
        elif adding and isinstance(old, list) and isinstance(value, list):
            merged[key] = [*old, *value]
        else:
            merged[key] = value
    return merged


def _checked(value: dict[str, Any], sources: tuple[Source, ...]) -> Config:
    """The typed configuration. `sources` have the winning file first: errors name it for a value that both set."""
    try:
        return msgspec.convert(value, Config)
    except msgspec.ValidationError as error:
        from longboat.config.problem import explain

        path, message = explain(error, value)
        raise ConfigInvalid(f"{locate(sources, path)}: {message}") from None
