"""Reading `longboat.json`: the user's file and the project's, merged, checked, and complained about by file and line.

Owns where the files lie and which of them wins. Must not know what providers do with their values: `$NAME` references
stay as they are until someone calls `expand`, so that a key that is not used need not be set.
"""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from longboat.config import jsonc
from longboat.config.settings import Config
from longboat.errors import ConfigInvalid

FILE_NAME = "longboat.json"
MAX_BYTES = 4 << 20

_REFERENCE = re.compile(r"\$(?:(\$)|\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")


def load_config(directory: Path, *, environ: Mapping[str, str], user_dir: Path) -> Config:
    """The configuration of a workspace: the user's file overlaid, key by key, with the project's.

    `user_dir` is the user's home directory; `XDG_CONFIG_HOME` in `environ` moves the file elsewhere.
    """
    user = _read(user_config_file(environ, user_dir))
    project = _read(directory / FILE_NAME)
    if "server" in project.value:
        message = f"only the user's own file may hold this section: move it to {user.file}"
        raise _complaint((project,), ("server",), message)
    return _checked(_merged(_without_stray_keys(user.value, project.value), project.value), (project, user))


def load_user_config(*, environ: Mapping[str, str], user_dir: Path) -> Config:
    """The user's own configuration alone: what a server starts with before it knows any project."""
    user = _read(user_config_file(environ, user_dir))
    return _checked(user.value, (user,))


def user_config_file(environ: Mapping[str, str], user_dir: Path) -> Path:
    """Where the user's own `longboat.json` is, or would be."""
    base = environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else user_dir / ".config") / "longboat" / FILE_NAME


def expand(value: str, environ: Mapping[str, str]) -> str:
    """The value with `$NAME` and `${NAME}` replaced from the environment; `$$` is a dollar sign."""

    def replacement(match: re.Match[str]) -> str:
        name = match[2] or match[3]
        if name is None:
            return "$"
        if name not in environ:
            raise ConfigInvalid(f"The environment variable {name} is not set, but {FILE_NAME} refers to it: export it.")
        return environ[name]

    return _REFERENCE.sub(replacement, value)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `longboat.json`, for editors (`$schema`)."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Config)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """One file as it was read; a missing file reads as empty."""

    file: Path
    text: str
    value: dict[str, Any]


def _read(file: Path) -> _Source:
    try:
        text = _text(file)
    except (FileNotFoundError, NotADirectoryError):
        return _Source(file=file, text="{}", value={})
    except UnicodeDecodeError:
        raise ConfigInvalid(f"{file}:1: expected a text file in UTF-8") from None
    except OSError as error:
        raise ConfigInvalid(f"{file}: cannot be read: {error.strerror}") from None
    try:
        value = jsonc.parse(text)
    except jsonc.JsoncError as error:
        raise ConfigInvalid(f"{file}:{error.line}: {error}") from None
    if not isinstance(value, dict):
        raise ConfigInvalid(f"{file}:1: expected an object: {{ … }}")
    return _Source(file=file, text=text, value=value)


def _text(file: Path) -> str:
    """The text of a regular file of sensible size: a pipe or a device would hold up the whole server."""
    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ConfigInvalid(f"{file}: expected a regular file")
        if status.st_size > MAX_BYTES:
            raise ConfigInvalid(f"{file}: larger than {MAX_BYTES >> 20} MB, which no configuration is")
        return opened.read(MAX_BYTES).decode("utf-8-sig")


def _without_stray_keys(user: dict[str, Any], project: dict[str, Any]) -> dict[str, Any]:
    """The user's values less the secrets of providers whose address the project changes.

    A repository somebody cloned must not be able to have the user's key sent to an address of its own.
    """
    sections, theirs = user.get("providers"), project.get("providers")
    if not isinstance(sections, dict) or not isinstance(theirs, dict):
        return user
    moved = {name for name, section in theirs.items() if isinstance(section, dict) and "base_url" in section}
    kept = {name: _without_secrets(section) if name in moved else section for name, section in sections.items()}
    return {**user, "providers": kept}


def _without_secrets(section: Any) -> Any:
    if not isinstance(section, dict):
        return section
    return {key: value for key, value in section.items() if key not in ("api_key", "headers")}


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _checked(value: dict[str, Any], sources: tuple[_Source, ...]) -> Config:
    """The typed configuration. `sources` come with the winning file first: it is to blame for a value both give."""
    try:
        return msgspec.convert(value, Config)
    except msgspec.ValidationError as error:
        from longboat.config.problem import explain

        path, message = explain(error, value)
        raise _complaint(sources, path, message) from None


def _complaint(sources: tuple[_Source, ...], path: jsonc.Path, message: str) -> ConfigInvalid:
    places = [(source.file, jsonc.lines(source.text)) for source in sources if source.value]
    owner = path
    while not any(owner in lines for _, lines in places):
        owner = owner[:-1]  # a key that is missing has no line, but its owner has
    file, line = next((file, lines[owner]) for file, lines in places if owner in lines)
    return ConfigInvalid(f"{file}:{line}: {_spelled(path)}: {message}")


def _spelled(path: jsonc.Path) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")
