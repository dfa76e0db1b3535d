"""Finds the settings in a project's file that need the user's trust.

Pure. A user who clones a repository has not read its `longboat.json`. Until they trust it, the file may only choose
among what the user has set up: it may not send data anywhere, use a secret, or run anything. Must not know which
projects are trusted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from longboat.config.jsonc import Path
from longboat.config.keys import PROVIDER_KEYS
from longboat.config.references import parse_reference

HARMLESS = frozenset({"$schema", "models", "titles", "retry", "on_restart"})
"""Sections that any project may set, except for a model that is named by its file. Every other section needs trust, so
a new section is safe by default."""

_PATHS = ("local//", "local/~/")
"""How the name of a model that is a path begins."""

_WHY = {
    "type": "your own file sets another type, so your key would go to another provider",
    "base_url": "your prompts and files would be sent to this address",
    "api_key": "your requests would use a key chosen by this file",
    "headers": "your requests would carry headers chosen by this file",
    "permissions": "the agent could act without asking you",
    "mcp": "commands from this file would be run",
    "lsp": "commands from this file would be run",
    "hooks": "commands from this file would be run",
    "web": "the agent could reach addresses chosen by this file",
    "limits": "the agent could work longer and spend more than you allow",
    "sandbox": "this file would decide how commands are sandboxed",
    "path": "a model would be loaded from this file",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One field that needs trust, and what it would do."""

    path: Path
    value: Any
    why: str


def demands(project: dict[str, Any], user: dict[str, Any]) -> tuple[Demand, ...]:
    """The fields of a project's valid file that need trust. A field that the user's own file sets alike needs none."""
    return tuple(_demands(project, user))


def _demands(project: dict[str, Any], user: dict[str, Any]) -> Iterator[Demand]:
    for key, value in project.items():
        if key == "providers":
            for name, section in value.items():
                yield from _of_provider(name, section, _section(_section(user, key), name))
        elif key == "permissions":
            # What a project denies only makes the agent do less.
            loosened = {name: rules for name, rules in value.items() if name != "deny"}
            yield from _changes((key,), loosened, user.get(key), key)
        elif key == "models":
            yield from _local_paths(value, _section(user, key))
        elif key not in HARMLESS:
            yield from _changes((key,), value, user.get(key), key)


def _of_provider(name: str, theirs: dict[str, Any], mine: dict[str, Any]) -> Iterator[Demand]:
    yield from _entry_paths(name, theirs.get("models", ()), mine.get("models"))
    for key, value in theirs.items():
        harmless = (
            key == "models" or (key == "type" and not mine) or (key == "api_key" and _is_its_own_key(theirs, mine))
        )
        if not harmless:
            yield from _changes(("providers", name, key), value, mine.get(key), key)


def _entry_paths(provider: str, theirs: Iterable[dict[str, Any]], mine: Any) -> Iterator[Demand]:
    """The files that a project's own list of models names. A model's file is read by native code, and may be made to
    break it."""
    known = [entry.get("path") for entry in mine if isinstance(entry, dict)] if isinstance(mine, list) else []
    for index, entry in enumerate(theirs):
        if (path := entry.get("path")) is not None and path not in known:
            yield _demand(("providers", provider, "models", index, "path"), path, "path")


def _local_paths(theirs: dict[str, Any], mine: dict[str, Any]) -> Iterator[Demand]:
    """The same for `models`, where a file can be named as `local//path`."""
    for role, value in theirs.items():
        names = value if isinstance(value, list) else [value]
        names_a_file = any(isinstance(name, str) and name.startswith(_PATHS) for name in names)
        if names_a_file and not _same(value, mine.get(role)):
            yield _demand(("models", role), value, "path")


def _is_its_own_key(theirs: dict[str, Any], mine: dict[str, Any]) -> bool:
    """Whether a known provider's usual variable goes to that provider's usual address, as teams commit it."""
    section = mine | theirs
    name = parse_reference(section["api_key"] or "")
    return name in PROVIDER_KEYS.get(section["type"], ()) and section.get("base_url") is None


def _changes(path: Path, theirs: Any, mine: Any, key: str) -> Iterator[Demand]:
    """One demand for a plain value; one for each entry of a mapping, which is merged with the user's."""
    if isinstance(theirs, dict):
        known = mine if isinstance(mine, dict) else {}
        changed = (
            (name, value) for name, value in theirs.items() if name not in known or not _same(known[name], value)
        )
        yield from (_demand((*path, name), value, key) for name, value in changed)
    elif not _same(theirs, mine):
        yield _demand(path, theirs, key)


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON does: Python treats 1, 1.0 and true as equal."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)


def _demand(path: Path, value: Any, key: str) -> Demand:
    return Demand(path=path, value=value, why=_WHY.get(key, "an untrusted file may not set this"))


def _section(value: dict[str, Any], key: str) -> dict[str, Any]:
    """A section of the user's file, which was not checked by itself."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}
