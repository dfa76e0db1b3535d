"""A model's arguments, adapted to a tool's schema where the meaning is clear.

Models are trained on other tools: they write `file_path` for `path`, `oldString` for `old_text`, `"5"` for 5, null for
what they leave out, and a sentence why they make the call. Owns what is accepted beyond the schema. What stays unclear
is left as it is, and the tool refuses it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_SYNONYMS = {
    "path": (
        "file",
        "filepath",
        "filename",
        "targetfile",
        "absolutepath",
        "relativepath",
        "directory",
        "dir",
        "folder",
    ),
    "old_text": ("oldstring", "oldstr", "search", "find", "old"),
    "new_text": ("newstring", "newstr", "replacement", "replace", "new"),
    "content": ("contents", "filetext", "text", "body"),
    "command": ("cmd", "script"),
    "cwd": ("workdir", "workingdirectory", "directory", "dir"),
    "run_in_background": ("background", "isbackground"),
    "pattern": ("regex", "regexp", "glob", "globpattern", "query", "search"),
    "include": ("glob", "filepattern", "includepattern"),
    "offset": ("startline", "linestart", "startlineoneindexed", "start", "line"),
    "limit": ("numlines", "linecount", "lines", "maxlines"),
    "query": ("q", "search", "searchterm"),
    "url": ("uri", "link"),
    "items": ("todos", "tasks"),
    "edits": ("changes", "replacements"),
    "text": ("question", "content"),
    "choices": ("options",),
    "prompt": ("task",),
}
"""Other tools' words for our fields, in lower case and without underscores."""

_DECORATION = frozenset(
    {
        "description",
        "explanation",
        "justification",
        "rationale",
        "reason",
        "thought",
        "requiresapproval",
        "securityrisk",
    }
)
"""What other tools ask for beside the call itself: why it is made, or how dangerous the model finds it."""
_TIMEOUTS_MS = ("timeoutms", "timeoutmilliseconds")
_TIMEOUTS = ("timeout", "timeoutseconds", "timeoutsec", "timeoutsecs")
_SURELY_S, _SURELY_MS = 1_000, 10_000
"""Claude Code's `timeout` is in milliseconds, that of most others in seconds. Between these two it could be either."""
_END_LINES = ("endline", "lineend", "endlineoneindexedinclusive")
_LINE_RANGES = ("viewrange", "linerange")

_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_ELSEWHERE = frozenset({"$ref", "allOf", "const"})
"""Keywords that restrict the type elsewhere."""


def adapt_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the schema's own names and types."""
    fields: Mapping[str, Any] = schema.get("properties", {})
    # Where other fields are allowed, as by many MCP tools, they may well have a meaning.
    is_closed = schema.get("additionalProperties") is False
    required = schema.get("required", ())
    adapted: dict[str, Any] = {}
    foreign: dict[str, Any] = {}
    for name, value in arguments.items():
        if value is None and name not in required and not _takes_null(fields.get(name, not is_closed)):
            continue
        (adapted if name in fields else foreign)[name] = value
    for name, value in foreign.items():
        own = _own_name(name, fields, adapted) if value is not None else None
        adapted[own or name] = value
    adapted = {name: _adapt_value(value, fields.get(name, {})) for name, value in adapted.items()}
    return _without_foreign(adapted, fields) if is_closed else adapted


def _takes_null(schema: Any) -> bool:
    """Whether null is a value of the field, rather than a way to leave it out."""
    if not isinstance(schema, Mapping):
        return schema is not False
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return any(map(_takes_null, options))
    if "enum" in schema:
        return None in schema["enum"]
    kinds = _kinds(schema)
    return "null" in kinds or schema.get("nullable") is True or not (kinds or _ELSEWHERE & schema.keys())


def _kinds(schema: Any) -> Sequence[str]:
    """The types that a schema names."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return kind if isinstance(kind, list) else [kind] if isinstance(kind, str) else []


def _without_foreign(arguments: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without fields that the tool would refuse, as far as their meaning is clear."""
    own = {name: value for name, value in arguments.items() if name in fields}
    for name, value in arguments.items():
        if name not in fields and (meant := _as_own(_plain(name), value, own, fields)) is not None:
            own |= meant
        else:
            own[name] = value
    return own


def _as_own(name: str, value: Any, own: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the tool's own fields say instead; None if that is unclear."""
    if name in _DECORATION:
        return {}
    if name in (*_TIMEOUTS, *_TIMEOUTS_MS) and "timeout_s" in fields and "timeout_s" not in own:
        return _as_timeout(name, _adapt_value(value, {"type": "number"}))
    if {"offset", "limit"} <= set(fields) and "limit" not in own:
        if name in _END_LINES:
            return _as_lines([own.get("offset", 1), _adapt_value(value, {"type": "integer"})], fields)
        if name in _LINE_RANGES and "offset" not in own:
            return _as_lines(_adapt_value(value, {"type": "array"}), fields)
    return None


def _as_timeout(name: str, value: Any) -> dict[str, Any] | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if name in _TIMEOUTS_MS or value >= _SURELY_MS:
        return {"timeout_s": value / 1000}
    return {"timeout_s": value} if value < _SURELY_S else None


def _as_lines(between: Any, fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """From one line to another, both included; -1 is the last one of the file."""
    match between:
        case [int(first), -1]:
            return {"offset": first}
        case [int(first), int(last)] if 1 <= first <= last:
            return {"offset": first, "limit": min(last - first + 1, fields["limit"].get("maximum", last))}
        case _:
            return None


def _own_name(name: str, fields: Mapping[str, Any], taken: Mapping[str, Any]) -> str | None:
    """The one free field that `name` can only mean."""
    plain = _plain(name)
    free = [field for field in fields if field not in taken]
    same = [field for field in free if _plain(field) == plain]
    meant = same or [field for field in free if plain in _SYNONYMS.get(field, ())]
    return meant[0] if len(meant) == 1 else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _adapt_value(value: Any, schema: Any) -> Any:
    kinds = _kinds(schema)
    if isinstance(value, str) and "string" not in kinds:
        value = _read_text(value, kinds)
    match value:
        case float() if "integer" in kinds and "number" not in kinds and value.is_integer():
            return int(value)
        case list() if "array" in kinds:
            return [_adapt_value(item, schema.get("items", {})) for item in value]
        case dict() if "object" in kinds and "properties" in schema:
            return adapt_arguments(value, schema)
    return value


def _read_text(text: str, kinds: Sequence[str]) -> Any:
    """What the text says as a value of one of these kinds; the text itself if it is none."""
    try:
        value = msgspec.json.decode(text.lower() if "boolean" in kinds else text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return value if any(isinstance(value, _TYPES.get(kind, ())) for kind in kinds) else text
