"""Reads the input of `longboat run`: the typed or piped prompt, the answer's schema and the attached files."""

import base64
import mimetypes
import os
import re
import select
import stat
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from longboat.wire.models import Attachment

TOLD_AFTER_S = 1.0
STDIN_TIMEOUT_S = 3.0
"""How long to wait for a silent pipe: programs that start us often leave one open and unused."""
_NO_TEXT = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f]")
MAX_ATTACHED = 10_000_000
"""Bytes of all files together; encoded as base64 they still fit into one request."""


def read_prompt(words: tuple[str, ...]) -> str:
    """The words, followed by piped input. Without words, or with "-" at the end, any kind of standard input is read."""
    typed, dash = (words[:-1], True) if words[-1:] == ("-",) else (words, False)
    if typed:
        text = _joined(" ".join(typed), _read() if dash else _piped())
    elif sys.stdin is None or (not dash and sys.stdin.isatty()):
        raise click.UsageError('No prompt. Use longboat run "…", or pipe one in.')
    else:
        text = _read()
    if not text.strip():
        raise click.UsageError("The prompt is empty.")  # before a server is started and a session made for it
    return text


def read_schema(file: IO[bytes]) -> dict[str, Any]:
    """The schema in a file. The server validates it."""
    import msgspec

    try:
        return msgspec.json.decode(file.read(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise click.UsageError(f"{file.name} is not a JSON object: {error}.") from None


def read_attachments(files: tuple[str, ...]) -> "tuple[Attachment, ...]":
    """The files as attachments, text as text. Unsupported files are refused before anything is sent."""
    left, found = MAX_ATTACHED, []
    for file in files:
        with open(file, "rb") as source:
            content = source.read(left + 1)
        left -= len(content)
        if left < 0:
            limit = f"{MAX_ATTACHED // 1_000_000} MB"
            raise click.UsageError(
                f"The attachments exceed {limit} with {file}: mention its path in the prompt instead."
            )
        found.append(_attachment(file, content))
    return tuple(found)


def _attachment(file: str, content: bytes) -> "Attachment":
    from longboat.tools.files.images import picture
    from longboat.tools.files.text import NotText, decode, image_kind
    from longboat.wire.models import Attachment

    name = Path(file).name
    if image_kind(content) is not None:
        shown = picture(content, len(content))
        if isinstance(shown, str):
            raise _unsuitable(file, shown)
        return Attachment(name=name, media_type=shown.media_type, data=shown.data)
    if content.startswith(b"%PDF-"):
        return Attachment(name=name, media_type="application/pdf", data=base64.b64encode(content).decode())
    try:
        text = decode(content)
    except NotText as error:
        raise _unsuitable(file, f"it is not text ({error.kind})") from None
    if "\0" in text.content or (text.encoding == "latin-1" and _NO_TEXT.search(text.content)):
        raise _unsuitable(file, "it is not text (binary file)")
    return Attachment(name=name, media_type=_text_type(name), text=text.content)


def _text_type(name: str) -> str:
    """The media type by file name, unless the name suggests something other than text."""
    known = mimetypes.guess_type(name)[0] or ""
    return known if known.startswith(("text/", "application/")) and known != "application/pdf" else "text/plain"


def _unsuitable(file: str, why: str) -> click.UsageError:
    from longboat.tools.files.images import MAX_IMAGE

    return click.UsageError(
        f"Cannot attach {file}: {why}. Supported: text, images (PNG, JPEG, GIF, WebP; {MAX_IMAGE >> 20} MB each) "
        f"and PDFs, {MAX_ATTACHED // 1_000_000} MB in total. For other files, mention the path in the prompt."
    )


def _joined(typed: str, piped: str) -> str:
    return f"{typed}\n\n{piped}" if piped.strip() else typed


def _read() -> str:
    return "" if sys.stdin is None else sys.stdin.buffer.read().decode(errors="replace")


def _piped() -> str:
    """The content of a pipe. Nothing else is read: terminals, devices and sockets may stay silent forever, and a file
    may be what a surrounding shell loop reads line by line."""
    if sys.stdin is None:
        return ""
    source = sys.stdin.fileno()
    status = os.fstat(source)
    if stat.S_ISREG(status.st_mode) and status.st_size and os.lseek(source, 0, os.SEEK_CUR) == 0:
        click.echo('Ignoring the file on standard input: end the prompt with "-" to read it.', err=True)
    if not stat.S_ISFIFO(status.st_mode):
        return ""
    return _to_its_end(source) if _begins(source) else ""


def _begins(source: int) -> bool:
    """Whether data or the end of the pipe arrives within STDIN_TIMEOUT_S."""
    if _comes(source, TOLD_AFTER_S):
        return True
    click.echo("Waiting for standard input… (redirect from /dev/null if there is none)", err=True)
    if _comes(source, STDIN_TIMEOUT_S - TOLD_AFTER_S):
        return True
    click.echo('No standard input: continuing without it. (To wait for it, end the prompt with "-".)', err=True)
    return False


def _to_its_end(source: int) -> str:
    """Read to the end once the writer has started: half a text is worse than none."""
    read, told = bytearray(), False
    while True:
        if not told and not _comes(source, STDIN_TIMEOUT_S):
            click.echo("Reading standard input until it ends…", err=True)
            told = True
        if not (piece := os.read(source, 65536)):
            return read.decode(errors="replace")
        read += piece


def _comes(source: int, within_s: float) -> bool:
    return bool(select.select([source], [], [], within_s)[0])
