"""Image files as a model may be shown them: bounded and whole. Pure.

A provider refuses a request with a broken image in it, and so every later request of the session: what is not whole is
not shown.
"""

import base64
import struct

from longboat.tools.text import image_kind
from longboat.wire.models import Image

MAX_IMAGE = 5 * 2**20
"""Bytes."""
MAX_SIDE = 8_000
"""Pixels. Providers refuse more."""

_MEDIA_TYPES = {
    "PNG image": "image/png",
    "JPEG image": "image/jpeg",
    "GIF image": "image/gif",
    "WebP image": "image/webp",
}


def picture(content: bytes, size: int) -> Image | str:
    """The image for the model, or why it is not shown. Of a large file, `content` may be its beginning."""
    kind = image_kind(content)
    assert kind is not None
    if size > MAX_IMAGE:
        return f"more than {MAX_IMAGE >> 20} MB are not shown"
    if not _is_whole(kind, content):
        return "it is damaged"
    if max(_sides(kind, content)) > MAX_SIDE:
        return f"more than {MAX_SIDE:,} pixels a side are not shown"
    return Image(media_type=_MEDIA_TYPES[kind], data=base64.b64encode(content).decode())


def _is_whole(kind: str, content: bytes) -> bool:
    match kind:
        case "PNG image":
            return content[12:16] == b"IHDR" and b"IEND" in content[-16:]
        case "JPEG image":
            return b"\xff\xd9" in content[-64:]
        case "GIF image":
            return len(content) > 13 and b"\x3b" in content[-4:]
        case _:
            return len(content) >= 8 + int.from_bytes(content[4:8], "little")


def _sides(kind: str, content: bytes) -> tuple[int, int]:
    """Width and height where they stand in a fixed place; else nothing is known."""
    match kind:
        case "PNG image":
            width, height = struct.unpack(">II", content[16:24])
        case "GIF image":
            width, height = struct.unpack("<HH", content[6:10])
        case _:
            width = height = 0
    return width, height
