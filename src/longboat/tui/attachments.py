"""What is pasted and is no prompt: long text, and the path of a picture. Reads local files; must not know widgets."""

import base64
import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit

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
"""Bytes of a picture."""


def in_lines(text: str) -> str:
    """What was pasted, in lines: a terminal sends the ends of lines as the return key does."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def from_paste(text: str, number: int) -> Attachment | None:
    """The attachment that a paste stands for; None if it is text to be typed. `number`: of those so far."""
    text = in_lines(text)
    if len(text) > LONG:
        return Attachment(name=f"pasted-{number + 1}.txt", media_type="text/plain", text=text)
    path = _path(text)
    return None if path is None else picture(path)


def picture(path: Path) -> Attachment | None:
    """The picture in a file, if it is one that a model may look at."""
    media_type = PICTURES.get(path.suffix.lower())
    try:
        if media_type is None or not path.is_file() or path.stat().st_size > LARGEST:
            return None
        data = base64.b64encode(path.read_bytes()).decode()
    except OSError:
        return None
    return Attachment(name=path.name, media_type=media_type, data=data)


def _path(text: str) -> Path | None:
    """The one path that a terminal pastes when a file is dropped on it: bare, quoted, escaped, or as a URL."""
    text = text.strip()
    if not text or "\n" in text or len(text) > 4096:
        return None
    if text.startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    bare = Path(text).expanduser()
    return Path(words[0]).expanduser() if len(words) == 1 else bare if bare.suffix else None


def chip(attachment: Attachment) -> str:
    """An attachment in a few words."""
    if attachment.text is not None:
        lines = attachment.text.count("\n") + 1
        return f"{attachment.name} ({lines} line{'s' if lines != 1 else ''})"
    return f"{attachment.name} ({len(attachment.data or '') * 3 // 4 // 1000 + 1} kB)"
