"""The symbol that a tool call is about: its file, its name, and its position for a server."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from longboat.core.permissions import Need
from longboat.tools.files import read
from longboat.tools.kit import Kit
from longboat.tools.lsp.contents import decoded
from longboat.tools.lsp.positions import Lines, find
from longboat.tools.paths import Target, resolve

FileName = Annotated[str, Meta(description="The file, absolute or relative to the workspace.")]
SymbolName = Annotated[str, Meta(description="The name, as it is in the file; for a dotted name its last part.")]
LineNumber = Annotated[
    Annotated[int, Meta(ge=1)] | None,
    Meta(description="The line it is on, from 1. Default: its first occurrence."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file that may be read, with its text."""

    target: Target
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
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
