"""Our transcript as the body of an OpenAI chat request. Pure; must not know HTTP or a particular server."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from longboat.core.tool import ToolSpec
from longboat.models.call_ids import portable_id
from longboat.models.images import is_image
from longboat.models.openai_reasoning import read_form
from longboat.models.protocol import ModelRequest
from longboat.wire.models import FilePart, Message, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from longboat.wire.requests import Effort

_json = msgspec.json.Encoder()
_object = msgspec.json.Decoder(dict[str, Any])


SendReasoning = Literal["turn", "always", "never"]
"""Which reasoning goes back to the server: what it sent since the last prompt, as servers require with the results of
tool calls; all of it, for a server that insists; or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one server differs from others, and the default settings for its model."""

    max_output_tokens: int | None = None
    effort: Effort | None = None
    nested_effort: bool = False
    """`reasoning.effort`, as OpenRouter spells it, instead of `reasoning_effort`."""
    send_reasoning: SendReasoning | None = None
    """None: that of the turn, unless the server wants it otherwise."""
    json_schema: bool = False
    """The server takes a schema for the answer even where there are tools. Without tools nearly all do."""
    prompt_progress: bool = False
    """The server is asked how far it has read a prompt, as llama.cpp can say."""
    refused: frozenset[str] = frozenset()
    """Of `OPTIONAL` and the habits below: what the server does not know."""


EFFORT = "reasoning_effort"
OPTIONAL = ("stream_options", "max_tokens", EFFORT)
"""Fields of a request that not every server knows. They are left out, except that `max_tokens` has a newer name."""
STREAM = "stream"
"""To stream at all. Without it, the answer comes whole."""
NULL_CONTENT = "null content"
"""Calls without text have no content; otherwise an empty one, which in turn some servers refuse."""
SYSTEM_ROLE = "system role"
"""To send the system prompt apart; otherwise it goes before the first prompt."""


PLAIN = Dialect()


def encode_request(request: ModelRequest, *, model: str, dialect: Dialect = PLAIN) -> bytes:
    """The body that asks `model` for one streamed step."""
    body: dict[str, Any] = {
        "model": model,
        "messages": _messages(request, dialect),
    } | _streaming(dialect)
    limits = [limit for limit in (request.max_output_tokens, dialect.max_output_tokens) if limit is not None]
    if limits:
        body["max_completion_tokens" if "max_tokens" in dialect.refused else "max_tokens"] = min(limits)
    if (effort := request.effort or dialect.effort) and EFFORT not in dialect.refused:
        body |= {"reasoning": {"effort": effort}} if dialect.nested_effort else {EFFORT: effort}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.schema is not None and (dialect.json_schema or not request.tools):
        body |= _answer_schema(request.schema, openai=request.openai_schema)
    return _json.encode(body)


def _streaming(dialect: Dialect) -> dict[str, Any]:
    if STREAM in dialect.refused:
        return {}
    fields: dict[str, Any] = {"stream": True}
    if "stream_options" not in dialect.refused:
        fields["stream_options"] = {"include_usage": True}
    if dialect.prompt_progress:
        fields["return_progress"] = True
    return fields


def _answer_schema(schema: Mapping[str, Any], *, openai: bool) -> dict[str, Any]:
    if openai:
        wrapped = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        return {"response_format": wrapped}
    return {"json_schema": schema, "format": schema}  # llama.cpp reads the first, Ollama the second


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def own_reasoning(request: ModelRequest, *, provider: str, model: str) -> ModelRequest:
    """The request without the reasoning that another model wrote: no server knows what to do with it."""

    def own(message: Message) -> bool:
        return message.provider in (provider, None) and message.model in (model, None)

    def without(message: Message) -> Message:
        parts = tuple(part for part in message.parts if not isinstance(part, ReasoningPart))
        return message if own(message) or parts == message.parts else msgspec.structs.replace(message, parts=parts)

    return replace(request, messages=tuple(without(message) for message in request.messages))


def _first_with_reasoning(request: ModelRequest, back: SendReasoning) -> int:
    """The index of the first message whose reasoning goes back."""
    if back != "turn":
        return 0 if back == "always" else len(request.messages)
    prompts = (n for n, message in enumerate(request.messages, start=1) if message.role is Role.USER)
    return max(prompts, default=0)


def _messages(request: ModelRequest, dialect: Dialect) -> list[dict[str, Any]]:
    back = dialect.send_reasoning or "turn"
    first = _first_with_reasoning(request, back)
    wire: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    if request.system and SYSTEM_ROLE in dialect.refused:
        said.append({"type": "text", "text": request.system})
    elif request.system:
        wire.append({"role": "system", "content": request.system})
    for index, message in enumerate(request.messages):
        if message.role is Role.USER:
            said += _user_pieces(message)
            continue
        reasoning = _reasoning(message, back) if index >= first else {}
        other = _assistant(message, reasoning, "" if NULL_CONTENT in dialect.refused else None)
        other += _tool_results(message)
        if other and said:
            wire.append(_user(said))
            said = []
        wire += other
        said += _encode_message(message)
    if said:
        wire.append(_user(said))
    return wire


def _user(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """One user message for all prompts in a row: many chat templates refuse two in succession.

    Text alone goes as a plain string, because small servers know no other content.
    """
    if all(piece["type"] == "text" for piece in pieces):
        return {"role": "user", "content": "\n\n".join(piece["text"] for piece in pieces)}
    return {"role": "user", "content": pieces}


def _user_pieces(message: Message) -> list[dict[str, Any]]:
    pieces: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case TextPart(text=text) if text:
                pieces.append({"type": "text", "text": text})
            case FilePart():
                pieces.append(_file(part))
    return pieces


def _encode_message(message: Message) -> list[dict[str, Any]]:
    """The images of tool results: the wire has no place for them but a user message."""
    pieces: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolResultPart) and part.images:
            pieces.append({"type": "text", "text": f"Image from the tool call {portable_id(part.tool_call_id)}:"})
            pieces += [_image(image.media_type, image.data) for image in part.images]
    return pieces


def _image(media_type: str, data: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}


def _file(part: FilePart) -> dict[str, Any]:
    if is_image(part):
        return _image(part.media_type, part.data or "")
    text = part.text if part.text is not None or part.media_type == "application/pdf" else _decoded(part)
    if text is None:
        return {"type": "text", "text": f"[The file {part.name} ({part.media_type}) cannot be shown to this model.]"}
    return {"type": "text", "text": f'<file name="{part.name}">\n{text}\n</file>'}


def _decoded(part: FilePart) -> str | None:
    try:
        return base64.b64decode(part.data or "", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _assistant(message: Message, reasoning: dict[str, Any], no_text: str | None) -> list[dict[str, Any]]:
    text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
    calls = [_tool_call(part) for part in message.parts if isinstance(part, ToolCallPart)]
    if not text and not calls:
        return []  # canceled before it said anything: servers refuse an empty message
    wire: dict[str, Any] = {"role": "assistant", "content": text or no_text}
    if calls:
        wire["tool_calls"] = calls
    return [wire | reasoning]


def _reasoning(message: Message, back: SendReasoning) -> dict[str, Any]:
    """The message's reasoning in the form in which the server sent it."""
    parts = [part for part in message.parts if isinstance(part, ReasoningPart)]
    forms = [form for part in parts if (form := read_form(part.signature)) is not None]
    text = "".join(part.text for part in parts)
    if details := [piece for form in forms for piece in form.details]:
        return {"reasoning_details": details}
    if forms and text:
        return {forms[-1].field: text}
    # A server that insists wants the field even where another model answered and sent none.
    return {"reasoning_content": text} if back == "always" and message.role is Role.ASSISTANT else {}


def _tool_call(part: ToolCallPart) -> dict[str, Any]:
    try:
        _object.decode(part.input)
        arguments = part.input
    except (msgspec.DecodeError, RecursionError):
        arguments = "{}"  # cut off by a cancel, or empty: servers parse it and refuse what is no object
    return {"id": portable_id(part.id), "type": "function", "function": {"name": part.name, "arguments": arguments}}


def _tool_results(message: Message) -> list[dict[str, Any]]:
    return [
        {
            "role": "tool",
            "tool_call_id": portable_id(part.tool_call_id),
            "content": f"Error: {part.content}" if part.tool_failed else part.content,
        }
        for part in message.parts
        if isinstance(part, ToolResultPart)
    ]
