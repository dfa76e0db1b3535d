"""`diagnostics`: errors and warnings from language servers for a file, a directory or the workspace (A1)."""

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from longboat.tools.context import ToolContext, parse
from longboat.tools.files.paths import resolve
from longboat.tools.lsp.client.check import Report
from longboat.tools.lsp.client.symbol_location import open_source, permit_read
from longboat.tools.lsp.client.tool import LanguageServerTool
from longboat.tools.lsp.client.wording import diagnostic_lines, join_names, summary
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.wire.tools import Effect, SubAgents, ToolTraits

MAX_LINES = 100


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str | None, Meta(description="A file or a directory. Default: the whole workspace.")] = None


class DiagnosticsTool(LanguageServerTool):
    spec = spec_of(
        "diagnostics",
        Input,
        ToolTraits(
            effect=Effect.READS,
            path="path",
            heading=("path",),
            sub_agents=SubAgents.ALL,
            side_by_side=True,
            quick=True,
        ),
    )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted = parse("diagnostics", call.arguments, Input)
        target = await asyncio.to_thread(resolve, context.directory, wanted.path or ".")
        if await asyncio.to_thread(target.path.is_dir):
            await permit_read(context, "diagnostics", target)
            report = await self.servers.check_files(target.path)
        else:
            source = await open_source(context, "diagnostics", wanted.path or ".")
            report = await self.servers.check_file(source.target.path, source.text)
        return ToolResult(content=self._describe(report))

    def _describe(self, report: Report) -> str:
        said = report.said
        lines = [
            f"{join_names(report.names)}: {summary(said)}.",
            *diagnostic_lines(said, self.servers.display_path, most=MAX_LINES),
        ]
        if report.looked_at < report.files:
            lines.append(f"(Checked {report.looked_at} of {report.files} files: those that changed last.)")
        if report.late:
            lines.append(
                f"({join_names(dict.fromkeys(report.late))} did not check everything in time. Call again later.)"
            )
        return "\n".join([*lines, *report.problems])
