"""What is fresh, what is news, and how it is told."""

import asyncio
from pathlib import Path

import pytest

from longboat.tools.lsp.client.diagnostics_store import DiagnosticsStore, Source
from longboat.tools.lsp.client.documents import Document
from longboat.tools.lsp.client.json_rpc import ServerGone
from longboat.tools.lsp.client.shapes import Diagnostic, Position, Range
from longboat.tools.lsp.client.wording import diagnostic_lines, summary

A, B, C = Path("/w/a.py"), Path("/w/b.py"), Path("/w/c.py")


def problem(message: str, *, line: int = 0, severity: int | None = 1, code: str | None = None) -> Diagnostic:
    at = Position(line=line, character=0)
    return Diagnostic(range=Range(start=at, end=at), message=message, severity=severity, code=code)


def publish(
    diagnostics: DiagnosticsStore, path: Path, *messages: str, version: int | None = None, line: int = 0
) -> None:
    items = [problem(message, line=line) for message in messages]
    diagnostics.publish(path, items, source=Source.PUSHED, version=version)


async def test_what_is_said_of_an_older_version_is_not_fresh() -> None:
    diagnostics = DiagnosticsStore()
    waiting = asyncio.create_task(diagnostics.wait_fresh(A, Document(text="", version=3, sent_at=0)))
    publish(diagnostics, A, "old", version=2)
    publish(diagnostics, B, "other", version=3)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    publish(diagnostics, A, "new", version=3)
    await waiting
    assert [item.message for item in diagnostics.of(A)] == ["new"]


async def test_without_versions_what_came_after_the_change_is_fresh() -> None:
    diagnostics = DiagnosticsStore()
    publish(diagnostics, A, "before")
    waiting = asyncio.create_task(diagnostics.wait_fresh(A, Document(text="", version=3, sent_at=diagnostics.clock())))
    await asyncio.sleep(0)
    assert not waiting.done()
    publish(diagnostics, A, "after")
    await waiting


async def test_whoever_waits_for_a_server_that_ends_is_told() -> None:
    diagnostics = DiagnosticsStore()
    waiting = asyncio.create_task(diagnostics.wait_fresh(A, Document(text="", version=1, sent_at=0)))
    await asyncio.sleep(0)
    diagnostics.close("exit code 1")
    with pytest.raises(ServerGone, match="exit code 1"):
        await waiting


async def test_a_busy_server_is_waited_for() -> None:
    diagnostics = DiagnosticsStore()
    diagnostics.progress("check", ended=False)
    waiting = asyncio.create_task(diagnostics.wait_idle())
    await asyncio.sleep(0)
    assert not waiting.done()
    diagnostics.progress("check", ended=True)
    await waiting


def test_what_is_pushed_and_what_is_pulled_are_told_together_and_once() -> None:
    diagnostics = DiagnosticsStore()
    diagnostics.publish(A, [problem("both"), problem("pushed")], source=Source.PUSHED)
    diagnostics.publish(A, [problem("both"), problem("pulled")], source=Source.PULLED)
    assert [item.message for item in diagnostics.of(A)] == ["both", "pushed", "pulled"]


def test_only_errors_that_were_not_there_before_are_news() -> None:
    diagnostics = DiagnosticsStore()
    publish(diagnostics, B, "old")
    assert diagnostics.take_news([]) == {}
    publish(diagnostics, B, "old", "new", line=7)
    publish(diagnostics, C, "also new")
    news = {path: [item.message for item in items] for path, items in diagnostics.take_news([]).items()}
    assert news == {B: ["new"], C: ["also new"]}
    assert diagnostics.take_news([]) == {}


def test_a_file_opened_since_has_no_news_at_first() -> None:
    """A server may only then say what was always wrong with it."""
    diagnostics = DiagnosticsStore()
    diagnostics.take_news([])
    publish(diagnostics, C, "as ever")
    assert diagnostics.take_news([C]) == {}
    publish(diagnostics, C, "as ever", "broken now")
    assert [item.message for item in diagnostics.take_news([C])[C]] == ["broken now"]


def test_errors_come_first_and_hints_not_at_all() -> None:
    items = [
        problem("unused\n  really", severity=2, line=1, code="W1"),
        problem("a hint", severity=4),
        problem("un\x1bknown", severity=None, line=9),
        problem("x" * 400, line=3),
    ]
    lines = diagnostic_lines({A: items}, lambda path: path.name, most=10)
    assert lines == [
        f"a.py:4:1: error: {'x' * 300}…",
        "a.py:10:1: error: unknown",
        "a.py:2:1: warning: unused; really [W1]",
    ]
    assert summary({A: items}) == "2 errors, 1 warning"
    assert summary({A: []}) == "no errors or warnings"


def test_many_problems_are_cut_and_counted() -> None:
    items = [problem(f"problem {number}", line=number) for number in range(30)]
    lines = diagnostic_lines({A: items}, lambda path: path.name, most=3)
    assert lines[-1] == "… and 27 more"
    assert len(lines) == 4
