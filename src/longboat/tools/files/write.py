"""`write`: create a file or replace all of it (A3)."""

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.tools.context import ToolContext, ToolError, parse
from longboat.tools.files.file_io import Change, change_file, read_if_there
from longboat.tools.files.paths import Target, resolve
from longboat.tools.files.text import NotText, Text, decode, diff
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.wire.tools import Draw, Effect, Governs, ToolTraits


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file, absolute or relative to the workspace.")]
    content: Annotated[str, Meta(description="The complete content of the file.")]


class WriteTool:
    spec = spec_of(
        "write",
        Input,
        ToolTraits(
            effect=Effect.CHANGES,
            path="path",
            heading=("path",),
            governs=Governs.WRITING,
            quick=True,
            draw=Draw.DIFF,
        ),
        brief="Write a file.",
        cues=r"write|create|make a file",
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("write", call.arguments, Input)
        target = await asyncio.to_thread(resolve, context.directory, wanted.path)
        before = await asyncio.to_thread(read_if_there, target)
        if before is not None:
            await context.check_read(target.path, before)
        after, text, remark = _encode(before, wanted.content)
        if after == before:
            return ToolResult(content=f"{target.shown} already has exactly this content. Nothing was written.")
        difference = await asyncio.to_thread(_difference, target, before, text)
        verb = "Create" if before is None else "Replace"
        change = Change(target=target, before=before, after=after, difference=difference)
        parts = await change_file(context, change, tool="write", title=f"{verb} {target.shown}")
        summary = f"{verb}d {target.shown} ({len(after):,} bytes).{remark}"
        return ToolResult(content="\n\n".join([summary, *parts]))


def _encode(before: bytes | None, content: str) -> tuple[bytes, str, str]:
    """The bytes to write, as what text, and what is to be said of it: a file keeps its encoding and its line ends."""
    old, remark = _text_of(before), ""
    if "\n" in old.content and _only_crlf(old.content) and "\r\n" not in content:
        content, remark = content.replace("\n", "\r\n"), " Its CRLF line endings were kept."
    try:
        return old.encode(content), content, remark
    except UnicodeEncodeError:
        old, remark = (
            Text(content=""),
            f"{remark} It is now UTF-8 because {old.encoding.upper()} lacks some of the characters.",
        )
    try:
        return old.encode(content), content, remark
    except UnicodeEncodeError:
        raise ToolError("The content contains half of a surrogate pair, which no file can contain.") from None


def _text_of(before: bytes | None) -> Text:
    try:
        return decode(before or b"")
    except NotText:
        return Text(content="")


def _only_crlf(content: str) -> bool:
    return content.count("\r\n") == content.count("\n")


def _difference(target: Target, before: bytes | None, content: str) -> str:
    return diff(_text_of(before).content, content, target.shown, new=before is None)
