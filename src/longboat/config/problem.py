"""Explains an error in a configuration: the exact key, what was expected there, and a suggestion.

Imported only when there is an error. Must not know files or lines.
"""

import difflib
import re
from typing import Any

import msgspec
from msgspec import inspect

from longboat.config.jsonc import Path
from longboat.config.settings import Config

_STEP = re.compile(r"\.([\w$]+)|\[(\d+)\]|\[(\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)


def explain(error: msgspec.ValidationError, value: dict[str, Any]) -> tuple[Path, str]:
    """The path of the wrong key, and the message for the user."""
    message, steps = _split(str(error))
    path = _resolve(value, str(error), steps, ())
    if unknown := _UNKNOWN.fullmatch(message):
        return (*path, unknown[1]), _unknown_key(unknown[1], _type_at(path))
    if missing := _MISSING.fullmatch(message):
        key = (*path, missing[1])
        return key, f"this key is required: expected {_choices(_type_at(key)) or 'a value'}"
    choices = _choices(_type_at(path))
    if choices and message.startswith("Invalid"):
        return path, f"expected {choices}, got {_value_at(value, path)!r}"
    return path, message[:1].lower() + message[1:]


def _split(text: str) -> tuple[str, list[str | int | None]]:
    """msgspec's message and its path. None stands for a mapping key that msgspec does not name."""
    message, _, where = text.rpartition(" - at `$")
    if not message:
        return text, []
    return message, [name or (int(index) if index else None) for name, index, _ in _STEP.findall(where)]


def _resolve(value: dict[str, Any], error: str, steps: list[str | int | None], done: Path) -> Path:
    """Fill in each unnamed key: the one that, alone in its mapping, still raises the same error."""
    if not steps:
        return done
    step, *rest = steps
    if step is not None:
        return _resolve(value, error, rest, (*done, step))
    for key, item in _value_at(value, done).items():
        alone = _with_only(value, done, {key: item})
        if _error_of(alone) == error:
            return _resolve(alone, error, rest, (*done, key))
    raise AssertionError("one of the keys raised a moment ago")


def _error_of(value: dict[str, Any]) -> str | None:
    try:
        msgspec.convert(value, Config)
    except msgspec.ValidationError as error:
        return str(error)
    return None


def _with_only(value: Any, path: Path, mapping: dict[str, Any]) -> Any:
    if not path:
        return mapping
    copy = value.copy()
    copy[path[0]] = _with_only(value[path[0]], path[1:], mapping)
    return copy


def _value_at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _unknown_key(key: str, owner: inspect.Type | None) -> str:
    known = [field.encode_name for field in owner.fields] if isinstance(owner, inspect.StructType) else []
    close = difflib.get_close_matches(key, known, n=1)
    if close:
        return f"unknown key: did you mean {close[0]!r}?"
    return f"unknown key: expected one of {', '.join(sorted(known))}"


def _choices(kind: inspect.Type | None) -> str | None:
    if isinstance(kind, inspect.LiteralType):
        return "one of " + ", ".join(repr(value) for value in kind.values)
    if isinstance(kind, inspect.EnumType):
        return "one of " + ", ".join(repr(member.value) for member in kind.cls)
    return None


def _type_at(path: Path) -> inspect.Type | None:
    kind: inspect.Type | None = inspect.type_info(Config)
    for step in path:
        match kind:
            case inspect.StructType():
                kind = next((field.type for field in kind.fields if field.encode_name == step), None)
            case inspect.DictType():
                kind = kind.value_type
            case inspect.VarTupleType():
                kind = kind.item_type
            case _:
                return None
        if isinstance(kind, inspect.Metadata):
            kind = kind.type
    return kind
