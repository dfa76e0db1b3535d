"""`view`: what of a file is shown, and that the read is noted (A3)."""

import base64
import os
import struct
import zlib
from pathlib import Path

import pytest

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.files.view import MAX_LINE, MAX_SHOWN, ViewTool
from longboat.wire.models import Image


async def view(directory: Path, **arguments: object) -> str:
    return (await OpenToolContext(directory).use(ViewTool(), **arguments)).content


async def test_a_file_is_shown_with_line_numbers_and_its_read_is_noted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\ntwo")
    context = OpenToolContext(tmp_path)
    result = await context.use(ViewTool(), path="a.txt")
    assert result.content == "     1\tone\n     2\t\n     3\ttwo"
    assert context.reads == [tmp_path / "a.txt"]
    await context.check_read(tmp_path / "a.txt", b"one\n\ntwo")
    (need,) = context.needs
    assert (need.tool, need.action, need.argument, need.paths) == ("view", "read", "a.txt", (str(tmp_path / "a.txt"),))


async def test_a_range_says_how_to_go_on_and_the_whole_file_counts_as_read(tmp_path: Path) -> None:
    content = "".join(f"line {number}\n" for number in range(1, 11))
    (tmp_path / "a.txt").write_text(content)
    context = OpenToolContext(tmp_path)
    result = await context.use(ViewTool(), path="a.txt", offset=3, limit=2)
    assert result.content == "     3\tline 3\n     4\tline 4\n\n(Lines 3–4 of 10. Continue with offset=5.)"
    await context.check_read(tmp_path / "a.txt", content.encode())
    assert await view(tmp_path, path="a.txt", offset=10) == "    10\tline 10"


async def test_a_long_file_is_shown_in_bounded_pieces_that_make_the_whole(tmp_path: Path) -> None:
    lines = [f"{number} {'x' * (number % 90)}" for number in range(5_000)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    seen: list[str] = []
    while len(seen) < len(lines):
        shown = await view(tmp_path, path="a.txt", offset=len(seen) + 1)
        assert len(shown) < MAX_SHOWN + 200
        numbered = [line.split("\t") for line in shown.split("\n") if "\t" in line]
        assert [int(number) for number, _ in numbered] == list(range(len(seen) + 1, len(seen) + len(numbered) + 1))
        seen += [text for _, text in numbered]
    assert seen == lines


async def test_a_very_long_line_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("y" * 1_000_000 + "\nnext\n")
    shown = await view(tmp_path, path="a.js")
    assert shown == f"     1\t{'y' * MAX_LINE}… (the line is longer)\n     2\tnext"


@pytest.mark.parametrize(("content", "offset"), [("a\nb\n", 3), ("a\nb", 9)])
async def test_an_offset_past_the_end_is_told(tmp_path: Path, content: str, offset: int) -> None:
    (tmp_path / "a.txt").write_text(content)
    with pytest.raises(ToolError, match=f"has 2 lines; offset {offset} is past the end"):
        await view(tmp_path, path="a.txt", offset=offset)


async def test_an_empty_file_is_said_to_be_empty_and_counts_as_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    context = OpenToolContext(tmp_path)
    assert (await context.use(ViewTool(), path="a.txt")).content == "(a.txt is empty.)"
    assert context.reads == [tmp_path / "a.txt"]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("grün\n".encode("utf-8-sig"), "     1\tgrün"),
        (b"a\r\nb\r\n", "     1\ta\n     2\tb"),
        (b"\xff\xfe" + "grün\n".encode("utf-16-le"), "     1\tgrün\n\n(Encoded as UTF-16-LE.)"),
        (b"\xfe\xff" + "grün\n".encode("utf-16-be"), "     1\tgrün\n\n(Encoded as UTF-16-BE.)"),
        ("grün\n".encode("latin-1"), "     1\tgrün\n\n(Not valid UTF-8: read as Latin-1.)"),
        ("one\x0bline\x0cof\x85text\u2028\n".encode(), "     1\tone\x0bline\x0cof\x85text\u2028"),
    ],
)
async def test_odd_encodings_are_read_and_named(tmp_path: Path, content: bytes, shown: str) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    assert await view(tmp_path, path="a.txt") == shown


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x7fELF\x02\x01", "ELF program"),
        (b"%PDF-1.7\n", "PDF document"),
        (b"PK\x03\x04rest", "ZIP archive"),
        (b"SQLite format 3\x00", "SQLite database"),
        (b"text and then\x00a NUL", "binary file"),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", "UTF-32 text"),
        (b"\xff\xfea\x00b", "broken UTF-16-LE text"),
    ],
)
async def test_binary_files_are_refused_by_their_kind_and_not_noted(tmp_path: Path, content: bytes, kind: str) -> None:
    (tmp_path / "a.bin").write_bytes(content)
    context = OpenToolContext(tmp_path)
    with pytest.raises(ToolError, match=f"a.bin is not a text file .{kind}"):
        await context.use(ViewTool(), path="a.bin")
    assert context.reads == []


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PNG_START = b"\x89PNG\r\n\x1a\n"
GIF = b"GIF89a\x01\0\x01\0\x80\0\0" + b"\0" * 6 + b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0\x3b"
WEBP = b"RIFF\x1a\0\0\0WEBPVP8L\x0e\0\0\0\x2f\0\0\0\0\x07\x10\xfd\x8f\xfe\x07\x22\xa2\xff\x01\0"


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int, height: int) -> bytes:
    header = struct.pack(">II", width, height) + b"\x08\x00\x00\x00\x00"
    return PNG_START + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


