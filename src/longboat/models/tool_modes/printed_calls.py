"""Whether an answer is a tool call that a model printed instead of making it. Pure.

Owns the doubt: people ask for examples of calls and for lists of tools, and nothing may run that was only shown. So an
answer counts as a call only if it is nothing else, the tool is offered, and the arguments fit it.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from longboat.core.history import text_of
from longboat.core.tool import ToolSpec
from longboat.models.protocol import ModelRequest
from longboat.models.tool_modes.text_calls import Found, broken_call_at, find_calls
from longboat.wire.models import Role

_MAX_LEAD = 200
"""Characters of the one line that may lead to a call."""
_SHOWS = re.compile(
    r"\bexamples?\b|\bsample\b|\bexemple|\bbeispiel|\bejemplo|\bto show\b|\b(?:look|looks|like) (?:this|like)\b"
    r"|\bwould\b|\bcould\b|\be\.g\.|\bsuch as\b|\bformat\b|\bsyntax\b|\bprint|\bwrites?\b",
    re.IGNORECASE,
)
"""A line before a call that shows it rather than makes it."""
_FENCE_OPENED = re.compile(r"```[\w-]*$")
_ABOUT_CALLS = re.compile(
    r"\btools\b(?!/)|\btool[ _-]?(?:call|use)|\bfunction[ _-]?call|\bexamples? of (?:an? |the )?(?:\w+ )?call",
    re.IGNORECASE,
)
"""A prompt that may ask to see a call rather than to make it."""
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def is_about_calls(request: ModelRequest) -> bool:
    """Whether the prompt may ask to see a call."""
    prompts = [message for message in request.messages if message.role is Role.USER]
    return bool(prompts) and _ABOUT_CALLS.search(text_of(prompts[-1])) is not None


def whole_call(answer: str, tools: Sequence[ToolSpec]) -> Found | None:
    """The calls of an answer that is nothing else, but for one line that leads to them. None if it is not certain."""
    found = find_calls(answer, tools)
    known = {tool.name: tool for tool in tools}
    if not found.calls or found.between or found.after or not _leads(found.before, answer):
        return None
    fit = all(call.name in known and fits(json.loads(call.arguments), known[call.name].schema) for call in found.calls)
    return found if fit else None


def is_broken_call(answer: str, tools: Iterable[ToolSpec]) -> bool:
    """Whether the answer is nothing but a call of an offered tool whose arguments cannot be parsed."""
    at = broken_call_at(answer, tools)
    return at is not None and _leads(answer[:at], answer)


def mentions_call(answer: str, tools: Iterable[ToolSpec]) -> bool:
    """Whether a call of an offered tool stands anywhere in the answer, whatever it is for."""
    names = {tool.name for tool in tools}
    return any(call.name in names for call in find_calls(answer, tools).calls)


def _leads(before: str, answer: str) -> bool:
    """Whether the text before a call is at most one line that announces it, and the call begins a line."""
    lead = _FENCE_OPENED.sub("", before.rstrip()).rstrip()
    if not lead.strip():
        return True
    ends_line = answer[len(lead) :].lstrip(" \t").startswith("\n")
    is_one = "\n" not in lead.strip() and len(lead) <= _MAX_LEAD
    return ends_line and is_one and _SHOWS.search(lead) is None


def fits(value: Any, schema: Any) -> bool:
    """Whether the value has the types and fields that the schema requires. Other keywords are the tool's business."""
    if not isinstance(schema, Mapping):
        return schema is not False
    options = schema.get("anyOf") or schema.get("oneOf")
    if options and not any(fits(value, option) for option in options):
        return False
    if not _has_type(value, schema.get("type")) or ("enum" in schema and value not in schema["enum"]):
        return False
    match value:
        case dict():
            return _fields_fit(value, schema)
        case list():
            return all(fits(item, schema.get("items", {})) for item in value)
        case _:
            return True


def _has_type(value: Any, kind: Any) -> bool:
    kinds = kind if isinstance(kind, list) else [kind]
    if isinstance(value, bool):
        return kind is None or "boolean" in kinds
    return any(isinstance(value, _TYPES.get(each, object)) for each in kinds)


def _fields_fit(value: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    fields = schema.get("properties", {})
    if not set(schema.get("required", ())) <= value.keys():
        return False
    if schema.get("additionalProperties") is False and not value.keys() <= fields.keys():
        return False
    return all(fits(inner, fields.get(name, {})) for name, inner in value.items())
