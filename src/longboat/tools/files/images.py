"""Checks that image files are complete and small enough to show to a model. Pure.

A provider refuses a request with a broken image, and then every later request of the session, so incomplete images are
not shown. The check walks through the parts of the file from beginning to end; it does not decode pixels.
"""

import base64
import struct
import zlib
from collections.abc import Callable

from longboat.tools.files.text import image_kind
from longboat.wire.models import Image

MAX_IMAGE = 5 * 2**20
"""Bytes."""
MAX_SIDE = 8_000
"""Pixels. Providers refuse more."""

Sides = tuple[int, int]
_NO_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})
"""JPEG markers that stand alone."""
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG markers with the height and width."""


class _Damaged(Exception):
    """The file is incomplete or not an image."""


def picture(content: bytes, size: int) -> Image | str:
    """The image for the model, or why it is not shown. Of a large file, `content` may be its beginning."""
    kind = image_kind(content)
    assert kind is not None
    if size > MAX_IMAGE:
        return f"images over {MAX_IMAGE >> 20} MB are not shown"
    media_type, walk = _KINDS[kind]
    try:
        sides = walk(content)
    except (_Damaged, struct.error, IndexError):
        return "it is damaged"
    if min(sides) < 1:
        return "it is damaged"
    if max(sides) > MAX_SIDE:
        return f"images over {MAX_SIDE:,} pixels a side are not shown"
    return Image(media_type=media_type, data=base64.b64encode(content).decode())


def flaw(media_type: str, data: str) -> str | None:
    """What is wrong with an image in base64; empty if nothing is."""
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError:
        return "it is not base64"
    kind = image_kind(content)
    if kind is None or _KINDS[kind][0] != media_type:
        return f"it is not {media_type}"
    found = picture(content, len(content))
    return found if isinstance(found, str) else None


def _png(content: bytes) -> Sides:
    found: list[bytes] = []
    place = 8
    while not found or found[-1] != b"IEND":
        length, name = struct.unpack_from(">I4s", content, place)
        (check,) = struct.unpack_from(">I", content, place + 8 + length)
        if zlib.crc32(memoryview(content)[place + 4 : place + 8 + length]) != check:
            raise _Damaged
        found.append(name)
        place += 12 + length
    if found[0] != b"IHDR" or b"IDAT" not in found:
        raise _Damaged
    width, height = struct.unpack_from(">II", content, 16)
    return width, height


def _jpeg(content: bytes) -> Sides:
    sides: Sides | None = None
    place = 2
    while True:
        lead, marker = content[place], content[place + 1]
        if lead != 0xFF or marker == 0xD9:
            raise _Damaged
        if marker == 0xFF:  # padding
            place += 1
        elif marker in _NO_LENGTH:
            place += 2
        else:
            (length,) = struct.unpack_from(">H", content, place + 2)
            if marker in _FRAMES:
                height, width = struct.unpack_from(">HH", content, place + 5)
                sides = width, height
            place += 2 + length
            if marker == 0xDA:
                break
    # Pixels follow, in which a marker cannot be, and then the end.
    if sides is None or content.find(b"\xff\xd9", place) < 0:
        raise _Damaged
    return sides


def _gif(content: bytes) -> Sides:
    width, height, flags = struct.unpack_from("<HHB", content, 6)
    place = 13 + _gif_colors(flags)
    images = 0
    while content[place] != 0x3B:
        match content[place]:
            case 0x21:
                place = _gif_blocks(content, place + 2)
            case 0x2C:
                place = _gif_blocks(content, place + 11 + _gif_colors(content[place + 9]))
                images += 1
            case _:
                raise _Damaged
    if not images:
        raise _Damaged
    return width, height


def _gif_colors(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _gif_blocks(content: bytes, place: int) -> int:
    """Behind a row of blocks, which an empty one ends."""
    while length := content[place]:
        place += 1 + length
    return place + 1


def _webp(content: bytes) -> Sides:
    end = 8 + int.from_bytes(content[4:8], "little")
    if end > len(content):
        raise _Damaged
    chunks: dict[bytes, int] = {}
    place = 12
    while place < end:
        name, length = struct.unpack_from("<4sI", content, place)
        chunks.setdefault(name, place + 8)
        place += 8 + length + length % 2
        if place > end + 1:
            raise _Damaged
    if not chunks.keys() & {b"VP8 ", b"VP8L", b"ANMF"}:
        raise _Damaged
    return _webp_sides(content, chunks)


def _webp_sides(content: bytes, chunks: dict[bytes, int]) -> Sides:
    if (at := chunks.get(b"VP8X")) is not None:
        width, height = (int.from_bytes(content[at + near : at + near + 3], "little") + 1 for near in (4, 7))
        return width, height
    if (at := chunks.get(b"VP8L")) is not None:
        signature, bits = struct.unpack_from("<BI", content, at)
        whole, width, height = signature == 0x2F, (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    else:
        at = chunks.get(b"VP8 ", len(content))
        start, width, height = struct.unpack_from("<3sHH", content, at + 3)
        whole, width, height = start == b"\x9d\x01\x2a", width & 0x3FFF, height & 0x3FFF
    if not whole:
        raise _Damaged
    return width, height


_KINDS: dict[str, tuple[str, Callable[[bytes], Sides]]] = {
    "PNG image": ("image/png", _png),
    "JPEG image": ("image/jpeg", _jpeg),
    "GIF image": ("image/gif", _gif),
    "WebP image": ("image/webp", _webp),
}
MEDIA_TYPES = frozenset(media_type for media_type, _ in _KINDS.values())
"""What providers take as images."""
