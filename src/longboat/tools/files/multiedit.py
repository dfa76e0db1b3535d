"""`multiedit`: several replacements in one file, all or none (A3)."""

from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.tools.context import ToolContext, parse
from longboat.tools.files.edit import edit_file
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.wire.tools import Draw, Effect, Governs, ToolTraits


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    old_text: Annotated[str, Meta(description="The text to replace, exactly as it is in the file.")]
    new_text: Annotated[str, Meta(description="The replacement; empty removes the text.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence.")] = False


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file, absolute or relative to the workspace.")]
    edits: Annotated[list[Item], Meta(min_length=1, max_length=100, description="The replacements, in order.")]


class MultieditTool:
    spec = spec_of(
        "multiedit",
        Input,
        ToolTraits(
            effect=Effect.CHANGES,
            path="path",
            heading=("path",),
            governs=Governs.EDITING,
            quick=True,
            draw=Draw.DIFF,
        ),
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("multiedit", call.arguments, Input)
        return await edit_file(context, "multiedit", wanted.path, wanted.edits)
