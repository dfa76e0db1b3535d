"""The base of the tools that ask language servers, and the question that two of them ask: where is this symbol?"""

from typing import Self

from longboat.tools.context import ToolContext
from longboat.tools.lsp.client.locations import Located, parse_locations
from longboat.tools.lsp.client.server import Server
from longboat.tools.lsp.client.servers import LanguageServers
from longboat.tools.lsp.client.shapes import LOCATIONS
from longboat.tools.lsp.client.symbol_location import SymbolInput, find_symbol
from longboat.tools.services import ToolServices
from longboat.wire.tools import Draw, Effect, SubAgents, ToolTraits


def lookup_traits(*heading: str) -> ToolTraits:
    """The traits of a tool that only looks something up. `heading`: the arguments that name it for people."""
    return ToolTraits(
        effect=Effect.READS,
        path="path",
        heading=heading,
        sub_agents=SubAgents.ALL,
        side_by_side=True,
        quick=True,
        draw=Draw.QUIET,
    )


class LanguageServerTool:
    def __init__(self, servers: LanguageServers) -> None:
        self.servers = servers

    @classmethod
    def build(cls, services: ToolServices) -> Self:
        return cls(services.language_servers)

    async def locate(
        self, tool: str, wanted: SymbolInput, context: ToolContext, *, everywhere: bool = False
    ) -> tuple[Server, list[Located]]:
        """The server for the file, and its answer to the question that has the tool's name. `everywhere`: all places,
        the definition too, so wait for a server that is still loading."""
        location = await find_symbol(context, tool, wanted.path, wanted.symbol, wanted.line)
        source = location.source
        server = await self.servers.serving(source.target.path, source.text, f"{tool}_provider")
        questions = location.questions(**({"context": {"includeDeclaration": True}} if everywhere else {}))
        said = await server.ask_any(f"textDocument/{tool}", questions, LOCATIONS, thorough=everywhere)
        return server, parse_locations(said)
