"""Steps: each answer of the model is one JSON object, and the server holds the model to its schema. Pure.

    {"thought": "I must see both files.", "calls": [{"tool": "view", "args": {"path": "a.py"}}, …]}
    {"thought": "The bug is found.", "answer": "It is in a.py:3."}

A model that cannot write tool calls by itself can fill in such a form. It thinks before it decides: asked for a call or
an answer at once, a small model claims to be done. Several calls go into one step: the turn makes those that only read
side by side.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from longboat.core.history import calls_of, text_of
from longboat.core.limits import SAME_AGAIN
from longboat.core.tool import ToolSpec
from longboat.models.protocol import ModelRequest
from longboat.models.tool_modes.tool_texts import TextCall, arguments_of, describe_tools, write_as_text
from longboat.wire.models import Message, ReasoningPart, Role, ToolResultPart
from longboat.wire.tools import Effect

MAX_CALLS = 6
"""The maximum number of calls in one step."""
MAX_LOOKS = 3
"""The maximum in a first step that must look at files: a small model that would rather edit repeats its looks until it
reaches the limit."""

FORM = """\
Each of your replies is one JSON object: a short thought, which says what the last results show and what comes next, \
and then either calls of tools or your final answer. For example, in another project:
EXAMPLE
The next message brings the results of your calls. Put calls that do not depend on each other into one reply. What you \
have not read with a tool you do not know. Make changes with tools: an answer changes nothing. Answer only when the \
task is done and checked, or when no tool is needed.
Tools:
"""

_EXAMPLE = (
    ("sail.py was named, and I have not read it.", "view", {"path": "sail.py"}),
    ("Line 3 adds the wind; it must subtract it.", "edit", {"path": "sail.py", "old_text": "+ w", "new_text": "- w"}),
    ("sail.py is changed, but not checked.", "bash", {"command": "python -m pytest -q"}),
)
"""Small models copy these thoughts, so each fits only its own step and names nothing that exists in a real project."""
_ANY_CALL = '{"thought": "I need what only a tool can tell.", "calls": [{"tool": "NAME", "args": {...}}]}'
_LAST = '{"thought": "All tests pass.", "answer": "sail.py subtracts the wind now, and its tests pass."}'

_TEXT = {"type": "string"}
_KEPT = ("type", "enum", "const", "minItems", "maxItems")
"""The keywords of a tool's schema that are sent. Servers refuse a schema with a keyword that they cannot turn into a
grammar; the tool itself checks everything."""
_MAX_DEPTH = 8
_MAX_THOUGHT = 400
"""The maximum length of an earlier thought, in characters: other models write long ones."""

_GREETING_WORDS = 3
"""A prompt with no more words than this may be a greeting or thanks: the model may answer without looking at files."""

_OPENINGS = (re.compile(r'\s*\{\s*"thought"\s*:\s*"'), re.compile(r'"\s*,\s*"answer"\s*:\s*"'))
"""Where the thought begins, and where the answer begins after it."""
_STRING = re.compile(
    r'(?:[^"\\]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\[^u])*', re.DOTALL
)
"""As much of an unfinished JSON string as can be read; half an escape waits for the rest."""
_CALL = re.compile(r'\{\s*"tool"\s*:\s*"([^"\\]+)"\s*,\s*"args"\s*:\s*')
_decoder = json.JSONDecoder(strict=False)


def as_steps(request: ModelRequest, *, openai_schema: bool) -> ModelRequest:
    """Turn the step into a form. `openai_schema`: the server takes the schema like OpenAI's."""
    return replace(
        request,
        system=f"{request.system}\n\n{FORM.replace('EXAMPLE', _example(request.tools))}{describe_tools(request.tools)}",
        messages=write_as_text(request.messages, write_step),
        schema=_schema(request),
        openai_schema=openai_schema,
        tools=(),
    )


def _example(tools: Sequence[ToolSpec]) -> str:
    names = {tool.name for tool in tools}
    steps = [
        json.dumps({"thought": thought, "calls": [{"tool": tool, "args": args}]})
        for thought, tool, args in _EXAMPLE
        if tool in names
    ]
    return "\n".join([*(steps or [_ANY_CALL]), _LAST])


def write_step(message: Message) -> str:
    text, calls = text_of(message), calls_of(message)
    thought = "".join(part.text for part in message.parts if isinstance(part, ReasoningPart))[:_MAX_THOUGHT]
    if calls:
        made = [{"tool": call.name, "args": arguments_of(call)} for call in calls]
        return msgspec.json.encode({"thought": text or thought, "calls": made}).decode()
    return msgspec.json.encode({"thought": thought, "answer": text}).decode() if text else ""


def _schema(request: ModelRequest) -> dict[str, Any]:
    wanted = dict(request.schema or _TEXT)
    shared = {word: wanted.pop(word) for word in ("$defs", "definitions") if word in wanted}
    answer = _object({"thought": _TEXT, "answer": wanted})
    if not request.may_call:
        return answer | shared
    if first := tools_to_look_with(request):
        return _calls_of(first, MAX_LOOKS)
    if _must_answer(request.messages):
        return answer | shared
    stuck = _repeated_tools(request.messages)
    offered = [tool for tool in request.tools if tool.name not in stuck] or request.tools
    return {"type": "object", "anyOf": [_calls_of(offered, MAX_CALLS), answer]} | shared


