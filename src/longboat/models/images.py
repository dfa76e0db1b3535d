"""Which images a model is sent, and the text that replaces those it cannot see. Pure."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from longboat.models.protocol import Abilities, ModelRequest
from longboat.wire.models import FilePart, Message, Part, TextPart, ToolResultPart

SEEN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What providers take as images."""

BLIND = "this model cannot see images"


def is_image(part: FilePart) -> bool:
    return part.data is not None and part.media_type in SEEN


def without_unsupported_images(request: ModelRequest, can: Abilities) -> ModelRequest:
    """The request without what the model cannot do."""
    return replace(
        request,
        messages=request.messages if can.images else without_images(request.messages),
        tools=request.tools if can.tools else (),
        effort=request.effort if can.effort else None,
    )


def without_images(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The transcript for a model that sees none: it reads that there is one."""
    return tuple(_without(message) for message in messages)


def _without(message: Message) -> Message:
    if not any(_shows(part) for part in message.parts):
        return message
    return msgspec.structs.replace(message, parts=tuple(_describe_part(part) for part in message.parts))


def _shows(part: Part) -> bool:
    match part:
        case FilePart():
            return is_image(part)
        case ToolResultPart():
            return bool(part.images)
        case _:
            return False


def _describe_part(part: Part) -> Part:
    match part:
        case FilePart() if is_image(part):
            return TextPart(text=f"[The image {part.name} is attached, but {BLIND}.]")
        case ToolResultPart() if part.images:
            return msgspec.structs.replace(part, content=f"{part.content}\n[It is not shown: {BLIND}.]", images=())
        case _:
            return part
