"""`definition`: where a name is defined, according to a language server (A1)."""

import asyncio
from typing import Self

from longboat.tools.context import ToolContext, parse
from longboat.tools.lsp.client.locations import excerpts, parse_locations
from longboat.tools.lsp.client.servers import LanguageServers
from longboat.tools.lsp.client.shapes import PLACES
from longboat.tools.lsp.client.symbol_location import SymbolInput, find_symbol
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.tools.services import ToolServices
from longboat.wire.tools import Draw, Effect, SubAgents, ToolTraits

MAX_PLACES = 10
MAX_LINES = 20
"""Lines shown of each definition."""


class Input(SymbolInput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class DefinitionTool:
    spec = spec_of(
        "definition",
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
        wanted = parse("definition", call.arguments, Input)
        location = await find_symbol(context, "definition", wanted.path, wanted.symbol, wanted.line)
        source = location.source
        server = await self._servers.serving(source.target.path, source.text, "definition_provider")
        places = parse_locations(await server.ask_any("textDocument/definition", location.questions(), PLACES))
        if not places:
            return ToolResult(content=f"{server.name} found no definition of {wanted.symbol!r}. Use grep instead.")
        shown = await asyncio.to_thread(excerpts, places, context.directory, most=MAX_PLACES, most_lines=MAX_LINES)
        return ToolResult(content=shown)
