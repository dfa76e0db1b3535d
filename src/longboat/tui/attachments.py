"""What goes along with a prompt: long text, pictures, files. Reads local files; must not know widgets."""

import base64
import shlex
from os.path import exists, expanduser, isfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from longboat.regular import read
from longboat.wire.models import Attachment

LONG = 2_000
"""Characters of a paste that becomes an attachment."""
PICTURES = {
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}
LARGEST = 5_000_000
"""Bytes of a file."""
SUITABLE = "Text, PDFs and pictures (PNG, JPEG, GIF, WebP) of at most 5 MB can be attached."


class Unsuitable(Exception):
    """Why a file is not attached, for people."""


def in_lines(text: str) -> str:
    """What was pasted, in lines: a terminal sends the ends of lines as the return key does."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def from_paste(text: str, number: int) -> Attachment | None:
    """The attachment that a paste stands for; None if it is text to be typed. `number`: of those so far."""
    text = in_lines(text)
    if len(text) > LONG:
        return Attachment(name=f"pasted-{number + 1}.txt", media_type="text/plain", text=text)
    path = path_in(text)
    return None if path is None else picture(path)


def picture(path: Path) -> Attachment | None:
    """The picture in a file, if it is one that a model may look at."""
    try:
        return from_file(path) if path.suffix.lower() in PICTURES else None
    except Unsuitable:
        return None


def from_name(name: str) -> Attachment:
    """The file that somebody names, bare or quoted; raises Unsuitable."""
    if not name:
        raise Unsuitable(f"Name a file. {SUITABLE}")
    bare = Path(_at_home(name))
    return from_file(bare if exists(bare) else path_in(name) or bare)


def from_file(path: Path) -> Attachment:
    """What a file holds, for a model to read or look at; raises Unsuitable."""
    if not isfile(path):
        raise Unsuitable(f"{path.absolute()} is no file.")
    try:
        content = read(path, LARGEST + 1)
    except OSError as error:
        raise Unsuitable(f"{path} cannot be read: {error.strerror}.") from None
    if len(content) > LARGEST:
        raise Unsuitable(f"{path} is too large. {SUITABLE}")
    media_type = "application/pdf" if content.startswith(b"%PDF-") else PICTURES.get(path.suffix.lower())
    if media_type is not None:
        return Attachment(name=path.name, media_type=media_type, data=base64.b64encode(content).decode())
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise Unsuitable(f"{path} is no text. {SUITABLE}")
    return Attachment(name=path.name, media_type="text/plain", text=text)


def path_in(text: str) -> Path | None:
    """The one path that a terminal pastes when a file is dropped on it: bare, quoted, escaped, or as a URL."""
    text = text.strip()
    if not text or "\n" in text or len(text) > 4096:
        return None
    try:
        if text.startswith("file://"):
            return Path(unquote(urlsplit(text).path))
        words = shlex.split(text)
    except ValueError:
        return None
    bare = Path(_at_home(text))
    return Path(_at_home(words[0])) if len(words) == 1 else bare if bare.suffix else None


def _at_home(name: str) -> str:
    """With `~` as the home that it means, if it means one."""
    try:
        return expanduser(name)
    except ValueError:  # no user has such a name
        return name


def chip(attachment: Attachment) -> str:
    """An attachment in a few words."""
    if attachment.text is not None:
        lines = len(attachment.text.splitlines())
        return f"{attachment.name} ({lines} line{'s' if lines != 1 else ''})"
    data = attachment.data or ""
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return f"{attachment.name} ({f'{size // 1000} kB' if size >= 1000 else f'{size} bytes'})"