def _calls_of(tools: Sequence[ToolSpec], at_most: int) -> dict[str, Any]:
    one = {"anyOf": [_object({"tool": {"const": tool.name}, "args": _arguments(tool)}) for tool in tools]}
    calls = {"type": "array", "items": one, "minItems": 1, "maxItems": at_most}
    return _object({"thought": _TEXT, "calls": calls})


def tools_to_look_with(request: ModelRequest) -> list[ToolSpec]:
    """Return the only tools for the first step of a turn that may be about files. A small model that may answer at once
    claims to be done, and one that may edit at once edits what it has not read. Empty if the model may use any tool.
    """
    turn = _turn(request.messages)
    has_looked = any(message.role is Role.TOOL for message in turn)
    may_change = any(tool.traits.effect is Effect.CHANGES for tool in request.tools)
    if has_looked or not may_change or request.schema is not None:
        return []
    if len(text_of(turn[0]).split()) <= _GREETING_WORDS:
        return []
    return [tool for tool in request.tools if tool.traits.effect is Effect.READS]


def _turn(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages from the last prompt on."""
    prompts = [index for index, message in enumerate(messages) if message.role is Role.USER]
    return messages[prompts[-1] :] if prompts else messages


def _repeated_tools(messages: Sequence[Message]) -> set[str]:
    """Return the tools of a step that was just made twice: without them, a small model gets out of its loop."""
    made = [
        [(call.name, call.input) for call in calls_of(message)]
        for message in messages[-4:]
        if message.role is Role.ASSISTANT
    ]
    return {name for name, _ in made[-1]} if len(made) == 2 and made[0] == made[1] else set()


def _must_answer(messages: Sequence[Message]) -> bool:
    """Whether all results of the last step are marked as repeated. A small model that may still call tools then repeats
    the same few calls until the limit ends the run, so it must answer."""
    results = [part for part in messages[-1].parts if isinstance(part, ToolResultPart)] if messages else []
    return bool(results) and all(SAME_AGAIN in result.content for result in results)


def _arguments(tool: ToolSpec) -> dict[str, Any]:
    plain = _plain(tool.schema, _MAX_DEPTH)
    return plain if "properties" in plain else {"type": "object"}


def _plain(schema: Any, depth: int) -> dict[str, Any]:
    if depth == 0 or not isinstance(schema, Mapping):  # a field that takes anything may have the schema `true`
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
    """The rest of a step: the answer text that was not streamed, and the calls."""

    answer: str = ""
    calls: tuple[TextCall, ...] = ()


class StepReader:
    """Feed it a step as it streams; it returns the readable text of the thought and of the answer."""

    def __init__(self) -> None:
        self._written = ""
        self._at = 0
        self._inside: int | None = None
        """Which of the two strings is being read."""
        self._read = ["", ""]

    @property
    def written(self) -> str:
        return self._written

    def feed(self, text: str) -> tuple[str, str]:
        """Return more of the thought, and more of the answer."""
        self._written += text
        before = tuple(map(len, self._read))
        while self._advance():
            pass
        thought, answer = self._read
        return thought[before[0] :], answer[before[1] :]

    def _advance(self) -> bool:
        """Read to the end of the available text; return whether another string begins after it."""
        if self._inside is not None:
            found = _STRING.match(self._written, self._at)
            self._read[self._inside] += _decoded(found[0]) if found is not None else ""
            self._at = found.end() if found is not None else self._at
        following = 0 if self._inside is None else self._inside + 1
        opening = _OPENINGS[following].match(self._written, self._at) if following < len(_OPENINGS) else None
        if opening is None:
            return False
        self._inside, self._at = following, opening.end()
        return True

    def finish(self) -> Step | None:
        """Return the rest of the step; None if the server did not enforce the form."""
        try:
            value, _ = _decoder.raw_decode(self._written, self._written.find("{"))
        except (ValueError, RecursionError):
            return self._cut_off()
        match value:
            case {"answer": str(answer)}:
                return Step(answer=answer.removeprefix(self._read[1]))
            case {"answer": answer}:
                return Step(answer=msgspec.json.encode(answer).decode())
            case {"calls": [*calls]}:
                return Step(calls=tuple(call for call in map(_read_call, calls) if call is not None))
            case _:
                return None

    def _cut_off(self) -> Step | None:
        """Return what came before the output limit: the complete calls, and the beginning of the last one."""
        calls: list[TextCall] = []
        end = 0
        for head in _CALL.finditer(self._written):
            if head.start() < end:
                continue  # inside the arguments of the previous call
            try:
                arguments, end = _decoder.raw_decode(self._written, head.end())
                calls.append(TextCall(name=head[1], arguments=json.dumps(arguments)))
            except (ValueError, RecursionError):
                calls.append(TextCall(name=head[1], arguments=self._written[head.end() :]))
                break
        return Step(calls=tuple(calls)) if self._inside is not None else None


def _decoded(text: str) -> str:
    try:
        return str(_decoder.decode(f'"{text}"'))
    except ValueError:
        return ""  # not a valid JSON escape


def _read_call(value: Any) -> TextCall | None:
    match value:
        case {"tool": str(name)}:
            return TextCall(name=name, arguments=msgspec.json.encode(value.get("args", {})).decode())
        case _:
            return None
