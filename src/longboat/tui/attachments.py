"""Attachments of a prompt: long text, images, files. Reads local files; must not know widgets."""

import base64
import shlex
from os.path import exists, expanduser, isfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from longboat.regular_files import read
from longboat.wire.models import Attachment

LONG = 2_000
"""A longer paste, in characters, becomes an attachment."""
PICTURES = {
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}
LARGEST = 5_000_000
"""The largest file, in bytes."""
SUITABLE = "You can attach text, PDFs and images (PNG, JPEG, GIF, WebP) up to 5 MB."


class Unsuitable(Exception):
    """Why a file cannot be attached, for people."""


def in_lines(text: str) -> str:
    """Pasted text with newlines: terminals send line ends as carriage returns."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def from_paste(text: str, number: int) -> Attachment | None:
    """The attachment for a paste; None if it is text for the prompt. `number`: how many attachments there are."""
    text = in_lines(text)
    if len(text) > LONG:
        return Attachment(name=f"pasted-{number + 1}.txt", media_type="text/plain", text=text)
    path = path_in(text)
    return None if path is None else picture(path)


def picture(path: Path) -> Attachment | None:
    """The image in a file, if it is a supported one."""
    try:
        return from_file(path) if path.suffix.lower() in PICTURES else None
    except Unsuitable:
        return None


def from_name(name: str) -> Attachment:
    """The file with this name, bare or quoted; raises Unsuitable."""
    if not name:
        raise Unsuitable(f"Enter a file name. {SUITABLE}")
    bare = Path(_at_home(name))
    return from_file(bare if exists(bare) else path_in(name) or bare)


def from_file(path: Path) -> Attachment:
    """The content of a file as an attachment; raises Unsuitable."""
    if not isfile(path):
        raise Unsuitable(f"{path.absolute()} is not a file.")
    try:
        content = read(path, LARGEST + 1)
    except OSError as error:
        raise Unsuitable(f"Cannot read {path}: {error.strerror}.") from None
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
        raise Unsuitable(f"{path} is not text. {SUITABLE}")
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
    """The name with `~` expanded, if there is such a home."""
    try:
        return expanduser(name)
    except ValueError:  # no user has such a name
        return name


def chip(attachment: Attachment) -> str:
    """A short label for an attachment."""
    if attachment.text is not None:
        lines = len(attachment.text.splitlines())
        return f"{attachment.name} ({lines} line{'s' if lines != 1 else ''})"
    data = attachment.data or ""
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return f"{attachment.name} ({f'{size // 1000} kB' if size >= 1000 else f'{size} bytes'})"
