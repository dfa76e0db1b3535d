"""The place a tool is asked about: a file, a symbol in it, and where that is for a server."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from longboat.core.permissions import Need
from longboat.tools.files import read
from longboat.tools.kit import Kit
from longboat.tools.lsp.contents import decoded
from longboat.tools.lsp.positions import Lines, find
from longboat.tools.paths import Target, resolve

FileName = Annotated[str, Meta(description="The file, absolute or relative to the workspace.")]
SymbolName = Annotated[
    str, Meta(description="The name to look at, as it stands in the file; of a dotted name the last part is meant.")
]
LineNumber = Annotated[
    Annotated[int, Meta(ge=1)] | None,
    Meta(description="The line it is on, counted from 1. Left out: its first place in the file."),
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
class Spot:
    """A symbol in a file. `offsets` are the places where it may be."""

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


async def open_source(kit: Kit, tool: str, path: str) -> Source:
    target = await asyncio.to_thread(resolve, kit.directory, path)
    await permit_read(kit, tool, target)
    content = await asyncio.to_thread(read, target)
    return Source(target=target, text=decoded(content, target.shown).content)


async def permit_read(kit: Kit, tool: str, target: Target) -> None:
    need = Need(
        tool=tool,
        action="read",
        argument=target.shown,
        paths=(str(target.path),),
        title=f"Ask a language server about {target.shown}",
    )
    await kit.permit(need)


async def find_spot(kit: Kit, tool: str, path: str, symbol: str, line: int | None) -> Spot:
    source = await open_source(kit, tool, path)
    return Spot(source=source, offsets=find(source.text, symbol, line, source.target.shown))
