"""What goes along with `longboat run`: the prompt that was typed or piped in, the schema of its answer, and files."""

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
PATIENCE_S = 3.0
"""How long a pipe may be silent before we go on without it: programs that start us often leave one open, unused."""
_NO_TEXT = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f]")
MAX_ATTACHED = 10_000_000
"""Bytes of all files together; in base64 that fits into what a server takes in one request."""


def read_prompt(words: tuple[str, ...]) -> str:
    """The words, followed by what is piped in. With "-" at the end, or without words, standard input is read whatever
    it is."""
    typed, dash = (words[:-1], True) if words[-1:] == ("-",) else (words, False)
    if typed:
        text = _joined(" ".join(typed), _read() if dash else _piped())
    elif sys.stdin is None or (not dash and sys.stdin.isatty()):
        raise click.UsageError('Give a prompt: longboat run "…", or pipe one in.')
    else:
        text = _read()
    if not text.strip():
        raise click.UsageError("The prompt is empty.")  # before a server is started and a session made for it
    return text


def read_schema(file: IO[bytes]) -> dict[str, Any]:
    """The schema in a file; whether it is a good one, the server says."""
    import msgspec

    try:
        return msgspec.json.decode(file.read(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise click.UsageError(f"{file.name} holds no JSON object: {error}.") from None


def read_attachments(files: tuple[str, ...]) -> "tuple[Attachment, ...]":
    """The files, as text where they are text. What no model could be shown is refused before anything is sent."""
    left, found = MAX_ATTACHED, []
    for file in files:
        with open(file, "rb") as source:
            content = source.read(left + 1)
        left -= len(content)
        if left < 0:
            limit = f"{MAX_ATTACHED // 1_000_000} MB"
            raise click.UsageError(f"With {file} the attached files are over {limit}: name it in the prompt instead.")
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
        raise _unsuitable(file, f"it is no text ({error.kind})") from None
    if "\0" in text.content or (text.encoding == "latin-1" and _NO_TEXT.search(text.content)):
        raise _unsuitable(file, "it is no text (binary file)")
    return Attachment(name=name, media_type=_text_type(name), text=text.content)


def _text_type(name: str) -> str:
    """By its name, unless that promises something else than a text."""
    known = mimetypes.guess_type(name)[0] or ""
    return known if known.startswith(("text/", "application/")) and known != "application/pdf" else "text/plain"


def _unsuitable(file: str, why: str) -> click.UsageError:
    from longboat.tools.files.images import MAX_IMAGE

    return click.UsageError(
        f"{file} cannot be attached: {why}. What can: text, pictures (PNG, JPEG, GIF, WebP; {MAX_IMAGE >> 20} MB each) "
        f"and PDFs, {MAX_ATTACHED // 1_000_000} MB together. Of other files give the path in the prompt."
    )


def _joined(typed: str, piped: str) -> str:
    return f"{typed}\n\n{piped}" if piped.strip() else typed


def _read() -> str:
    return "" if sys.stdin is None else sys.stdin.buffer.read().decode(errors="replace")


def _piped() -> str:
    """What a pipe brings. Terminals, devices and sockets may be silent for ever and mean nothing by it, and a file may
    be the list that a loop around us reads line by line."""
    if sys.stdin is None:
        return ""
    source = sys.stdin.fileno()
    status = os.fstat(source)
    if stat.S_ISREG(status.st_mode) and status.st_size and os.lseek(source, 0, os.SEEK_CUR) == 0:
        click.echo('Standard input is a file: it is not read unless the prompt ends with "-".', err=True)
    if not stat.S_ISFIFO(status.st_mode):
        return ""
    return _to_its_end(source) if _begins(source) else ""


def _begins(source: int) -> bool:
    """Whether something comes, or the end, while we are patient."""
    if _comes(source, TOLD_AFTER_S):
        return True
    click.echo("Waiting for standard input … (`</dev/null` says that there is none)", err=True)
    if _comes(source, PATIENCE_S - TOLD_AFTER_S):
        return True
    click.echo(
        'Nothing came on standard input: going on without it. (To wait for it, end the prompt with "-".)', err=True
    )
    return False


def _to_its_end(source: int) -> str:
    """Whoever has begun to write is waited for: half of a text is worse than none."""
    read, told = bytearray(), False
    while True:
        if not told and not _comes(source, PATIENCE_S):
            click.echo("Reading standard input until it ends …", err=True)
            told = True
        if not (piece := os.read(source, 65536)):
            return read.decode(errors="replace")
        read += piece


def _comes(source: int, within_s: float) -> bool:
    return bool(select.select([source], [], [], within_s)[0])
