"""Tools, calls and their results as text, for models that have no messages for them. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from longboat.core.history import is_object
from longboat.core.tool import ToolSpec
from longboat.wire.models import FilePart, Message, Part, Role, TextPart, ToolCallPart, ToolResultPart

_ANY = "any JSON"
Write = Callable[[Message], str]
"""Writes a message as the model would have: thoughts, text and calls; empty if there is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCall:
    """A tool call parsed from text. `arguments` is JSON, unless the call was cut off."""

    name: str
    arguments: str


def write_as_text(messages: Iterable[Message], write: Write) -> tuple[Message, ...]:
    """Turn the transcript into text. Results of calls become user messages; their images stay images."""
    found = (_write_message(message, write) for message in messages)
    return tuple(message for message in found if message.parts)


def _write_message(message: Message, write: Write) -> Message:
    match message.role:
        case Role.ASSISTANT:
            text = write(message)
            return msgspec.structs.replace(message, parts=(TextPart(text=text),) if text else ())
        case Role.TOOL:
            results = [part for part in message.parts if isinstance(part, ToolResultPart)]
            parts = tuple(part for number, result in enumerate(results, 1) for part in _result(number, result))
            return msgspec.structs.replace(message, role=Role.USER, parts=parts)
        case _:
            return message


def _result(number: int, result: ToolResultPart) -> Iterator[Part]:
    head = "Call {} ({}) failed:" if result.tool_failed else "Result of call {} ({}):"
    yield TextPart(text=f"{head.format(number, result.name)}\n{result.content}")
    for image in result.images:
        yield FilePart(name="image", media_type=image.media_type, data=image.data)


def arguments_of(call: ToolCallPart) -> msgspec.Raw:
    """Return the input of a recorded call. If a cancel cut it off, it is not a JSON object."""
    return msgspec.Raw(call.input.encode() if is_object(call.input) else b"{}")


def describe_tools(tools: Iterable[ToolSpec]) -> str:
    return "\n".join(_describe(tool) for tool in tools)


def _describe(tool: ToolSpec) -> str:
    required = tool.schema.get("required", ())
    lines = [f"- {tool.name}: {tool.description}"]
    for name, field in tool.schema.get("properties", {}).items():
        optional = "" if name in required else ", optional"
        description = field.get("description") if isinstance(field, Mapping) else None
        about = f": {description}" if description else ""
        lines.append(f"    {name} ({_kind(field)}{optional}){about}")
    return "\n".join(lines)


def _kind(field: Any) -> str:
    if not isinstance(field, Mapping):
        return _ANY
    if "enum" in field:
        return " or ".join(msgspec.json.encode(value).decode() for value in field["enum"])
    if "properties" in field:
        return "{" + ", ".join(f'"{name}": {_kind(inner)}' for name, inner in field["properties"].items()) + "}"
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    kind = field.get("type")
    return kind if isinstance(kind, str) else _ANY
