"""A model's arguments, adapted to a tool's schema where the meaning is clear.

Models are trained on other tools: they write `file_path` for `path`, `oldString` for `old_text`, `"5"` for 5 and null
for what they leave out. Owns these liberties. What stays unclear is left as it is, and the tool refuses it.
"""

from collections.abc import Mapping
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
    "offset": ("startline", "linestart", "start", "line"),
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

_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def adapt_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the schema's own names and types."""
    fields: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    adapted: dict[str, Any] = {}
    foreign: dict[str, Any] = {}
    for name, value in arguments.items():
        if value is None and name not in required:
            continue
        (adapted if name in fields else foreign)[name] = value
    for name, value in foreign.items():
        adapted[_own_name(name, fields, adapted) or name] = value
    return {name: _adapt_value(value, fields.get(name, {})) for name, value in adapted.items()}


def _own_name(name: str, fields: Mapping[str, Any], taken: Mapping[str, Any]) -> str | None:
    """The one free field that `name` can only mean."""
    plain = _plain(name)
    free = [field for field in fields if field not in taken]
    same = [field for field in free if _plain(field) == plain]
    meant = same or [field for field in free if plain in _SYNONYMS.get(field, ())]
    return meant[0] if len(meant) == 1 else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _adapt_value(value: Any, schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    if isinstance(value, str) and kind != "string":
        value = _read_text(value, kind)
    match kind, value:
        case "integer", float() if value.is_integer():
            return int(value)
        case "array", list():
            return [_adapt_value(item, schema.get("items", {})) for item in value]
        case "object", dict() if "properties" in schema:
            return adapt_arguments(value, schema)
    return value


def _read_text(text: str, kind: str | None) -> Any:
    """What the text says as a value of this kind; the text itself if it is none."""
    try:
        value = msgspec.json.decode(text.lower() if kind == "boolean" else text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return value if isinstance(value, _TYPES.get(kind or "", ())) else text
