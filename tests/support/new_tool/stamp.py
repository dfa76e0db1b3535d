"""`stamp`: put a line at the top of a file. The argument for its path has a name that nobody can guess."""

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.tools.context import ToolContext, parse
from longboat.tools.files.file_io import Change, change_file, read
from longboat.tools.files.paths import resolve
from longboat.tools.files.text import diff
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.wire.tools import Draw, Effect, ToolTraits


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(description="The line.")]
    place: Annotated[str, Meta(description="The file.")]


class StampTool:
    spec = spec_of(
        "stamp",
        Input,
        ToolTraits(effect=Effect.CHANGES, path="place", heading=("place",), quick=True, draw=Draw.DIFF),
        brief="Stamp a file.",
        cues=r"stamp|mark",
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("stamp", call.arguments, Input)
        target = await asyncio.to_thread(resolve, context.directory, wanted.place)
        before = await asyncio.to_thread(read, target)
        await context.check_read(target.path, before)
        after = f"{wanted.text}\n{before.decode()}"
        change = Change(
            target=target,
            before=before,
            after=after.encode(),
            difference=diff(before.decode(), after, target.shown),
        )
        parts = await change_file(context, change, tool="stamp", title=f"Stamp {target.shown}")
        return ToolResult(content="\n\n".join([f"Stamped {target.shown}.", *parts]))
