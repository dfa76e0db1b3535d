"""Pictures on the clipboard: ctrl+v in the terminal app (F2).

The program that reads the clipboard is the seam: a real one needs a display. It stands on PATH under the name of the
real one, takes its arguments, and writes a real picture.
"""

import asyncio
import base64
import os
import shlex
from pathlib import Path

import psutil
import pytest
from textual import events
from tui_driver import TuiDriver, local_server, open_tui

from longboat.testing import Say, ScriptedModel
from longboat.tui import clipboard
from longboat.tui.attachments import LARGEST
from longboat.wire.models import FilePart, TextPart

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01" + bytes(40)
OF_OURS = {reader.command[0] for reader in clipboard.READERS}


@pytest.fixture
def bin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH on which nothing reads the clipboard yet."""
    found = tmp_path / "bin"
    found.mkdir()
    for name in ("sh", "cat", "sleep", "head"):
        (found / name).symlink_to(
            next(Path(each) / name for each in ("/bin", "/usr/bin") if (Path(each) / name).exists())
        )
    monkeypatch.setenv("PATH", str(found))
    return found


def program(bin: Path, name: str, does: str) -> None:
    assert name in OF_OURS
    (bin / name).write_text(f"#!/bin/sh\n{does}\n")
    (bin / name).chmod(0o755)


def holding(bin: Path, data: bytes) -> str:
    """A line of shell that writes this."""
    file = bin / "held"
    file.write_bytes(data)
    return f"cat {shlex.quote(str(file))}"


def told(tui: TuiDriver) -> list[str]:
    return tui.notifications


async def attached(tui: TuiDriver) -> list[tuple[str, str, bytes]]:
    await tui.until(lambda: tui.app.composer.attachments or told(tui))
    assert told(tui) == []
    return [(each.name, each.media_type, base64.b64decode(each.data or "")) for each in tui.app.composer.attachments]


WAYS = {
    "wl-paste": ('test "$*" = "--no-newline --type image/png" || exit 1; ', PIXEL),
    "xclip": ('test "$*" = "-selection clipboard -t image/png -o" || exit 1; ', PIXEL),
    "pngpaste": ('test "$*" = "-" || exit 1; ', PIXEL),
    "osascript": (
        'test "$1" = "-e" || exit 1; ',
        "«data PNGf".encode() + PIXEL.hex().upper().encode() + "»\n".encode(),
    ),
    "powershell.exe": ('test "$1" = "-NoProfile" || exit 1; ', base64.b64encode(PIXEL) + b"\r\n"),
}


@pytest.mark.parametrize("name", WAYS)
async def test_ctrl_v_attaches_the_picture_and_it_goes_to_the_model(tmp_path: Path, bin: Path, name: str) -> None:
    checked, said = WAYS[name]
    program(bin, name, checked + holding(bin, said))
    model = ScriptedModel([[Say("seen")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.type("look")
        await tui.pilot.press("ctrl+v")
        assert await attached(tui) == [("clipboard-1.png", "image/png", PIXEL)]
        await tui.until(lambda: f"⊕ clipboard-1.png ({len(PIXEL)} bytes)" in tui.screen)
        await tui.pilot.press("enter")
        await tui.until(lambda: tui.idle and tui.answers == ["seen"])
    parts = [part for message in model.requests[0].messages for part in message.parts if isinstance(part, FilePart)]
    assert [(part.name, base64.b64decode(part.data or "")) for part in parts] == [("clipboard-1.png", PIXEL)]


async def test_a_paste_without_text_asks_for_a_picture_too(tmp_path: Path, bin: Path) -> None:
    program(bin, "xclip", f'test "$4" = image/jpeg || exit 1; {holding(bin, JPEG)}')
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        tui.app.post_message(events.Paste(""))
        assert await attached(tui) == [("clipboard-1.jpeg", "image/jpeg", JPEG)]


async def test_a_second_program_is_asked_where_the_first_has_none(tmp_path: Path, bin: Path) -> None:
    program(bin, "wl-paste", "echo no display >&2; exit 1")
    program(bin, "xclip", holding(bin, PIXEL))
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await tui.pilot.press("ctrl+v")
        assert [name for name, _, _ in await attached(tui)] == ["clipboard-1.png"]


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("exit 1", "There is no image on this machine's clipboard."),
        ("echo words", "There is no image on this machine's clipboard."),
        (
            f"printf '\\211PNG\\r\\n\\032\\n'; head -c {LARGEST} /dev/zero",
            "The image on the clipboard is larger than 5 MB.",
        ),
        ("cat /dev/zero", "The image on the clipboard is larger than 5 MB."),
    ],
)
async def test_what_is_no_picture_or_too_large_is_told(
    tmp_path: Path, bin: Path, monkeypatch: pytest.MonkeyPatch, does: str, words: str
) -> None:
    monkeypatch.setattr(clipboard, "READ_TIMEOUT_S", 60.0)  # however busy the machine
    program(bin, "xclip", does)
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await tui.pilot.press("ctrl+v")
        await tui.until(lambda: told(tui))
        (said,) = told(tui)
        assert said.startswith(words)
        assert "ctrl+shift+v" in said
        assert tui.app.composer.attachments == []


async def test_without_a_program_ctrl_v_says_which_would_do(tmp_path: Path, bin: Path) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await tui.pilot.press("ctrl+v")
        await tui.until(lambda: told(tui))
        assert all(name in told(tui)[0] for name in ("wl-clipboard", "xclip", "pngpaste"))


@pytest.mark.parametrize("programs", [(), ("xclip",)])
async def test_without_a_picture_ctrl_v_puts_in_what_was_cut(
    tmp_path: Path, bin: Path, programs: tuple[str, ...]
) -> None:
    for name in programs:
        program(bin, name, "exit 1")
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await tui.type("cut this")
        await tui.pilot.press("f7", "ctrl+x", "ctrl+x", "ctrl+v")
        await tui.until(lambda: tui.app.composer.input.text == "cut this")
        assert told(tui) == []


async def test_a_program_that_hangs_is_ended(tmp_path: Path, bin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clipboard, "READ_TIMEOUT_S", 0.2)
    program(bin, "xclip", f"echo $$ > {bin}/pid; sleep 600; :")
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await tui.pilot.press("ctrl+v")
        await tui.until(lambda: told(tui))
        assert told(tui)[0].startswith("Reading this machine's clipboard timed out.")
    group = int((bin / "pid").read_text())
    assert [each for each in psutil.process_iter() if each.status() != "zombie" and is_of(each, group)] == []


def is_of(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group
    except ProcessLookupError:
        return False


async def test_a_prompt_that_is_sent_meanwhile_waits_for_its_picture(tmp_path: Path, bin: Path) -> None:
    fifo = bin / "open"
    os.mkfifo(fifo)
    program(bin, "pngpaste", f"cat {fifo} > /dev/null; {holding(bin, PIXEL)}")
    model = ScriptedModel([[Say("seen")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.type("look")
        await tui.pilot.press("ctrl+v", "enter")
        await tui.until(lambda: "… will be sent when the clipboard has been read" in tui.screen)
        await asyncio.to_thread(fifo.write_text, "")  # the program stands there, or will
        await tui.until(lambda: tui.idle and tui.answers == ["seen"])
        assert tui.app.composer.attachments == []
    parts = [part for message in model.requests[0].messages for part in message.parts if isinstance(part, FilePart)]
    assert [part.name for part in parts] == ["clipboard-1.png"]


async def test_a_prompt_that_waits_for_its_picture_goes_where_it_was_sent_and_takes_nothing_else_along(
    tmp_path: Path, bin: Path
) -> None:
    fifo = bin / "open"
    os.mkfifo(fifo)
    program(bin, "pngpaste", f"cat {fifo} > /dev/null; {holding(bin, PIXEL)}")
    model = ScriptedModel([[Say("one")], [Say("two")], [Say("three")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("first")
        await tui.until(lambda: tui.idle)
        session_id = tui.app.current.session_id
        await tui.type("second")
        await tui.pilot.press("ctrl+v", "enter", *"third", "enter", "ctrl+n", *"typed on")
        await asyncio.to_thread(fifo.write_text, "")
        await tui.until(lambda: "the clipboard has been read" not in tui.screen and not tui.app.sender.waiting)
        assert tui.app.composer.input.text == "typed on"
        assert tui.app.composer.attachments == []
        tui.app.open_session(session_id)
        await tui.until(lambda: tui.idle and len(tui.prompts) == 3)
        said = [prompt.splitlines()[0] for prompt in tui.prompts]
        assert said == ["first", "second", "third"]
    messages = model.requests[-1].messages
    (second,) = [each for each in messages if any(isinstance(part, FilePart) for part in each.parts)]
    assert [part.text for part in second.parts if isinstance(part, TextPart)] == ["second"]


async def test_a_program_that_leaves_its_output_open_elsewhere_is_not_waited_for(
    tmp_path: Path, bin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clipboard, "READ_TIMEOUT_S", 0.5)
    (bin / "setsid").symlink_to("/usr/bin/setsid")
    program(bin, "wl-paste", f"setsid sleep 600 & echo $! > {tmp_path}/left; sleep 600")
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await tui.type("hello")
        await tui.pilot.press("ctrl+v", "enter")
        await tui.until(lambda: tui.idle and tui.answers == ["echo: hello"])
    psutil.Process(int((tmp_path / "left").read_text())).kill()
