"""Reads an image from the clipboard of the machine that the app runs on, with a clipboard program.

Needed because terminals paste only text. The program is looked up on PATH, and killed if it takes too long or its
output is too large. Must not know widgets, nor the server, which may be on another machine.
"""

import asyncio
import base64
import binascii
import os
import re
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from longboat.tui.attachments import LARGEST
from longboat.wire.models import Attachment

READ_TIMEOUT_S = 5.0
"""Time limit for all programs together."""
ENCODED = 3
"""An encoded image is at most this many times as long as the image."""
TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")
BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "png",
    b"\xff\xd8\xff": "jpeg",
    b"GIF87a": "gif",
    b"GIF89a": "gif",
}
POWERSHELL = (
    "Add-Type -AssemblyName System.Windows.Forms, System.Drawing; "
    "$i = [Windows.Forms.Clipboard]::GetImage(); if ($i -eq $null) { exit 1 }; "
    "$m = New-Object IO.MemoryStream; $i.Save($m, [Drawing.Imaging.ImageFormat]::Png); "
    "[Console]::Out.Write([Convert]::ToBase64String($m.ToArray()))"
)


class NoPicture(Exception):
    """Why there is no image, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A command that writes the image to its output, and how to decode that."""

    command: tuple[str, ...]
    decode: Callable[[bytes], bytes] = bytes


def _of_osascript(said: bytes) -> bytes:
    """Decode «data PNGf8950…»."""
    digits = re.search(rb"PNGf([0-9A-Fa-f]+)", said)
    return binascii.unhexlify(digits[1]) if digits is not None else b""


READERS = (
    *(Reader(command=("wl-paste", "--no-newline", "--type", each)) for each in TYPES),
    *(Reader(command=("xclip", "-selection", "clipboard", "-t", each, "-o")) for each in TYPES),
    Reader(command=("pngpaste", "-")),
    Reader(command=("osascript", "-e", "get the clipboard as «class PNGf»"), decode=_of_osascript),
    Reader(
        command=("powershell.exe", "-NoProfile", "-NonInteractive", "-STA", "-Command", POWERSHELL),
        decode=base64.b64decode,
    ),
)


def readers() -> list[Reader]:
    """The installed readers."""
    return [each for each in READERS if shutil.which(each.command[0]) is not None]


async def picture_on_clipboard(found: list[Reader], number: int) -> Attachment:
    """The image, named after `number`, the attachments so far; raises NoPicture."""
    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            for reader in found:
                data = await _read(reader)
                if (kind := _kind(data)) is not None:
                    encoded = base64.b64encode(data).decode()
                    return Attachment(name=f"clipboard-{number + 1}.{kind}", media_type=f"image/{kind}", data=encoded)
    except TimeoutError:
        raise NoPicture("Reading this machine's clipboard timed out.") from None
    raise NoPicture("There is no image on this machine's clipboard.")


async def _read(reader: Reader) -> bytes:
    """The program's decoded output; empty if it fails."""
    try:
        process = await asyncio.create_subprocess_exec(
            *reader.command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
    except OSError:
        return b""
    try:
        said = await _read_output(process)
        return reader.decode(said) if await process.wait() == 0 else b""
    except ValueError:  # unknown encoding
        return b""
    finally:
        await _end(process)


async def _read_output(process: Process) -> bytes:
    assert process.stdout is not None
    said = bytearray()
    while piece := await process.stdout.read(65_536):
        said += piece
        if len(said) > LARGEST * ENCODED:
            raise NoPicture(_too_large())
    return bytes(said)


async def _end(process: Process) -> None:
    """Kill a program that hangs, and do not wait for children that still hold its output."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process._transport.close()  # type: ignore[attr-defined]  # asyncio has no other way to close the pipe
    await process.wait()


def _kind(data: bytes) -> str | None:
    """The image's format by its content, whatever the program called it."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind: str | None = "webp"
    else:
        kind = next((kind for beginning, kind in BEGINNINGS.items() if data.startswith(beginning)), None)
    if kind is not None and len(data) > LARGEST:
        raise NoPicture(_too_large())
    return kind


def _too_large() -> str:
    return f"The image on the clipboard is larger than {LARGEST // 1_000_000} MB."
