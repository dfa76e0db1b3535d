"""Steps: each answer of the model is one JSON object, and the server holds the model to its schema. Pure.

    {"say": "I look at both files.", "calls": [{"tool": "view", "args": {"path": "a.py"}}, …]}
    {"answer": "The bug is in a.py:3."}

A model that cannot write tool calls by itself can fill in such a form. Several calls go into one step, so that reading
runs side by side.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from longboat.core.tool import ToolSpec
from longboat.models.protocol import ModelRequest
from longboat.models.tool_modes.tool_texts import TextCall, arguments_of, describe_tools, spoken
from longboat.wire.models import ToolCallPart

MAX_CALLS = 6
"""In one step."""

FORM = """\
Each of your replies is one JSON object. To use tools, reply
{"say": "what you do and why, in a sentence", "calls": [{"tool": "NAME", "args": {...}}]}
and the next message brings the results. Put calls that do not depend on each other into one reply. Only when the task \
is done and checked, or when a question can be answered, reply
{"answer": "what you did or found"}
Tools:
"""

_TEXT = {"type": "string"}
_KEPT = ("type", "enum", "const", "minItems", "maxItems")
"""Of a tool's schema. Servers refuse a schema with a word that they cannot turn into a grammar; the tool checks all."""
_MAX_DEPTH = 8

_OPENING = re.compile(r'\s*\{\s*"(?:say|answer)"\s*:\s*"')
_STRING = re.compile(
    r'(?:[^"\\]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\[^u])*', re.DOTALL
)
"""As much of a JSON string as can be read before its end is there: half an escape waits for the other."""
_CALL = re.compile(r'\{\s*"tool"\s*:\s*"([^"\\]+)"\s*,\s*"args"\s*:\s*')
_decoder = json.JSONDecoder(strict=False)


def as_steps(request: ModelRequest, *, openai_schema: bool) -> ModelRequest:
    """The step as a form. `openai_schema`: the server takes the schema as OpenAI's does."""
    return replace(
        request,
        system=f"{request.system}\n\n{FORM}{describe_tools(request.tools)}",
        messages=spoken(request.messages, write_step),
        schema=_schema(request),
        openai_schema=openai_schema,
        tools=(),
    )


def write_step(text: str, calls: list[ToolCallPart]) -> str:
    if not calls:
        return msgspec.json.encode({"answer": text}).decode()
    made = [{"tool": call.name, "args": arguments_of(call)} for call in calls]
    return msgspec.json.encode({"say": text, "calls": made}).decode()


def _schema(request: ModelRequest) -> dict[str, Any]:
    wanted = dict(request.schema or _TEXT)
    shared = {word: wanted.pop(word) for word in ("$defs", "definitions") if word in wanted}
    answer = _object({"answer": wanted})
    if not request.may_call:
        return answer | shared
    one = {"anyOf": [_object({"tool": {"const": tool.name}, "args": _arguments(tool)}) for tool in request.tools]}
    calls = {"type": "array", "items": one, "minItems": 1, "maxItems": MAX_CALLS}
    return {"type": "object", "anyOf": [_object({"say": _TEXT, "calls": calls}), answer]} | shared


def _arguments(tool: ToolSpec) -> dict[str, Any]:
    plain = _plain(tool.schema, _MAX_DEPTH)
    return plain if "properties" in plain else {"type": "object"}


def _plain(schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth == 0:
        return {}
    plain: dict[str, Any] = {word: schema[word] for word in _KEPT if word in schema}
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return {"anyOf": [_plain(option, depth - 1) for option in options]}
    if isinstance(schema.get("items"), Mapping):
        plain["items"] = _plain(schema["items"], depth - 1)
    if isinstance(schema.get("properties"), Mapping):
        fields = {name: _plain(field, depth - 1) for name, field in schema["properties"].items()}
        plain |= {"properties": fields, "required": list(schema.get("required", ())), "additionalProperties": False}
    return plain


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a step says after what was shown already, and the calls that it makes."""

    text: str = ""
    calls: tuple[TextCall, ...] = ()


class StepReader:
    """Feed it a step as it streams; it returns the words for people as they come."""

    def __init__(self) -> None:
        self._written = ""
        self._at: int | None = None
        """How far the words are read; None before they begin."""
        self._shown: list[str] = []

    @property
    def written(self) -> str:
        return self._written

    def feed(self, text: str) -> str:
        self._written += text
        if self._at is None:
            opening = _OPENING.match(self._written)
            if opening is None:
                return ""
            self._at = opening.end()
        ready = _STRING.match(self._written, self._at)
        if ready is None or not ready[0]:
            return ""
        try:
            said: str = _decoder.decode(f'"{ready[0]}"')
        except ValueError:
            return ""
        self._at = ready.end()
        self._shown.append(said)
        return said

    def finish(self) -> Step | None:
        """The rest of the step; None if the model was not held to the form."""
        try:
            value, _ = _decoder.raw_decode(self._written, self._written.find("{"))
        except (ValueError, RecursionError):
            return self._cut_off()
        match value:
            case {"answer": str(answer)}:
                return Step(text=self._unshown(answer))
            case {"answer": answer}:
                return Step(text=msgspec.json.encode(answer).decode())
            case {"calls": [*calls]}:
                said = value.get("say")
                read = tuple(call for call in map(_read_call, calls) if call is not None)
                return Step(text=self._unshown(said if isinstance(said, str) else ""), calls=read)
            case _:
                return None

    def _cut_off(self) -> Step | None:
        """What came before the output limit: whole calls, and the last one as far as it goes."""
        calls: list[TextCall] = []
        end = 0
        for head in _CALL.finditer(self._written):
            if head.start() < end:
                continue  # inside the arguments of the one before
            try:
                arguments, end = _decoder.raw_decode(self._written, head.end())
                calls.append(TextCall(name=head[1], arguments=json.dumps(arguments)))
            except (ValueError, RecursionError):
                calls.append(TextCall(name=head[1], arguments=self._written[head.end() :]))
                break
        return Step(calls=tuple(calls)) if calls or self._at is not None else None

    def _unshown(self, text: str) -> str:
        return text.removeprefix("".join(self._shown))


def _read_call(value: Any) -> TextCall | None:
    match value:
        case {"tool": str(name)}:
            return TextCall(name=name, arguments=msgspec.json.encode(value.get("args", {})).decode())
        case _:
            return None
