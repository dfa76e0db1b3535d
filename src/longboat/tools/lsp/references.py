"""`references`: everywhere a name is used, according to a language server (A1)."""

import asyncio
from typing import Self

from longboat.tools.context import ToolContext, parse
from longboat.tools.lsp.client.locations import format_locations, parse_locations
from longboat.tools.lsp.client.servers import LanguageServers
from longboat.tools.lsp.client.shapes import PLACES
from longboat.tools.lsp.client.symbol_location import SymbolInput, find_symbol
from longboat.tools.lsp.client.wording import count_of
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.tools.services import ToolServices
from longboat.wire.tools import Draw, Effect, SubAgents, ToolTraits

MAX_PLACES = 150


class Input(SymbolInput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class ReferencesTool:
    spec = spec_of(
        "references",
        Input,
        ToolTraits(
            effect=Effect.READS,
            path="path",
            heading=("symbol", "path"),
            sub_agents=SubAgents.ALL,
            quick=True,
            draw=Draw.QUIET,
        ),
    )

    def __init__(self, servers: LanguageServers) -> None:
        self._servers = servers

    @classmethod
    def build(cls, services: ToolServices) -> Self:
        return cls(services.language_servers)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("references", call.arguments, Input)
        location = await find_symbol(context, "references", wanted.path, wanted.symbol, wanted.line)
        source = location.source
        server = await self._servers.serving(source.target.path, source.text, "references_provider")
        questions = location.questions(context={"includeDeclaration": True})
        places = parse_locations(await server.ask_any("textDocument/references", questions, PLACES, thorough=True))
        if not places:
            return ToolResult(content=f"{server.name} found no use of {wanted.symbol!r}. Use grep to be sure.")
        files = len({place.path for place in places})
        heading = f"{count_of(len(places), 'line')} in {count_of(files, 'file')}, including the definition:"
        shown = await asyncio.to_thread(format_locations, places, context.directory, most=MAX_PLACES)
        return ToolResult(content=f"{heading}\n{shown}")
