"""The symbol that a tool call is about: its file, its name, and its position for a server."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from longboat.permissions.verdict import Need
from longboat.tools.context import ToolContext
from longboat.tools.files.file_io import read
from longboat.tools.files.paths import Target, resolve
from longboat.tools.lsp.client.file_text import decoded
from longboat.tools.lsp.client.positions import Lines, find

FileName = Annotated[str, Meta(description="The file, absolute or relative to the workspace.")]
SymbolName = Annotated[str, Meta(description="The name, as it is in the file; for a dotted name its last part.")]
LineNumber = Annotated[
    Annotated[int, Meta(ge=1)] | None,
    Meta(description="The line it is on, from 1. Default: its first occurrence."),
]


class SymbolInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of the tools that look up one symbol."""

    path: FileName
    symbol: SymbolName
    line: LineNumber = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file that may be read, with its text."""

    target: Target
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolLocation:
    """A symbol in a file. `offsets` are its possible positions."""

    source: Source
    offsets: list[int]

    def questions(self, **more: Any) -> list[dict[str, Any]]:
        """The document and a position, as requests have them, for each place."""
        lines = Lines(self.source.text)
        document = {"uri": self.source.target.path.as_uri()}
        positions = [lines.position(offset) for offset in self.offsets]
        return [
            {"textDocument": document, "position": {"line": each.line, "character": each.character}, **more}
            for each in positions
        ]


async def open_source(context: ToolContext, tool: str, path: str) -> Source:
    target = await asyncio.to_thread(resolve, context.directory, path)
    await permit_read(context, tool, target)
    content = await asyncio.to_thread(read, target)
    return Source(target=target, text=decoded(content, target.shown).content)


async def permit_read(context: ToolContext, tool: str, target: Target) -> None:
    need = Need(
        tool=tool,
        action="read",
        argument=target.shown,
        paths=(str(target.path),),
        title=f"Ask a language server about {target.shown}",
    )
    await context.permit(need)


async def find_symbol(context: ToolContext, tool: str, path: str, symbol: str, line: int | None) -> SymbolLocation:
    source = await open_source(context, tool, path)
    return SymbolLocation(source=source, offsets=find(source.text, symbol, line, source.target.shown))
