"""`symbols`: the outline of a file, or the symbols of the workspace by name (A1)."""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.permissions.verdict import Need
from longboat.tools.context import ToolContext, ToolError, parse
from longboat.tools.lsp.client.locations import locate
from longboat.tools.lsp.client.shapes import SYMBOLS, Symbol
from longboat.tools.lsp.client.symbol_location import open_source
from longboat.tools.lsp.client.tool import LanguageServerTool, lookup_traits
from longboat.tools.lsp.client.wording import plain_text
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of

MAX_SHOWN = 200
MAX_DEPTH = 6
# The protocol's numbers count into this.
# fmt: off
_KINDS = (
    "symbol", "file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum",
    "interface", "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key", "null",
    "member", "struct", "event", "operator", "parameter",
)
# fmt: on
_VARIABLE, _FUNCTIONS = _KINDS.index("variable"), [_KINDS.index(each) for each in ("function", "method", "constructor")]

Row = tuple[int, int, str]
"""First line, depth, text."""


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str | None, Meta(description="A file, for its outline.")] = None
    query: Annotated[
        str | None, Meta(description="A part of a name, to find in the workspace, or in the file if there is a path.")
    ] = None


class SymbolsTool(LanguageServerTool):
    spec = spec_of(
        "symbols",
        Input,
        lookup_traits("path", "query"),
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("symbols", call.arguments, Input)
        query = (wanted.query or "").strip()
        if wanted.path is not None:
            rows = await self._outline(context, wanted.path, query)
        elif query:
            rows = await self._search(context, query)
        else:
            raise ToolError("Pass a path for the outline of a file, or a query to search the workspace.")
        if not rows:
            return ToolResult(content="No symbol was found. Use grep to be sure.")
        rest = [f"… and {len(rows) - MAX_SHOWN} more"] if len(rows) > MAX_SHOWN else []
        return ToolResult(content="\n".join(rows[:MAX_SHOWN] + rest))

    async def _outline(self, context: ToolContext, path: str, query: str) -> list[str]:
        source = await open_source(context, "symbols", path)
        server = await self.servers.serving(source.target.path, source.text, "document_symbol_provider")
        params = {"textDocument": {"uri": source.target.path.as_uri()}}
        said = await server.ask_any("textDocument/documentSymbol", [params], SYMBOLS)
        rows = sorted(_rows(said or [], 0), key=lambda row: row[0])
        return (
            [f"{source.target.shown}:", *(text for *_, text in rows)] if rows and not query else _matching(rows, query)
        )

    async def _search(self, context: ToolContext, query: str) -> list[str]:
        need = Need(tool="symbols", action="read", argument=query, title=f"Ask the language servers for {query!r}")
        await context.permit(need)
        found: list[str] = []
        for server in await self.servers.serving_all("workspace_symbol_provider"):
            said = await server.ask_any("workspace/symbol", [{"query": query}], SYMBOLS)
            found += [
                row for symbol in said or [] if (row := self._describe_symbol(symbol, context.directory)) is not None
            ]
        return list(dict.fromkeys(found))

    def _describe_symbol(self, symbol: Symbol, workspace: Path) -> str | None:
        place = locate(symbol.location) if symbol.location is not None else None
        if place is None or not place.path.is_relative_to(workspace):
            return None
        owner = f" in {plain_text(symbol.container_name, 80)}" if symbol.container_name else ""
        return f"{self.servers.display_path(place.path)}:{place.line + 1}: {_named(symbol)}{owner}"


def _rows(symbols: list[Symbol], depth: int) -> list[Row]:
    rows: list[Row] = []
    for symbol in symbols:
        whole = symbol.range or (symbol.location.range if symbol.location is not None else None)
        if whole is not None:
            first, last = whole.start.line + 1, whole.end.line + 1
            lines = f"{first}" if first == last else f"{first}-{last}"
            rows.append((first, depth, f"{lines:>11}  {'  ' * depth}{_named(symbol)}"))
        if depth < MAX_DEPTH:
            # What a function keeps to itself is no part of an outline.
            inner = [each for each in symbol.children if each.kind != _VARIABLE or symbol.kind not in _FUNCTIONS]
            rows += _rows(inner, depth + 1)
    return rows


def _matching(rows: list[Row], query: str) -> list[str]:
    return [text for *_, text in rows if query.lower() in text.lower()]


def _named(symbol: Symbol) -> str:
    kind = _KINDS[symbol.kind] if 0 < symbol.kind < len(_KINDS) else _KINDS[0]
    return f"{kind} {plain_text(symbol.name, 120)}"
