"""`rename`: rename a symbol everywhere it is used, with a language server (A1, A3, A4).

The files that the server changes count as read: the edit was computed from their current content.
"""

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.permissions.verdict import Need
from longboat.tools.context import ToolContext, ToolError, parse
from longboat.tools.files.file_io import MAX_DETAIL, MAX_RESULT, Change, apply_all
from longboat.tools.files.text import truncate_lines
from longboat.tools.lsp.client.edit import changes_of
from longboat.tools.lsp.client.shapes import EDIT, WorkspaceEdit
from longboat.tools.lsp.client.symbol_location import FileName, LineNumber, SymbolLocation, SymbolName, find_symbol
from longboat.tools.lsp.client.tool import LanguageServerTool
from longboat.tools.lsp.client.wording import count_of
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.wire.tools import Draw, Effect, ToolTraits

MAX_SAID = 4_000
"""Characters of what the language servers say afterwards."""


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: FileName
    symbol: SymbolName
    new_name: Annotated[str, Meta(description="The new name, without dots.", min_length=1, max_length=200)]
    line: LineNumber = None


class RenameTool(LanguageServerTool):
    spec = spec_of(
        "rename",
        Input,
        ToolTraits(
            effect=Effect.CHANGES,
            path="path",
            heading=("symbol", "path", "new_name"),
            quick=True,
            draw=Draw.DIFF,
        ),
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("rename", call.arguments, Input)
        if not wanted.new_name.strip() or any(letter.isspace() for letter in wanted.new_name):
            raise ToolError("new_name must be one name, without spaces.")
        location = await find_symbol(context, "definition", wanted.path, wanted.symbol, wanted.line)
        changes = await self._changes(context, location, wanted)
        title = f"Rename {wanted.symbol} to {wanted.new_name} in {count_of(len(changes), 'file')}"
        difference = "".join(change.difference for change in changes)
        await context.permit(_need(location, changes, title, difference))
        for change in changes:
            await context.note_read(change.target.path, change.before or b"")
        said = truncate_lines("\n".join(dict.fromkeys(filter(None, await apply_all(context, changes)))), MAX_SAID)
        names = ", ".join(change.target.shown for change in changes)
        parts = [
            f"Renamed {wanted.symbol} to {wanted.new_name} in {names}.",
            truncate_lines(difference, MAX_RESULT),
            said,
        ]
        return ToolResult(content="\n\n".join(part for part in parts if part))

    async def _changes(self, context: ToolContext, location: SymbolLocation, wanted: Input) -> list[Change]:
        source = location.source
        server = await self.servers.serving(source.target.path, source.text, "rename_provider")
        questions = location.questions(newName=wanted.new_name)
        edit = await server.ask_any("textDocument/rename", questions, EDIT, thorough=True)
        changes = await asyncio.to_thread(changes_of, edit or WorkspaceEdit(), context.directory, server.documents.get)
        if not changes:
            raise ToolError(
                f"{server.name} cannot rename {wanted.symbol!r} here. Nothing was changed. Use edit instead."
            )
        return changes


def _need(location: SymbolLocation, changes: list[Change], title: str, difference: str) -> Need:
    return Need(
        tool="rename",
        action="edit",
        argument=location.source.target.shown,
        paths=tuple(str(change.target.path) for change in changes),
        title=title,
        detail=truncate_lines(difference, MAX_DETAIL),
    )
