"""Foreign text as `Content`, which has no markup, after `wire.plain` has made it harmless. Must not know widgets."""

from textual.content import Content

from longboat.wire.plain import plain, plain_line


def one_line(text: str, width: int = 0) -> str:
    """A text on one line; only its beginning if it has more characters than `width`."""
    line = plain_line(text[: 4 * width] if width else text)
    return line if not width or len(line) <= width else line[: width - 1] + "…"


def content(text: str, style: str = "") -> Content:
    """Foreign text as it may be shown."""
    return Content.styled(plain(text), style) if style else Content(plain(text))


def line(text: str, style: str = "", *, width: int = 0) -> Content:
    """Likewise, on one line."""
    shown = one_line(text, width)
    return Content.styled(shown, style) if style else Content(shown)


def format_count(number: float) -> str:
    """A number of tokens in a few characters."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + unit
    return f"{number:.0f}"
