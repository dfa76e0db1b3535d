"""`edit`: replace exact text in a file (A3). Every tool that replaces text uses `edit_file`."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from longboat.tools.context import ToolContext, ToolError, parse
from longboat.tools.files.file_io import Change, change_file, read
from longboat.tools.files.paths import Target, resolve
from longboat.tools.files.replacement import Replaced, replace
from longboat.tools.files.text import NotText, decode, diff
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.wire.tools import Draw, Effect, Governs, ToolTraits


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file, absolute or relative to the workspace.")]
    old_text: Annotated[str, Meta(description="The text to replace, exactly as it is in the file.")]
    new_text: Annotated[str, Meta(description="The replacement; empty removes the text.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence.")] = False


class EditTool:
    spec = spec_of(
        "edit",
        Input,
        ToolTraits(
            effect=Effect.CHANGES,
            path="path",
            heading=("path",),
            governs=Governs.EDITING,
            quick=True,
            draw=Draw.DIFF,
        ),
        brief="Replace text in a file that was read before.",
        cues=r"edit|replace|rename|fix",
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("edit", call.arguments, Input)
        return await edit_file(context, "edit", wanted.path, [wanted])


class Edit(Protocol):
    @property
    def old_text(self) -> str: ...
    @property
    def new_text(self) -> str: ...
    @property
    def replace_all(self) -> bool: ...


async def edit_file(context: ToolContext, tool: str, path: str, edits: Sequence[Edit]) -> ToolResult:
    """Make all the edits, each on what the one before left, or none."""
    target = await asyncio.to_thread(resolve, context.directory, path)
    before = await asyncio.to_thread(read, target)
    await context.check_read(target.path, before)
    change, remarks = await asyncio.to_thread(_edited, target, before, edits)
    parts = await change_file(context, change, tool=tool, title=f"Edit {target.shown}")
    return ToolResult(content="\n\n".join([f"Edited {target.shown}: {'; '.join(remarks)}.", *parts]))


def _edited(target: Target, before: bytes, edits: Sequence[Edit]) -> tuple[Change, list[str]]:
    try:
        text = decode(before)
    except NotText as error:
        raise ToolError(f"{target.shown} is not a text file ({error.kind}) and cannot be edited.") from None
    content, remarks = text.content, []
    for number, edit in enumerate(edits, start=1):
        replaced = _replaced(content, edit, f"Edit {number} of {len(edits)}" if len(edits) > 1 else "")
        content = replaced.content
        remarks.append(f"{replaced.count} replacement{'s' if replaced.count > 1 else ''} {replaced.remark}")
    if content == text.content:
        raise ToolError("The edits cancel each other out: nothing to change.")
    try:
        after = text.encode(content)
    except UnicodeEncodeError:
        raise ToolError(
            f"{target.shown} is encoded as {text.encoding.upper()}, which lacks some characters of new_text. Nothing "
            "was written. Use other characters, or convert the file to UTF-8 first."
        ) from None
    difference = diff(text.content, content, target.shown)
    return Change(target=target, before=before, after=after, difference=difference), remarks


def _replaced(content: str, edit: Edit, which: str) -> Replaced:
    try:
        return replace(content, edit.old_text, edit.new_text, every=edit.replace_all)
    except ToolError as error:
        raise ToolError(f"{which} failed, so no edit was made: {error}" if which else str(error)) from None
