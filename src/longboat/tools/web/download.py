"""download: a file from the web into the workspace (A3, A4)."""

import asyncio
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from longboat.permissions.verdict import Need
from longboat.tools.context import ToolContext, ToolError, parse
from longboat.tools.files.file_io import MAX_BYTES, Change, apply, read_if_there
from longboat.tools.files.paths import resolve
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.tools.services import ToolServices
from longboat.tools.web.http import Web
from longboat.wire.tools import Effect, ToolTraits

TIMEOUT_S = 300.0


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: Annotated[str, Meta(description="The http or https URL.")]
    path: Annotated[str, Meta(description="The file to write, absolute or relative to the workspace.")]


class DownloadTool:
    spec = spec_of(
        "download", Input, ToolTraits(effect=Effect.CHANGES, url="url", path="path", heading=("url", "path"))
    )

    def __init__(self, web: Web) -> None:
        self._web = web

    @classmethod
    def build(cls, services: ToolServices) -> Self:
        return cls(services.web)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        asked = parse("download", call.arguments, Input)
        target = await asyncio.to_thread(resolve, context.directory, asked.path)
        before = await asyncio.to_thread(read_if_there, target)
        if before is not None:
            await context.check_read(target.path, before)
        verb = "Save" if before is None else "Replace"

        async def permit(url: str) -> None:
            title = f"{verb} {target.shown} from {url}"
            paths = (str(target.path),)
            await context.permit(Need(tool="download", action="download", argument=url, paths=paths, title=title))

        page = await self._web.get(asked.url, limit=MAX_BYTES, permit=permit, timeout_s=TIMEOUT_S)
        if page.status >= 400:
            raise ToolError(f"{page.url} answered {page.status} {page.reason}. Nothing was written.")
        if not page.is_whole:
            limit = MAX_BYTES >> 20
            raise ToolError(f"{page.url} is larger than {limit} MB. Nothing was written. Use bash with curl instead.")
        change = Change(target=target, before=before, after=page.body, difference="")
        said = await apply(context, change)
        kind = page.content_type or "unknown type"
        summary = f"Wrote {target.shown} ({len(page.body):,} bytes, {kind}) from {page.url}."
        return ToolResult(content=f"{summary}\n\n{said}".strip())
