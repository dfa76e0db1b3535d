"""How the demo uses tools: each step is one JSON object, and its server enforces the schema.

Must not know processes. Such a small model cannot write calls on its own, but it can fill in a form:
`{"tool": NAME, "input": {…}}` with the fields that the tool needs, or `{"answer": TEXT}`. On its own it would use some
tool even for a greeting, so the form offers only the tools that the prompt's words suggest, and the files that it
names. One call per prompt, because the model does not know when it is done.
"""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from longboat.core.tool import ToolSpec
from longboat.models.images import without_images
from longboat.models.protocol import (
    Finished,
    Model,
    ModelEvent,
    ModelRequest,
    Sent,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from longboat.wire.ids import new_id
from longboat.wire.models import FilePart, Message, Part, Role, TextPart, ToolCallPart, ToolResultPart

MAX_RESULT = 2_000
"""Maximum length of a result in characters, because the window is small."""

_FILE = re.compile(r"(?<![\w/])[\w./-]*\w\.[A-Za-z]\w{0,7}\b")
_FORM = (
    'You reply with one JSON object. To use a tool: {{"tool": NAME, "input": {{...}}}}. '
    'To answer: {{"answer": "..."}}.\nTools:\n{tools}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    name: str
    arguments: str


class _Step(msgspec.Struct, frozen=True):
    answer: str | None = None
    tool: str | None = None
    input: dict[str, Any] = {}


async def answer(chat: Model, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
    """Make one step: a form to fill in if the prompt asks for tools, otherwise plain text."""
    if tools := choose_tools(request):
        async with aclosing(_fill_in_form(chat, as_form(request, tools))) as events:
            async for event in events:
                yield event
        return
    async with chat.stream(as_talk(request)) as stream:
        async for event in stream:
            yield event


def choose_tools(request: ModelRequest) -> tuple[ToolSpec, ...]:
    """The tools that the last prompt asks for; none if the next step is plain text."""
    prompt, called = _state(request)
    if called or request.schema is not None:
        return ()
    names_files = _FILE.search(prompt) is not None
    return tuple(
        tool
        for tool in request.tools
        if tool.cues
        and re.search(rf"\b(?:{tool.cues})\b", prompt, re.IGNORECASE)
        and (names_files or tool.traits.path not in tool.schema.get("required", ()))
    )


def as_form(request: ModelRequest, tools: tuple[ToolSpec, ...]) -> ModelRequest:
    """Turn the step into a form to fill in."""
    files = list(dict.fromkeys(_FILE.findall(_state(request)[0])))
    listed = "\n".join(f"- {tool.name}: {tool.description}" for tool in tools)
    schema = {"anyOf": [*(_call(tool, files) for tool in tools), _object({"answer": {"type": "string"}})]}
    return replace(as_talk(request), system=f"{request.system}\n{_FORM.format(tools=listed)}", schema=schema)


def _state(request: ModelRequest) -> tuple[str, bool]:
    """The last prompt, and whether it was already followed by a call."""
    prompt, called = "", False
    for message in request.messages:
        if message.role is Role.USER:
            prompt, called = " ".join(part.text for part in message.parts if isinstance(part, TextPart)), False
        called = called or any(isinstance(part, ToolCallPart) for part in message.parts)
    return prompt, called


def as_talk(request: ModelRequest) -> ModelRequest:
    """Turn the transcript into text. Leaves out calls, because the model would imitate them."""
    spoken = (_write_as_text(message) for message in without_images(request.messages))
    return replace(request, messages=tuple(message for message in spoken if message.parts), tools=())


def read_form(text: str) -> str | Call | None:
    """The answer, or the call; None if it was cut off."""
    try:
        step = msgspec.json.decode(text, type=_Step)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if step.tool is not None:
        return Call(name=step.tool, arguments=msgspec.json.encode(step.input).decode())
    return step.answer


def _needed(tool: ToolSpec, files: list[str]) -> dict[str, Any]:
    """The required fields of the tool: the model would invent values for any others."""
    fields = tool.schema.get("properties", {})
    needed = {name: _plain(fields[name]) for name in tool.schema.get("required", ()) if name in fields}
    path = tool.traits.path
    return needed | {path: {"enum": files}} if path in needed and files else needed


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in ("description", "default", "examples")}


def _call(tool: ToolSpec, files: list[str]) -> dict[str, Any]:
    return _object({"tool": {"const": tool.name}, "input": _object(_needed(tool, files))})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _write_as_text(message: Message) -> Message:
    parts = tuple(TextPart(text=text) for part in message.parts if (text := _text(part)))
    role = Role.USER if message.role is Role.TOOL else message.role
    return msgspec.structs.replace(message, role=role, parts=parts)


def _text(part: Part) -> str:
    match part:
        case TextPart():
            return part.text
        case FilePart(text=str(text)):
            return f'<file name="{part.name}">\n{text}\n</file>'
        case ToolResultPart():
            return f"I looked, and this is what I found:\n{part.content[:MAX_RESULT]}\n\nSay in a sentence what it is."
        case _:
            return ""


async def _fill_in_form(chat: Model, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
    """Make a step with the form. Its kind is known only at its end, so it is sent as a whole."""
    written = ""
    async with chat.stream(request) as stream:
        async for event in stream:
            match event:
                case Sent():
                    yield replace(event, tool_mode="steps")
                case TextDelta():
                    written += event.text
                case Finished():
                    for said in _events_of_step(read_form(written), event):
                        yield said


def _events_of_step(step: str | Call | None, end: Finished) -> tuple[ModelEvent, ...]:
    match step:
        case Call():
            call_id = f"call_{new_id()}"
            return (
                ToolCallStart(0, call_id, step.name),
                ToolCallDelta(0, step.arguments),
                replace(end, reason=StopReason.TOOL_USE),
            )
        case None:
            return TextDelta("(I could not finish this step.)"), replace(end, reason=StopReason.MAX_TOKENS)
        case _:
            return TextDelta(step), replace(end, reason=StopReason.END_TURN)
