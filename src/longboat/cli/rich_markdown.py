"""Markdown for a terminal: Rich's, with plain headings, code without a box, and HTML shown as text. Imports Rich."""

from functools import cache
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

MAX_COLORED = 6_000
"""Longer code, in characters, is not highlighted: it is drawn again each time it grows."""


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        if len(code) > MAX_COLORED:
            yield Padding(Text(code, overflow="fold"), (0, 0, 0, 2))
        else:
            yield Padding(
                Syntax(code, self.lexer_name, theme="ansi_dark", background_color="default", word_wrap=True),
                (0, 0, 0, 2),
            )


class Formatted(Markdown):
    """A text as Rich shows it. Links are followed by their address, because their text may say something else."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.markup = text
        self.parsed = _parser().parse(text)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


def block_lines(text: str) -> list[int]:
    """The line in which each top-level block starts."""
    return [token.map[0] for token in _parser().parse(text) if token.level == 0 and token.nesting >= 0 and token.map]
