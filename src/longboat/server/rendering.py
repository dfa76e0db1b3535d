"""Renders text from models, tools and people as safe HTML: Markdown, code and diffs.

Owns the list of what the HTML may contain. Pure and without a clock: some text makes parsers slow, so `renderer` runs
this in a separate process with a time limit. All text is considered hostile: raw HTML is off in Markdown, and the
result is cleaned once more so that only `TAGS` remain.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from typing import Any, assert_never

import msgspec
import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

from longboat.wire.requests import RenderItem, RenderKind

MAX_COLOURED = 60_000
"""Characters: longer code is not highlighted."""

TAGS = {
    *("a", "p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li"),
    *("h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td", "span", "div"),
}
ATTRIBUTES = {
    "a": {"href", "title", "target"},
    "ol": {"start"},
    **{tag: {"class"} for tag in ("span", "div", "pre", "code", "table", "tr", "td", "th")},
}
SCHEMES = {"http", "https", "mailto"}
CLASSES = frozenset(
    {"diff", "meta", "hunk", "add", "del", "same", "number", "line", "left", "center", "right", "plain"}
)
_COLOUR = re.compile(r"hl-[a-z0-9]{1,8}")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,40}")
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@")


def render(item: RenderItem) -> str:
    """One item as safe HTML."""
    match item.kind:
        case RenderKind.MARKDOWN:
            made = _markdown().render(item.text)
        case RenderKind.CODE:
            made = f"<pre><code>{_coloured(item.text, _lexer(item.language, item.path))}</code></pre>"
        case RenderKind.DIFF:
            made = _diff(item.text, _lexer(item.language, item.path))
        case _:
            assert_never(item.kind)
    return _cleaned(made)


def _cleaned(html: str) -> str:
    return nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=_keep_attribute,
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer",
        set_tag_attribute_values={"a": {"target": "_blank"}},
        strip_comments=True,
    )


def _keep_attribute(tag: str, name: str, value: str) -> str | None:
    """The allowed part of an attribute's value, or None to drop the attribute."""
    if name == "class":
        kept = [word for word in value.split() if word in CLASSES or _COLOUR.fullmatch(word)]
        return " ".join(kept) or None
    if name == "href":
        # nh3 allows relative links, which would point into this server.
        return value if re.match(r"(?:https?://|mailto:)", value, re.IGNORECASE) else None
    if name == "start":
        return value if re.fullmatch(r"\d{1,9}", value) else None
    return value


# Markdown


@cache
def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "highlight": _fence})
    parser.enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image)
    parser.core.ruler.push("alignment", _align)
    parser.core.ruler.push("outline", _lower)
    return parser


def _fence(code: str, language: str, _: str) -> str:
    return _coloured(code, _lexer(language, None))


def _image(_: RendererHTML, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """A link instead: loading an image would tell its server who reads this, or call a route of ours."""
    token = tokens[index]
    source = str(token.attrGet("src") or "")
    return f'<a href="{escape(source)}">{escape(token.content or source)}</a>'


def _align(state: Any) -> None:
    """Turn alignment into a class: the page allows no style attributes."""
    for token in state.tokens:
        if token.type in ("th_open", "td_open") and (style := token.attrs.pop("style", None)):
            token.attrSet("class", str(style).partition(":")[2])


def _lower(state: Any) -> None:
    """Put headings below the page's own two levels, so that the page's outline stays intact."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 2, 6)}"


# Code


def _lexer(language: str | None, path: str | None) -> Lexer | None:
    try:
        if language and _LANGUAGE.fullmatch(language):
            return get_lexer_by_name(language, stripnl=False, ensurenl=False)
        if path:
            return get_lexer_for_filename(path.rpartition("/")[2][-200:], stripnl=False, ensurenl=False)
    except ClassNotFound:
        pass
    return None


@cache
def _formatter() -> HtmlFormatter[str]:
    return HtmlFormatter(nowrap=True, classprefix="hl-")


def _coloured(code: str, lexer: Lexer | None) -> str:
    if lexer is None or len(code) > MAX_COLOURED:
        return escape(code)
    return highlight(code, lexer, _formatter())


# Diffs


def _diff(text: str, lexer: Lexer | None) -> str:
    """A table with three columns: old line number, new line number, line."""
    return f'<table class="diff"><tbody>{"".join(_rows(text, lexer))}</tbody></table>'


def _rows(text: str, lexer: Lexer | None) -> Iterator[str]:
    old = new = 0
    for line in text.split("\n"):
        if found := _HUNK.match(line):
            old, new = int(found[1]), int(found[2])
            yield _row("hunk", "", "", escape(line))
        elif not old and not new:
            # Before the first hunk: the file names.
            if line.startswith(("--- ", "+++ ")) or not line:
                continue
            yield _row("meta", "", "", escape(line))
        elif line.startswith("+"):
            yield _row("add", "", str(new), _coloured(line[1:], lexer))
            new += 1
        elif line.startswith("-"):
            yield _row("del", str(old), "", _coloured(line[1:], lexer))
            old += 1
        elif line.startswith(" "):
            yield _row("same", str(old), str(new), _coloured(line[1:], lexer))
            old, new = old + 1, new + 1
        elif line:
            yield _row("meta", "", "", escape(line))


def _row(kind: str, old: str, new: str, line: str) -> str:
    numbers = f'<td class="number">{old}</td><td class="number">{new}</td>'
    return f'<tr class="{kind}">{numbers}<td class="line">{line.rstrip(chr(10))}</td></tr>'


# The process


def serve() -> None:
    """Read items as JSON lines from stdin and write their HTML as JSON lines to stdout, until stdin ends."""
    decoder = msgspec.json.Decoder(RenderItem)
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(msgspec.json.encode(render(decoder.decode(line))) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    serve()
