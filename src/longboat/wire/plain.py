"""Makes untrusted text safe for a terminal: text from a model, a tool, a file name or another client must not move the
cursor, set the clipboard, create a link, or display in another order than it is written.

Pure. Every removed character leaves a visible sign, so that nothing can hide in a command that someone has to approve.
"""

import re
import unicodedata

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_HIDDEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e"  # soft hyphen, fillers: they take no column
    r"\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"  # zero-width, separators, marks and overrides of direction
    r"\u3164\ufeff\uffa0\ufff9-\ufffb"
    r"\ud800-\udfff"  # halves of characters: a terminal cannot be sent them
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # tags: text that only programs read
)
_JOINERS = r"(?<=[\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?=[\x00-\x7f])"
"""Needed in emoji and some scripts, but meaningless next to ASCII."""
_CONTROL = re.compile(f"[{_HIDDEN}]|{_JOINERS}")


def plain(text: str) -> str:
    """The text with its lines, tabs as spaces, and a sign for each character that would be invisible."""
    if text.isascii() and text.isprintable():
        return text  # as most of what is shown
    return mark_hidden(text).expandtabs(4)


def mark_hidden(text: str) -> str:
    """The same, with tabs kept, for an input field."""
    return _CONTROL.sub(_sign, text.replace("\r\n", "\n"))


def plain_line(text: str) -> str:
    """The same on one line."""
    return " ".join(plain(text).split())


def fold_case(text: str) -> str:
    """Normalized for search: ignores case and how accents are encoded."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _sign(found: re.Match[str]) -> str:
    number = ord(found.group())
    if number < 0x20:
        return chr(0x2400 + number)  # the pictures of the control characters: ␛ for ESC
    return "\N{SYMBOL FOR DELETE}" if number == 0x7F else _REPLACEMENT
