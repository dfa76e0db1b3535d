"""`fetch`: a readable text from the web."""

import asyncio
import re
from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta

from longboat.permissions.verdict import Need
from longboat.tools.context import ToolContext, ToolError, parse
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.tools.services import ToolServices
from longboat.tools.web.http import Page, Web
from longboat.wire.tools import SubAgents, ToolTraits

MAX_BYTES = 5 * 1024 * 1024
PART = 30_000
_ERROR_PART = 2_000
_ACCEPT = "text/markdown, text/html, text/plain, application/json, */*;q=0.5"
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = re.compile(r"text/.*|.*[/+](json|xml|yaml|toml|javascript|ecmascript|x-sh|x-python|x-ndjson|sql|graphql)|")
_META_CHARSET = re.compile(rb"""<meta[^>]+charset=["']?([a-z0-9_-]+)""", re.IGNORECASE)


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: Annotated[str, Meta(description="The http or https URL.")]
    format: Annotated[Literal["markdown", "text", "html"], Meta(description="The format for HTML pages.")] = "markdown"
    start: Annotated[int, Meta(ge=0, description="The character to start at, to continue a long page.")] = 0


class FetchTool:
    spec = spec_of("fetch", Input, ToolTraits(url="url", heading=("url",), sub_agents=SubAgents.ALL, side_by_side=True))

    def __init__(self, web: Web) -> None:
        self._web = web

    @classmethod
    def build(cls, services: ToolServices) -> Self:
        return cls(services.web)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        asked = parse("fetch", call.arguments, Input)

        async def permit(url: str) -> None:
            await context.permit(Need(tool="fetch", action="fetch", argument=url, title=f"Fetch {url}", detail=url))

        page = await self._web.get(asked.url, limit=MAX_BYTES, permit=permit, accept=_ACCEPT)
        text = await asyncio.to_thread(_text, page, asked.format)
        if page.status >= 400:
            said = f"{page.url} answered {page.status} {page.reason}."
            return ToolResult(content=f"{said}\n\n{text[:_ERROR_PART]}".strip(), is_error=True)
        return ToolResult(content=_part(page, text, asked.start))


def _part(page: Page, text: str, start: int) -> str:
    if start and start >= len(text):
        raise ToolError(f"{page.url} has {len(text):,} characters; start={start} is past the end.")
    end = min(len(text), start + PART)
    notes = [page.url]
    if start or end < len(text):
        notes.append(f"characters {start}–{end} of {len(text)}")
    if end < len(text):
        notes.append(f"continue with start={end}")
    if not page.is_whole:
        notes.append(f"only the first {MAX_BYTES >> 20} MB were fetched; use download for the whole file")
    return f"[{'; '.join(notes)}]\n\n{text[start:end] or '(no text)'}"


def _text(page: Page, style: Literal["markdown", "text", "html"]) -> str:
    is_html = page.content_type in _HTML
    if not is_html and (not _TEXT.fullmatch(page.content_type) or b"\0" in page.body[:1024]):
        kind = page.content_type or "binary"
        raise ToolError(f"{page.url} is {kind}, not text ({len(page.body):,} bytes). Use download.")
    text = _decoded(page.body, page.charset or (_named_within(page.body) if is_html else None))
    return html_to_text(text, url=page.url, style=style) if is_html and style != "html" else text


def _decoded(body: bytes, charset: str | None) -> str:
    try:
        return body.decode(charset or "utf-8", errors="replace")
    except (LookupError, UnicodeError):
        return body.decode("utf-8", errors="replace")


def _named_within(html: bytes) -> str | None:
    match = _META_CHARSET.search(html[:4096])
    return match.group(1).decode("ascii") if match else None


_BLANK_LINES = re.compile(r"\n\s*\n\s*\n")


def html_to_text(html: str, *, url: str, style: Literal["markdown", "text"]) -> str:
    """The page's content; links are made absolute by `url`. Takes a while for long pages: call it off the loop."""
    from html_to_markdown import ConversionOptions, InlineDataMedia, OutputFormat, convert

    options = ConversionOptions(
        output_format=OutputFormat.MARKDOWN if style == "markdown" else OutputFormat.PLAIN,
        extract_metadata=False,
        skip_images=True,
        inline_data_media=InlineDataMedia.DROP_ELEMENT,
        base_url=url,
    )
    return _BLANK_LINES.sub("\n\n", convert(html, options).content or "").strip()