def jpeg(width: int, height: int) -> bytes:
    start = b"\xff\xd8\xff\xe1\0\x06Exif\xff\xff\xc0\0\x0b\x08" + struct.pack(">HH", height, width)
    return start + b"\x01\x01\x11\0" + b"\xff\xda\0\x08\x01\x01\0\0\x3f\0" + b"\x7f\xff\0" + b"\xff\xd9"


@pytest.mark.parametrize(
    ("content", "kind"),
    [(PNG, "png"), (png(8000, 8000), "png"), (jpeg(8000, 1), "jpeg"), (GIF, "gif"), (WEBP, "webp")],
)
async def test_an_image_is_shown_as_what_its_content_says(tmp_path: Path, content: bytes, kind: str) -> None:
    """A1, A6"""
    (tmp_path / "picture").write_bytes(content)
    result = await OpenToolContext(tmp_path).use(ViewTool(), path="picture")
    assert result.images == (Image(media_type=f"image/{kind}", data=base64.b64encode(content).decode()),)
    assert result.content.lower() == f"picture is a {kind} image of {len(content)} bytes."


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (PNG[:-20], "it is damaged"),
        (PNG_START, "it is damaged"),
        (PNG_START + b"\0\0\0\rIHDRIEND", "it is damaged"),
        (PNG_START + b"\0\0\0\rIHDR" + b"\0\0\0\1" * 2 + b"rubbish" * 5 + b"IEND\xaeB`\x82", "it is damaged"),
        (PNG[:45] + b"x" + PNG[46:], "it is damaged"),
        (png(0, 1), "it is damaged"),
        (b"\xff\xd8\xff\xe0rubbish\xff\xd9", "it is damaged"),
        (b"\xff\xd8\xff\xc0\0\x11\x08\xff\xff\xff\xff\x03\xff\xd9", "it is damaged"),
        (jpeg(1, 1)[:-2], "it is damaged"),
        (b"\xff\xd8\xff\xd9", "it is damaged"),
        (GIF[:-4], "it is damaged"),
        (b"GIF89a\x01\0\x01\0\0\0\0;", "it is damaged"),
        (b"RIFF\x04\0\0\0WEBP", "it is damaged"),
        (b"RIFF\xff\0\0\0WEBP" + b"\0" * 16, "it is damaged"),
        (WEBP.replace(b"\x2f", b"x"), "it is damaged"),
        (png(8001, 1), "images over 8,000 pixels a side are not shown"),
        (jpeg(65_535, 65_535), "images over 8,000 pixels a side are not shown"),
        (PNG + b"\0" * (5 * 2**20), "images over 5 MB are not shown"),
        (PNG + b"\0" * (21 * 2**20), "images over 5 MB are not shown"),
    ],
)
async def test_an_image_that_would_spoil_every_later_request_is_not_shown(
    tmp_path: Path, content: bytes, why: str
) -> None:
    """A6: providers refuse a request with a broken or huge image, and the transcript keeps it."""
    (tmp_path / "picture").write_bytes(content)
    result = await OpenToolContext(tmp_path).use(ViewTool(), path="picture")
    assert (result.images, result.content.endswith(f"bytes: {why}.")) == ((), True)


def huge(path: Path) -> int:
    """A file of 21 MB and a bit: lines of ten bytes, the last without its end."""
    count = 2_200_000
    path.write_bytes(b"".join(b"%09d\n" % number for number in range(1, count)) + b"the end")
    return count


async def test_a_huge_file_is_read_by_range_and_cannot_be_edited(tmp_path: Path) -> None:
    count = huge(tmp_path / "a.log")
    context = OpenToolContext(tmp_path)
    result = await context.use(ViewTool(), path="a.log", offset=1_500_000, limit=2)
    lines = result.content.split("\n")
    assert lines[:2] == ["1500000\t001500000", "1500001\t001500001"]
    assert "too large to edit here" in lines[-1]
    assert "Continue with offset=1500002" in lines[-1]
    assert context.reads == []
    assert (await view(tmp_path, path="a.log", offset=1)).startswith("     1\t000000001\n")
    last = await view(tmp_path, path="a.log", offset=count)
    assert last.startswith(f"{count}\tthe end\n")
    assert "go on" not in last
    with pytest.raises(ToolError, match=f"offset {count + 1} is past the end"):
        await view(tmp_path, path="a.log", offset=count + 1)


async def test_a_huge_range_that_is_cut_by_its_size_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes((b"z" * 30_000 + b"\n") * 800)
    shown = await view(tmp_path, path="a.log", offset=700)
    numbers = [int(line.split("\t")[0]) for line in shown.split("\n") if "\t" in line]
    assert numbers == list(range(700, 700 + len(numbers)))
    assert len(shown) < MAX_SHOWN + 200
    assert f"Continue with offset={numbers[-1] + 1}" in shown


async def test_a_directory_is_pointed_to_ls(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"is a directory\. Use ls"):
        await view(tmp_path, path=".")


async def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolError, match="not a regular file"):
        await view(tmp_path, path="pipe")


async def test_a_refused_read_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    context = OpenToolContext(tmp_path, refuse=lambda need: need.action == "read")
    with pytest.raises(ToolError, match=r"Not allowed: Read a\.txt"):
        await context.use(ViewTool(), path="a.txt")
    assert context.reads == []


@pytest.mark.parametrize("arguments", [{}, {"path": "a", "offset": 0}, {"path": "a", "limit": 5_000}, {"file": "a"}])
async def test_bad_input_is_named(tmp_path: Path, arguments: dict[str, object]) -> None:
    with pytest.raises(ToolError, match="Invalid input for view"):
        await view(tmp_path, **arguments)
