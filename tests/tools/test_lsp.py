"""The tools of a language server against a real one: basedpyright, as the built-in default finds it on PATH."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from open_programs import open_programs

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.files.edit import EditTool
from longboat.tools.files.view import ViewTool
from longboat.tools.lsp.client.server import Timeouts
from longboat.tools.lsp.client.servers import LanguageServers
from longboat.tools.lsp.client.slot import ServerState
from longboat.tools.lsp.definition import DefinitionTool
from longboat.tools.lsp.diagnostics import DiagnosticsTool
from longboat.tools.lsp.references import ReferencesTool
from longboat.tools.lsp.rename import RenameTool
from longboat.tools.lsp.symbols import SymbolsTool
from longboat.tools.process import process_tree, supervisor
from longboat.tools.process.programs import Programs

SHAPES = '''"""Shapes."""


class Square:
    def __init__(self, side: int) -> None:
        self.side = side

    def area(self) -> int:
        return self.side**2


def total(squares: list[Square]) -> int:
    return sum(square.area() for square in squares)
'''
REPORT = """from shapes import Square, total

squares = [Square(2), Square(3)]
print("😀 total", f"{total(squares)} 😀", squares[0].area())
"""
PATIENT = Timeouts(
    start_s=90.0,
    answer_s=60.0,
    diagnostics_s=60.0,
    first_diagnostics_s=90.0,
    hurried_s=60.0,
    settle_s=0.5,
    doubt_s=20.0,
    idle_s=60.0,
)
"""Two busy cores are shared with other tests."""


class ServedKit(OpenToolContext):
    """A context that answers a change with what the servers say, as a workspace does."""

    servers: LanguageServers
    programs: Programs

    async def note_change(self, key: str, path: Path, before: bytes | None, after: bytes | None) -> str:
        await super().note_change(key, path, before, after)
        return await self.servers.diagnostics_after(path, (after or b"").decode())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shapes.py").write_text(SHAPES)
    (tmp_path / "report.py").write_text(REPORT)
    return tmp_path.resolve()


@pytest.fixture
def environ() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.fixture
async def context(project: Path, environ: dict[str, str]) -> AsyncIterator[ServedKit]:
    context = ServedKit(project, environ=environ)
    async with open_programs(project) as programs:
        context.programs = programs
        context.servers = LanguageServers(project, environ=environ, programs=programs, timeouts=PATIENT)
        yield context
        await context.servers.aclose()


async def test_definitions_references_and_symbols_are_found_across_files(context: ServedKit) -> None:
    servers = context.servers
    defined = await context.use(DefinitionTool(servers), path="report.py", symbol="squares[0].area", line=4)
    assert defined.content.splitlines()[:2] == ["shapes.py:8", "     8\t    def area(self) -> int:"]

    used = await context.use(ReferencesTool(servers), path="shapes.py", symbol="area", line=8)
    assert used.content.splitlines() == [
        "3 lines in 2 files, including the definition:",
        'report.py:4: print("😀 total", f"{total(squares)} 😀", squares[0].area())',
        "shapes.py:8: def area(self) -> int:",
        "shapes.py:13: return sum(square.area() for square in squares)",
    ]

    outline = await context.use(SymbolsTool(servers), path="shapes.py")
    assert outline.content.splitlines() == [
        "shapes.py:",
        "        4-9  class Square",
        "        5-6    method __init__",
        "          6    variable side",
        "        8-9    method area",
        "      12-13  function total",
    ]

    found = await context.use(SymbolsTool(servers), query="squar")
    assert "shapes.py:4: class Square" in found.content.splitlines()
    assert [(status.name, status.state) for status in servers.statuses] == [("basedpyright", ServerState.READY)]


async def test_an_edit_is_answered_with_what_it_broke_here_and_elsewhere(context: ServedKit) -> None:
    await context.use(ViewTool(), path="shapes.py")
    clean = await context.use(DiagnosticsTool(context.servers))
    assert clean.content == "basedpyright: no errors or warnings."

    old, new = (
        "def area(self) -> int:\n        return self.side**2",
        "def surface(self) -> str:\n        return self.side",
    )
    edited = await context.use(EditTool(), path="shapes.py", old_text=old, new_text=new)
    said = edited.content[edited.content.find("basedpyright on") :]
    assert said.startswith("basedpyright on shapes.py: 2 errors.\nshapes.py:9:16: error: Type")
    assert 'shapes.py:13:23: error: Cannot access attribute "area" for class "Square"' in said
    assert "New errors in other files since the last change:\nreport.py:4:" in said

    mended = await context.use(EditTool(), path="shapes.py", old_text=new, new_text=old)
    assert "basedpyright" not in mended.content
    again = await context.use(DiagnosticsTool(context.servers), path="report.py")
    assert again.content == "basedpyright: no errors or warnings."


async def test_a_rename_reaches_every_file(context: ServedKit, project: Path) -> None:
    renamed = await context.use(
        RenameTool(context.servers), path="report.py", symbol="total", new_name="sum_of", line=1
    )
    assert renamed.content.startswith("Renamed total to sum_of in report.py, shapes.py.\n\n--- a/report.py")
    assert "error" not in renamed.content, "the servers saw all files change at once"
    assert (project / "shapes.py").read_text() == SHAPES.replace("def total", "def sum_of")
    expected = REPORT.replace("Square, total", "Square, sum_of").replace("{total(", "{sum_of(")
    assert (project / "report.py").read_text() == expected
    assert {change.path.name for change in context.changes} == {"report.py", "shapes.py"}


async def test_what_a_shell_changed_is_known(context: ServedKit, project: Path) -> None:
    await context.use(DefinitionTool(context.servers), path="report.py", symbol="total")
    (project / "shapes.py").rename(project / "forms.py")
    (project / "report.py").write_text(REPORT.replace("shapes", "forms"))
    moved = await context.use(DefinitionTool(context.servers), path="report.py", symbol="total", line=4)
    assert moved.content.startswith("forms.py:12\n")
    assert (await context.use(DiagnosticsTool(context.servers))).content == "basedpyright: no errors or warnings."


async def test_after_a_crash_it_is_started_again_and_closing_leaves_no_process(
    context: ServedKit, environ: dict[str, str]
) -> None:
    """B7."""
    crashed, states = asyncio.Event(), []

    def on_change(status: object) -> None:
        states.append(status.state)  # type: ignore[attr-defined]
        if states[-1] is ServerState.CRASHED:
            crashed.set()

    servers = LanguageServers(
        context.directory, environ=environ, programs=context.programs, on_change=on_change, timeouts=PATIENT
    )
    before = _programs()
    await context.use(DefinitionTool(servers), path="report.py", symbol="total")
    first = _programs() - before
    assert first
    for process in first:
        process.kill()
    await crashed.wait()
    defined = await context.use(DefinitionTool(servers), path="report.py", symbol="total")
    assert defined.content.startswith("shapes.py:12\n")
    second = _programs() - before
    await servers.aclose()
    assert not [process for process in first | second if process_tree.is_alive(process.pid)]  # a zombie is dead
    ready = [ServerState.STARTING, ServerState.READY]
    assert states == [*ready, ServerState.CRASHED, *ready, ServerState.STOPPED]


def _programs() -> set[psutil.Process]:
    """All processes below us but supervisors and guards."""
    below = psutil.Process().children(recursive=True)
    return {process for process in below if supervisor.__file__ not in process.cmdline()}


async def test_a_canceled_call_ends_at_once_and_the_server_goes_on(context: ServedKit) -> None:
    await context.use(DefinitionTool(context.servers), path="report.py", symbol="total")
    asking = asyncio.create_task(context.use(ReferencesTool(context.servers), path="shapes.py", symbol="area"))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    used = await context.use(ReferencesTool(context.servers), path="shapes.py", symbol="total")
    assert used.content.startswith("3 lines in 2 files")
