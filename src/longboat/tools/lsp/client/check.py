"""Collects diagnostics: for a file that was just changed, for a requested file, or for all files below a directory.

Owns what is reported and how long to wait. Must not know how servers are chosen or started.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from longboat.tools.context import ToolError
from longboat.tools.lsp.client.file_text import read_text
from longboat.tools.lsp.client.server import Server, Timeouts
from longboat.tools.lsp.client.shapes import Diagnostic
from longboat.tools.lsp.client.slot import ServerSlot
from longboat.tools.lsp.client.wording import diagnostic_lines, join_names, summary

MAX_OWN, MAX_OTHERS = 20, 10
"""Lines of an edited file, and of others."""
MAX_SWEPT = 200
"""Files that are looked at for a whole directory."""
_AT_ONCE = 16
_SWEEP_S = 60.0
_REFRESH_S = 2.0

Said = dict[Path, tuple[Diagnostic, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One server's diagnostics after a change."""

    name: str
    late: bool = False
    """It had not looked at the file when we stopped waiting."""
    own: tuple[Diagnostic, ...] = ()
    others: Said = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Report:
    """The diagnostics of requested files."""

    names: list[str] = field(default_factory=list)
    said: Said = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    """Servers that had not looked at everything when we stopped waiting."""
    problems: list[str] = field(default_factory=list)
    files: int = 1
    looked_at: int = 0

    def add(self, path: Path, items: Sequence[Diagnostic]) -> None:
        self.said[path] = tuple(dict.fromkeys((*self.said.get(path, ()), *items)))


async def after_change(slot: ServerSlot, path: Path, text: str, timeouts: Timeouts) -> Finding | None:
    """What the server of a slot says of a changed file; None if it does not work."""
    running = slot.running
    if running is not None and not running.diagnostics.has_baseline:
        running.diagnostics.take_news(running.documents.paths)
    timeout_s = timeouts.diagnostics_s + _REFRESH_S if running is not None else timeouts.first_diagnostics_s
    try:
        async with asyncio.timeout(timeout_s):
            server = await slot.server()
            await server.refresh()
            if not await server.check(path, text, edited=True):
                return Finding(name=server.name, late=True)
    except TimeoutError:
        return Finding(name=slot.spec.name, late=True)
    except ToolError:
        return None
    news = server.diagnostics.take_news(server.documents.paths)
    others = {each: items for each, items in news.items() if each != path}
    return Finding(name=server.name, own=server.diagnostics.of(path), others=others)


def describe_findings(findings: Sequence[Finding | None], path: Path, shown: Callable[[Path], str]) -> str:
    """The findings in a few lines, or nothing."""
    answered = [each for each in findings if each is not None and not each.late]
    own: Said = {path: tuple(item for each in answered for item in each.own)}
    others: Said = {}
    for each in answered:
        for other, items in each.others.items():
            others[other] = (*others.get(other, ()), *items)
    lines = diagnostic_lines(own, shown, most=MAX_OWN)
    if lines:
        lines.insert(0, f"{join_names(each.name for each in answered)} on {shown(path)}: {summary(own)}.")
    if broken := diagnostic_lines(others, shown, most=MAX_OTHERS):
        lines += ["New errors in other files since the last change:", *broken]
    for late in (each.name for each in findings if each is not None and each.late):
        lines.append(f"({late} has not checked {shown(path)} yet. Call diagnostics later for the result.)")
    return "\n".join(lines)


async def one_file(slots: Sequence[ServerSlot], path: Path, text: str) -> Report:
    report = Report()
    servers = await _servers(slots, report)
    await asyncio.gather(*(_refreshed_check(server, path, text, report) for server in servers))
    report.looked_at = 1
    return report


async def many_files(work: Mapping[ServerSlot, Sequence[Path]], below: Path, *, files: int) -> Report:
    """`work` is what each server is to look at, the most important files first."""
    report = Report(files=files)
    deadline = time.monotonic() + _SWEEP_S
    servers = await _servers(tuple(work), report)
    paths = {slot.running: each for slot, each in work.items() if slot.running is not None}
    looked_at: set[Path] = set()
    for server in servers:
        await server.refresh()
        mine = paths.get(server, ())
        for start in range(0, len(mine), _AT_ONCE):
            batch = mine[start : start + _AT_ONCE]
            if time.monotonic() > deadline:
                report.late.append(server.name)
                break
            await asyncio.gather(*(_read_and_check(server, path, report) for path in batch))
            looked_at.update(batch)
        # Some servers speak of files that no one opened.
        for path, items in server.diagnostics.all().items():
            if path not in looked_at and path.is_relative_to(below):
                report.add(path, items)
        server.diagnostics.take_news(server.documents.paths)
    report.looked_at = len(looked_at)
    return report


async def _servers(slots: Sequence[ServerSlot], report: Report) -> list[Server]:
    """The servers that work; a ToolError if none does."""
    started = await asyncio.gather(*(slot.server() for slot in slots), return_exceptions=True)
    servers = []
    for each in started:
        if isinstance(each, ToolError):
            report.problems.append(str(each))
        elif isinstance(each, BaseException):
            raise each
        else:
            servers.append(each)
    if not servers:
        raise ToolError(report.problems[0])
    report.names = list(dict.fromkeys(server.name for server in servers))
    return servers


async def _refreshed_check(server: Server, path: Path, text: str, report: Report) -> None:
    await server.refresh()
    await _check(server, path, text, report)


async def _read_and_check(server: Server, path: Path, report: Report) -> None:
    try:
        text = await asyncio.to_thread(read_text, path)
    except ToolError:
        return  # binary, too long, or gone since
    await _check(server, path, text, report)


async def _check(server: Server, path: Path, text: str, report: Report) -> None:
    if await server.check(path, text):
        report.add(path, server.diagnostics.of(path))
    elif server.name not in report.late:
        report.late.append(server.name)
