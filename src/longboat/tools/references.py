"""`references`: everywhere a name is used, as a language server knows it (A1)."""

import asyncio

from longboat.tools.kit import Kit, parse
from longboat.tools.lsp.places import listed, located
from longboat.tools.lsp.servers import LanguageServers
from longboat.tools.lsp.shapes import PLACES
from longboat.tools.lsp.spot import SymbolInput, find_spot
from longboat.tools.lsp.words import counting
from longboat.tools.schema import spec_of
from longboat.tools.seam import ToolCall, ToolResult

MAX_PLACES = 150


class ReferencesTool:
    spec = spec_of("references", SymbolInput)

    def __init__(self, servers: LanguageServers) -> None:
        self._servers = servers

    async def run(self, call: ToolCall, kit: Kit) -> ToolResult:
        wanted = parse("references", call.arguments, SymbolInput)
        spot = await find_spot(kit, "references", wanted.path, wanted.symbol, wanted.line)
        source = spot.source
        server = await self._servers.serving(source.target.path, source.text, "references_provider")
        questions = spot.questions(context={"includeDeclaration": True})
        places = located(await server.ask_any("textDocument/references", questions, PLACES, thorough=True))
        if not places:
            return ToolResult(content=f"{server.name} knows no use of {wanted.symbol!r}. Use grep to be sure.")
        files = len({place.path for place in places})
        heading = f"{counting(len(places), 'line')} in {counting(files, 'file')}, the definition included:"
        shown = await asyncio.to_thread(listed, places, kit.directory, most=MAX_PLACES)
        return ToolResult(content=f"{heading}\n{shown}")
