"""`definition`: where a name is defined, as a language server knows it (A1)."""

import asyncio

from longboat.tools.kit import Kit, parse
from longboat.tools.lsp.places import excerpts, located
from longboat.tools.lsp.servers import LanguageServers
from longboat.tools.lsp.shapes import PLACES
from longboat.tools.lsp.spot import SymbolInput, find_spot
from longboat.tools.schema import spec_of
from longboat.tools.seam import ToolCall, ToolResult

MAX_PLACES = 10
MAX_LINES = 20
"""Lines shown of each definition."""


class DefinitionTool:
    spec = spec_of("definition", SymbolInput)

    def __init__(self, servers: LanguageServers) -> None:
        self._servers = servers

    async def run(self, call: ToolCall, kit: Kit) -> ToolResult:
        wanted = parse("definition", call.arguments, SymbolInput)
        spot = await find_spot(kit, "definition", wanted.path, wanted.symbol, wanted.line)
        source = spot.source
        server = await self._servers.serving(source.target.path, source.text, "definition_provider")
        places = located(await server.ask_any("textDocument/definition", spot.questions(), PLACES))
        if not places:
            return ToolResult(content=f"{server.name} knows no definition of {wanted.symbol!r}. Use grep instead.")
        shown = await asyncio.to_thread(excerpts, places, kit.directory, most=MAX_PLACES, most_lines=MAX_LINES)
        return ToolResult(content=shown)
