"""Terminal output as plain text: UTF-8 decoded, colors and cursor movements removed.

Owns the syntax of terminal escapes. A decoder is (decode, flush): the result does not depend on how the input is split.
"""

import codecs
import re

_ESCAPE = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # colors, cursor movements
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # window titles, links, the clipboard
    r"|[PX^_][^\x1b]*\x1b\\"
    r"|[ -/]*[0-OQ-WYZ\\`-~]"
    r")"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)\Z|\r\Z")
_C0 = bytes({*range(0x20), 0x7F} - {0x09, 0x0A})
_C0_IN_TEXT = dict.fromkeys(_C0)
_C1_IN_UTF_8 = re.compile(rb"\xc2[\x80-\x9f]")
LONGEST_ESCAPE = 4096
"""The longest escape sequence to wait for."""


class Plain:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""

    def decode(self, data: bytes) -> str:
        text = self._held + self._decoder.decode(data)
        cut = _UNFINISHED.search(text, max(0, len(text) - LONGEST_ESCAPE))
        end = cut.start() if cut else len(text)
        self._held = text[end:]
        return _clean(text[:end])

    def flush(self) -> str:
        text = self._held + self._decoder.decode(b"", final=True)
        self._held = ""
        return _clean(text)


def _clean(text: str) -> str:
    text = _ESCAPE.sub("", text) if "\x1b" in text else text
    # A line that is written over with a lone return is a progress bar: each state becomes a line of its own.
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    return _without_controls(text)


def _without_controls(text: str) -> str:
    # Five times as fast as one regular expression, and more than that for binary data: see benchmarks/rows/output.py.
    if text.isascii():
        return text.translate(_C0_IN_TEXT)
    return _C1_IN_UTF_8.sub(b"", text.encode().translate(None, _C0)).decode()
