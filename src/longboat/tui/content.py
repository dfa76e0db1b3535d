"""Turns untrusted text into `Content` without markup, made harmless by `wire.plain`. Must not know widgets."""

from textual.content import Content

from longboat.wire.plain import plain, plain_line


def one_line(text: str, width: int = 0) -> str:
    """The text on one line, cut to `width` characters."""
    line = plain_line(text[: 4 * width] if width else text)
    return line if not width or len(line) <= width else line[: width - 1] + "…"


def content(text: str, style: str = "") -> Content:
    """Untrusted text that is safe to show."""
    return Content.styled(plain(text), style) if style else Content(plain(text))


def line(text: str, style: str = "", *, width: int = 0) -> Content:
    """Untrusted text on one line that is safe to show."""
    shown = one_line(text, width)
    return Content.styled(shown, style) if style else Content(shown)


def format_count(number: float) -> str:
    """A short form of a number of tokens, such as 12.5k."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + unit
    return f"{number:.0f}"
