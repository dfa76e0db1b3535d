"""`references`: everywhere a name is used, according to a language server (A1)."""

import asyncio

from longboat.tools.context import ToolContext, parse
from longboat.tools.lsp.client.locations import format_locations
from longboat.tools.lsp.client.symbol_location import SymbolInput
from longboat.tools.lsp.client.tool import LanguageServerTool, lookup_traits
from longboat.tools.lsp.client.wording import count_of
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of

MAX_PLACES = 150


class Input(SymbolInput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defined here because the description is looked for beside the module of the arguments."""


class ReferencesTool(LanguageServerTool):
    spec = spec_of("references", Input, lookup_traits("symbol", "path"))

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("references", call.arguments, Input)
        server, places = await self.locate("references", wanted, context, everywhere=True)
        if not places:
            return ToolResult(content=f"{server.name} found no use of {wanted.symbol!r}. Use grep to be sure.")
        files = len({place.path for place in places})
        heading = f"{count_of(len(places), 'line')} in {count_of(files, 'file')}, including the definition:"
        shown = await asyncio.to_thread(format_locations, places, context.directory, most=MAX_PLACES)
        return ToolResult(content=f"{heading}\n{shown}")
