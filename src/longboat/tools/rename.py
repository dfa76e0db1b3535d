"""`rename`: rename a symbol everywhere it is used, with a language server (A1, A3, A4).

The files that the server changes count as read: the edit was computed from their current content.
"""

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.core.permissions import Need
from longboat.tools.files import MAX_DETAIL, MAX_RESULT, Change, apply_all
from longboat.tools.kit import Kit, ToolError, parse
from longboat.tools.lsp.edit import changes_of
from longboat.tools.lsp.servers import LanguageServers
from longboat.tools.lsp.shapes import EDIT, WorkspaceEdit
from longboat.tools.lsp.spot import FileName, LineNumber, Spot, SymbolName, find_spot
from longboat.tools.lsp.words import counting
from longboat.tools.schema import spec_of
from longboat.tools.seam import ToolCall, ToolResult
from longboat.tools.text import bounded

MAX_SAID = 4_000
"""Characters of what the language servers say afterwards."""


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: FileName
    symbol: SymbolName
    new_name: Annotated[str, Meta(description="The new name, without dots.", min_length=1, max_length=200)]
    line: LineNumber = None


class RenameTool:
    spec = spec_of("rename", Input)

    def __init__(self, servers: LanguageServers) -> None:
        self._servers = servers

    async def run(self, call: ToolCall, kit: Kit) -> ToolResult:
        wanted = parse("rename", call.arguments, Input)
        if not wanted.new_name.strip() or any(letter.isspace() for letter in wanted.new_name):
            raise ToolError("new_name must be one name, without spaces.")
        spot = await find_spot(kit, "definition", wanted.path, wanted.symbol, wanted.line)
        changes = await self._changes(kit, spot, wanted)
        title = f"Rename {wanted.symbol} to {wanted.new_name} in {counting(len(changes), 'file')}"
        difference = "".join(change.difference for change in changes)
        await kit.permit(_need(spot, changes, title, difference))
        for change in changes:
            await kit.note_read(change.target.path, change.before or b"")
        said = bounded("\n".join(dict.fromkeys(filter(None, await apply_all(kit, changes)))), MAX_SAID)
        names = ", ".join(change.target.shown for change in changes)
        parts = [f"Renamed {wanted.symbol} to {wanted.new_name} in {names}.", bounded(difference, MAX_RESULT), said]
        return ToolResult(content="\n\n".join(part for part in parts if part))

    async def _changes(self, kit: Kit, spot: Spot, wanted: Input) -> list[Change]:
        source = spot.source
        server = await self._servers.serving(source.target.path, source.text, "rename_provider")
        questions = spot.questions(newName=wanted.new_name)
        edit = await server.ask_any("textDocument/rename", questions, EDIT, thorough=True)
        changes = await asyncio.to_thread(changes_of, edit or WorkspaceEdit(), kit.directory, server.documents.get)
        if not changes:
            raise ToolError(
                f"{server.name} cannot rename {wanted.symbol!r} here. Nothing was changed. Use edit instead."
            )
        return changes


def _need(spot: Spot, changes: list[Change], title: str, difference: str) -> Need:
    return Need(
        tool="rename",
        action="edit",
        argument=spot.source.target.shown,
        paths=tuple(str(change.target.path) for change in changes),
        title=title,
        detail=bounded(difference, MAX_DETAIL),
    )
