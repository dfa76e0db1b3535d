"""`definition`: where a name is defined, according to a language server (A1)."""

import asyncio

from longboat.tools.context import ToolContext, parse
from longboat.tools.lsp.client.locations import excerpts
from longboat.tools.lsp.client.symbol_location import SymbolInput
from longboat.tools.lsp.client.tool import LanguageServerTool, lookup_traits
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of

MAX_PLACES = 10
MAX_LINES = 20
"""Lines shown of each definition."""


class Input(SymbolInput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defined here because the description is looked for beside the module of the arguments."""


class DefinitionTool(LanguageServerTool):
    spec = spec_of("definition", Input, lookup_traits("symbol", "path"))

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("definition", call.arguments, Input)
        server, places = await self.locate("definition", wanted, context)
        if not places:
            return ToolResult(content=f"{server.name} found no definition of {wanted.symbol!r}. Use grep instead.")
        shown = await asyncio.to_thread(excerpts, places, context.directory, most=MAX_PLACES, most_lines=MAX_LINES)
        return ToolResult(content=shown)
