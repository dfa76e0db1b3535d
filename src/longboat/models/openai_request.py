"""Our transcript on the OpenAI chat wire: the body of a request. Pure; must not know HTTP or any one server."""

import base64
import binascii
from typing import Any

import msgspec

from longboat.core.tool import ToolSpec
from longboat.models.seam import ModelRequest
from longboat.wire.models import FilePart, Message, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart

_json = msgspec.json.Encoder()
_object = msgspec.json.Decoder(dict[str, Any])


def encode_request(
    request: ModelRequest, *, model: str, max_output_tokens: int | None = None, send_reasoning: bool = False
) -> bytes:
    """The body that asks `model` for one streamed step. `send_reasoning`: the server wants old reasoning back."""
    body: dict[str, Any] = {
        "model": model,
        "messages": _messages(request, send_reasoning=send_reasoning),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    limits = [limit for limit in (request.max_output_tokens, max_output_tokens) if limit is not None]
    if limits:
        body["max_tokens"] = min(limits)
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    return _json.encode(body)


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def _messages(request: ModelRequest, *, send_reasoning: bool) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
    said: list[dict[str, Any]] = []
    for message in request.messages:
        if message.role is Role.USER:
            said += _user_pieces(message)
            continue
        other = _assistant(message, send_reasoning=send_reasoning) + _tool_results(message)
        if other and said:
            wire.append(_user(said))
            said = []
        wire += other
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


def _file(part: FilePart) -> dict[str, Any]:
    if part.media_type.startswith("image/") and part.data is not None:
        return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{part.data}"}}
    text = part.text if part.text is not None else _decoded(part)
    if text is None:
        return {"type": "text", "text": f"[The file {part.name} ({part.media_type}) cannot be shown to this model.]"}
    return {"type": "text", "text": f'<file name="{part.name}">\n{text}\n</file>'}


def _decoded(part: FilePart) -> str | None:
    try:
        return base64.b64decode(part.data or "", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _assistant(message: Message, *, send_reasoning: bool) -> list[dict[str, Any]]:
    text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
    calls = [_tool_call(part) for part in message.parts if isinstance(part, ToolCallPart)]
    if not text and not calls:
        return []  # canceled before it said anything: servers refuse an empty message
    wire: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        wire["tool_calls"] = calls
    reasoning = "".join(part.text for part in message.parts if isinstance(part, ReasoningPart))
    if send_reasoning and reasoning:
        wire["reasoning_content"] = reasoning
    return [wire]


def _tool_call(part: ToolCallPart) -> dict[str, Any]:
    try:
        _object.decode(part.input)
        arguments = part.input
    except (msgspec.DecodeError, RecursionError):
        arguments = "{}"  # cut off by a cancel, or empty: servers parse it and refuse what is no object
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": arguments}}


def _tool_results(message: Message) -> list[dict[str, Any]]:
    return [
        {
            "role": "tool",
            "tool_call_id": part.tool_call_id,
            "content": f"Error: {part.content}" if part.is_error else part.content,
        }
        for part in message.parts
        if isinstance(part, ToolResultPart)
    ]
