"""The text of files: encodings, byte-order marks, line endings, diffs, and detection of binary files. Pure."""

import codecs
import difflib
import re
from dataclasses import dataclass

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
    old, now = _with_ends(before), _with_ends(after)
    start, stop = _common(old, now)
    first, rest = max(start - 3, 0), max(stop - 3, 0)
    hunks = _hunks(old[first : len(old) - rest], now[first : len(now) - rest], first)
    if not hunks:
        return ""
    return "".join(["--- /dev/null\n" if new else f"--- a/{name}\n", f"+++ b/{name}\n", *hunks])


def _with_ends(content: str) -> list[str]:
    lines = [f"{line}\n" for line in content.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, f"{last}\n\\ No newline at end of file\n"] if last else lines


def _common(old: list[str], now: list[str]) -> tuple[int, int]:
    """How many lines agree at the beginning, and how many of the others at the end."""
    shorter = min(len(old), len(now))
    start = next((index for index in range(shorter) if old[index] != now[index]), shorter)
    stop = next((index for index in range(shorter - start) if old[-1 - index] != now[-1 - index]), shorter - start)
    return start, stop


def _hunks(old: list[str], now: list[str], shift: int) -> list[str]:
    # difflib's time grows with the product: past this, the whole stretch is shown as replaced.
    if len(old) * len(now) > 4_000_000:
        header = f"@@ -{shift + 1},{len(old)} +{shift + 1},{len(now)} @@\n"
        return [header, *(f"-{line}" for line in old), *(f"+{line}" for line in now)]
    hunks = list(difflib.unified_diff(old, now))[2:]
    return [_shifted(line, shift) if line.startswith("@@") else line for line in hunks]


def _shifted(header: str, shift: int) -> str:
    return re.sub(r"(?<=[-+])\d+", lambda number: str(int(number[0]) + shift), header)


def bounded(text: str, limit: int) -> str:
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
