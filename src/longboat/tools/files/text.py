"""The text of files: encodings, byte-order marks, line endings, diffs, and detection of binary files. Pure."""

import codecs
import re
from dataclasses import dataclass

from longboat.tools.files.hunks import hunks_between, merge_lines, render_hunk, split_lines

SNIFFED = 8_192
"""Bytes in which a NUL makes a file binary."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDE_BOMS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
IMAGES = {
    "PNG image": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "JPEG image": re.compile(rb"\xff\xd8\xff"),
    "GIF image": re.compile(rb"GIF8[79]a"),
    "WebP image": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_BINARIES = {
    "PDF document": re.compile(rb"%PDF-"),
    "ZIP archive (or a document built on one)": re.compile(rb"PK(\x03\x04|\x05\x06)"),
    "gzip archive": re.compile(rb"\x1f\x8b"),
    "bzip2 archive": re.compile(rb"BZh[1-9]"),
    "xz archive": re.compile(rb"\xfd7zXZ\x00"),
    "Zstandard archive": re.compile(rb"\x28\xb5\x2f\xfd"),
    "SQLite database": re.compile(rb"SQLite format 3\x00"),
    "ELF program or library": re.compile(rb"\x7fELF"),
    "Mach-O program or library": re.compile(rb"[\xcf\xce]\xfa\xed\xfe"),
    "WebAssembly module": re.compile(rb"\x00asm"),
}


class NotText(ValueError):
    """The file is not text; `kind` says what it is."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The text of a file: `content` has its original line endings and no byte-order mark."""

    content: str
    encoding: str = "utf-8"
    bom: bytes = b""

    @property
    def remark(self) -> str:
        """What is unusual about the encoding, or nothing."""
        if self.encoding == "latin-1":
            return "Not valid UTF-8: read as Latin-1."
        if self.encoding != "utf-8":
            return f"Encoded as {self.encoding.upper()}."
        return ""

    def encode(self, content: str) -> bytes:
        """Another content for the same file. Raises UnicodeEncodeError for characters that its encoding lacks."""
        return self.bom + content.encode(self.encoding)


def image_kind(head: bytes) -> str | None:
    return next((kind for kind, magic in IMAGES.items() if magic.match(head)), None)


def binary_kind(head: bytes) -> str | None:
    """The kind of a file that begins like this, if it is not text."""
    if kind := next((kind for kind, magic in (IMAGES | _BINARIES).items() if magic.match(head)), None):
        return kind
    if head.startswith(_WIDE_BOMS):
        return "UTF-32 text"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return None
    return "binary file" if b"\0" in head[:SNIFFED] else None


def decode(content: bytes) -> Text:
    """The text of a file. Raises NotText. Whatever it gives encodes back to the same bytes."""
    if kind := binary_kind(content):
        raise NotText(kind)
    bom, encoding = next(((bom, name) for bom, name in _BOMS if content.startswith(bom)), (b"", "utf-8"))
    try:
        return Text(content=content[len(bom) :].decode(encoding), encoding=encoding, bom=bom)
    except UnicodeDecodeError:
        if encoding != "utf-8":
            raise NotText(f"broken {encoding.upper()} text") from None
    return Text(content=content.decode("latin-1"), encoding="latin-1")


def newline_of(content: str) -> str:
    """The line end that most lines have."""
    pairs = content.count("\r\n")
    return "\r\n" if pairs * 2 > content.count("\n") else "\n"


def lines_of(content: str) -> list[str]:
    """The lines without their ends. Only LF ends a line: so do editors, compilers and ripgrep count."""
    lines = content.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def diff(before: str, after: str, name: str, *, new: bool = False) -> str:
    """A unified diff that `patch` and `git apply` take."""
    old, now = split_lines(before), split_lines(after)
    hunks = [render_hunk(hunk, old, now) for hunk in hunks_between(old, now)]
    if not hunks:
        return ""
    return "".join(["--- /dev/null\n" if new else f"--- a/{name}\n", f"+++ b/{name}\n", *hunks])


def merge(base: bytes | None, ours: bytes | None, theirs: bytes | None, *, prefer_ours: bool) -> bytes | None:
    """Both changes of a file's content; None means that it does not exist. Where they overlap, and for what is no
    text, one side is taken."""
    if base in (ours, theirs) or ours == theirs:
        return theirs if base == ours else ours
    preferred = ours if prefer_ours else theirs
    if base is None or ours is None or theirs is None:
        return preferred
    try:
        texts = [decode(each) for each in (base, ours, theirs)]
        lines = merge_lines(*(split_lines(each.content) for each in texts), prefer_ours=prefer_ours)
        return texts[2 - prefer_ours].encode("".join(lines))
    except (NotText, UnicodeEncodeError):
        return preferred


def truncate_lines(text: str, limit: int) -> str:
    """At most about `limit` characters of `text`, by whole lines, with what was left out said."""
    if len(text) <= limit:
        return text
    kept = text[: text.rfind("\n", 0, limit) + 1] or text[:limit] + "\n"
    return f"{kept}… ({text.count(chr(10), len(kept)) or 1} more lines)\n"


def line_at(content: str, position: int) -> int:
    return content.count("\n", 0, position) + 1


def crlf_positions(content: str) -> list[int]:
    """Where the `\\r\\n` pairs of `content` would be if each were one character."""
    return [match.start() - index for index, match in enumerate(re.finditer("\r\n", content))]
