"""The JSON body of a model request: taken apart to be stored, put together again, and read.

Knows only what most providers' bodies have in common: an object with `messages`, each with a `role`. Pure.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from longboat.wire.model_requests import PartName, RequestPart

Sizes = Mapping[PartName, int]

_ORDER: tuple[PartName, ...] = ("system", "tools", "user", "assistant", "tool", "settings")
_ROLES: Mapping[str, PartName] = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool"}
_FIELDS: Mapping[str, PartName] = {"system": "system", "tools": "tools"}
_ATTACHMENT = re.compile(r"data:([\w.+/-]*)[^,]{0,100};base64,")
_SHORT = 256
"""No attachment is shorter."""

DIGEST_SIZE = 16

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])
_encode = msgspec.json.Encoder().encode


class _Message(msgspec.Struct):
    role: str = ""


_message = msgspec.json.Decoder(_Message)


def take_apart(body: bytes) -> tuple[bytes, list[bytes]]:
    """The body without its messages, and the messages."""
    fields = _fields.decode(body)
    messages = [bytes(each) for each in _list.decode(fields["messages"])]
    return _encode(fields | {"messages": []}), messages


def put_together(frame: bytes, messages: Iterable[bytes]) -> bytes:
    """The body that was taken apart, byte for byte."""
    return _encode(_fields.decode(frame) | {"messages": [msgspec.Raw(each) for each in messages]})


def digest_of(piece: bytes) -> bytes:
    """The name under which a message, or a body without its messages, is stored."""
    return blake2b(piece, digest_size=DIGEST_SIZE).digest()


def measure_frame(frame: bytes) -> dict[PartName, int]:
    """How many bytes the fields of a body without its messages have."""
    sizes: dict[PartName, int] = {}
    for name, value in _fields.decode(frame).items():
        part = _FIELDS.get(name, "settings")
        sizes[part] = sizes.get(part, 0) + len(bytes(value))
    return sizes


def measure_message(message: bytes) -> tuple[PartName, int]:
    """What kind of message it is, and how many bytes it has without attachments."""
    size = len(message)
    if size > _SHORT and (b"base64," in message or b'"data":' in message):
        size = len(_encode(without_attachments(msgspec.json.decode(message))))
    return _ROLES.get(_message.decode(message).role, "user"), size


def parts_of(sizes: Sizes, input_tokens: int | None) -> tuple[RequestPart, ...]:
    """The parts of a request in order, each with its share of the tokens."""
    total, before, parts = sum(sizes.values()), 0, []
    for name in _ORDER:
        if not (size := sizes.get(name, 0)):
            continue
        tokens = None
        if input_tokens is not None:
            # The difference of two rounded sums: so the shares add up to all.
            tokens = round(input_tokens * (before + size) / total) - round(input_tokens * before / total)
        parts.append(RequestPart(name=name, size=size, tokens=tokens))
        before += size
    return tuple(parts)


def without_attachments(value: Any) -> Any:
    """A decoded body with a note of its size in place of each attachment."""
    match value:
        case str() if (found := _ATTACHMENT.match(value)) is not None:
            return _describe(found[1], len(value) - found.end())
        case list():
            return [without_attachments(each) for each in value]
        case dict():
            kind = value.get("media_type") or value.get("format")
            return {
                name: _describe(kind, len(each)) if kind and _is_data(name, each) else without_attachments(each)
                for name, each in value.items()
            }
        case _:
            return value


def _is_data(name: str, value: Any) -> bool:
    return name == "data" and isinstance(value, str) and len(value) > _SHORT and not _ATTACHMENT.match(value)


def _describe(media_type: Any, encoded: int) -> str:
    kind = "image" if str(media_type).startswith("image/") else str(media_type)
    size = encoded * 3 // 4
    return f"[{kind}, {size / 1000:.0f} kB]" if size >= 1000 else f"[{kind}, {size} bytes]"
