"""What language servers say after an edit and about a whole workspace, and renames, with a controlled server."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from controlled_lsp import CAPABLE, QUICK, ControlledServer, LspHarness, ask, open_lsp_harness, place

from longboat.permissions.verdict import Need
from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.lsp.client.diagnostics_store import DiagnosticsStore
from longboat.tools.lsp.client.shapes import Diagnostic
from longboat.tools.lsp.client.slot import ServerState
from longboat.tools.lsp.diagnostics import DiagnosticsTool
from longboat.tools.lsp.rename import RenameTool
from longboat.tools.protocol import ToolResult


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.demo").write_text("let knot = 1\n")
    (tmp_path / "b.demo").write_text("use knot\n")
    return tmp_path.resolve()


@pytest.fixture
async def harness(project: Path) -> AsyncIterator[LspHarness]:
    async with open_lsp_harness(project) as harness:
        yield harness


class TestDiagnosticsAfterAnEdit:
    async def start(
        self, harness: LspHarness, name: str, text: str
    ) -> tuple[ControlledServer, asyncio.Task[str], dict[str, Any]]:
        """An edit for which the server is started."""
        editing = self.edit(harness, name, text)
        controlled = await harness.next_server()
        await controlled.initialize(**CAPABLE)
        return controlled, editing, (await controlled.expect("textDocument/didOpen"))["params"]["textDocument"]

    def edit(self, harness: LspHarness, name: str, text: str) -> asyncio.Task[str]:
        path = harness.directory / name
        path.write_text(text)
        return asyncio.create_task(harness.servers.diagnostics_after(path, text))

    async def test_only_what_is_said_of_this_version_counts(self, harness: LspHarness) -> None:
        a = harness.directory / "a.demo"
        controlled, editing, opened = await self.start(harness, "a.demo", "let not = 1\n")
        assert opened["text"] == "let not = 1\n"
        controlled.publish(a, "not is a word", version=opened["version"])
        assert await editing == "controlled on a.demo: 1 error.\na.demo:1:1: error: not is a word"

        editing = self.edit(harness, "a.demo", "let knot = 1\n")
        changed = (await controlled.expect("textDocument/didChange"))["params"]["textDocument"]
        assert changed["version"] > opened["version"]
        controlled.publish(a, "late and wrong", version=opened["version"])
        controlled.publish(a, version=changed["version"])
        assert await editing == ""

    async def test_files_that_broke_by_it_are_told_once(self, harness: LspHarness) -> None:
        a, b, c = (harness.directory / name for name in ("a.demo", "b.demo", "c.demo"))
        controlled, editing, opened = await self.start(harness, "a.demo", "let knot = 2\n")
        controlled.publish(c, "broken long ago")
        controlled.publish(a, version=opened["version"])
        assert await editing == ""

        editing = self.edit(harness, "a.demo", "let rope = 2\n")
        changed = (await controlled.expect("textDocument/didChange"))["params"]["textDocument"]
        controlled.publish(b, "knot is unknown")
        controlled.publish(a, version=changed["version"])
        told = "New errors in other files since the last change:\nb.demo:1:1: error: knot is unknown"
        assert await editing == told

        editing = self.edit(harness, "a.demo", "let rope = 3\n")
        changed = (await controlled.expect("textDocument/didChange"))["params"]["textDocument"]
        controlled.publish(a, version=changed["version"])
        assert await editing == ""

    async def test_what_is_repeated_to_the_letter_after_an_edit_may_be_taken_back(
        self, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As a busy pyright does: first the old problems under the new version, then the new ones."""
        doubting = asyncio.Event()
        wait_other = DiagnosticsStore.wait_other

        async def wait(store: DiagnosticsStore, path: Path, items: tuple[Diagnostic, ...]) -> None:
            doubting.set()
            await wait_other(store, path, items)

        monkeypatch.setattr(DiagnosticsStore, "wait_other", wait)
        async with open_lsp_harness(project, replace(QUICK, doubt_s=30.0)) as harness:
            a = project / "a.demo"
            controlled, editing, opened = await self.start(harness, "a.demo", "let not = 1\n")
            controlled.publish(a, "not is a word", version=opened["version"])
            assert "not is a word" in await editing
            editing = self.edit(harness, "a.demo", "let knot = 1\n")
            changed = (await controlled.expect("textDocument/didChange"))["params"]["textDocument"]
            controlled.publish(a, "not is a word", version=changed["version"])
            doubted = asyncio.create_task(doubting.wait())
            await asyncio.wait({editing, doubted}, return_when=asyncio.FIRST_COMPLETED)
            assert doubted.done(), "it has believed the old problems"
            controlled.publish(a, version=changed["version"])
            assert await editing == ""

    async def test_a_server_without_versions_is_heard_when_it_speaks_after_the_change(
        self, harness: LspHarness
    ) -> None:
        a = harness.directory / "a.demo"
        controlled, editing, _ = await self.start(harness, "a.demo", "let not = 1\n")
        controlled.publish(a, "not is a word")
        assert "not is a word" in await editing

    async def test_a_server_that_is_asked_for_diagnostics_is_asked(self, harness: LspHarness) -> None:
        editing = self.edit(harness, "a.demo", "let not = 1\n")
        controlled = await harness.next_server()
        await controlled.initialize(**CAPABLE, diagnosticProvider={"interFileDependencies": True})
        request = await controlled.expect("textDocument/diagnostic")
        here = place(harness.directory, 0, 4, 7)["range"]
        items = [{"range": here, "message": "not is a word", "severity": 1}]
        controlled.answer(request, {"kind": "full", "items": items})
        assert await editing == "controlled on a.demo: 1 error.\na.demo:1:5: error: not is a word"

    async def test_a_server_that_dawdles_is_not_waited_for_for_ever(self, project: Path) -> None:
        async with open_lsp_harness(project, replace(QUICK, diagnostics_s=0.5, hurried_s=0.0)) as harness:
            controlled, editing, _ = await self.start(harness, "a.demo", "let not = 1\n")
            late = "(controlled has not checked a.demo yet. Call diagnostics later for the result.)"
            assert await editing == late
            assert await self.edit(harness, "a.demo", "let not = 2\n") == late
            editing = self.edit(harness, "a.demo", "let not = 3\n")
            while "not = 3" not in str(await controlled.expect("textDocument/didChange")):
                pass
            controlled.publish(project / "a.demo", "not is a word")
            assert await editing == late, "it was late twice, and is waited for less"
            assert controlled.is_alive

    async def test_a_server_that_dies_meanwhile_says_nothing(self, harness: LspHarness) -> None:
        controlled, editing, _ = await self.start(harness, "a.demo", "let not = 1\n")
        controlled.die()
        assert await editing == ""

    async def test_a_server_that_starts_slowly_does_not_hold_the_edit_up(self, project: Path) -> None:
        async with open_lsp_harness(project, replace(QUICK, first_diagnostics_s=0.3)) as harness:
            editing = self.edit(harness, "a.demo", "let not = 1\n")
            controlled = await harness.next_server()
            assert "has not checked a.demo yet" in await editing
            await controlled.initialize(**CAPABLE)
            await harness.wait_state(ServerState.READY)

    async def test_other_files_start_nothing(
        self, harness: LspHarness, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        outside = tmp_path_factory.mktemp("outside") / "a.demo"
        assert await harness.servers.diagnostics_after(harness.directory / "a.txt", "x\n") == ""
        assert await harness.servers.diagnostics_after(outside, "x\n") == ""
        assert harness.changes == []

    async def test_a_file_that_was_read_warms_its_server(self, harness: LspHarness) -> None:
        harness.servers.warm(harness.directory / "a.demo")
        controlled = await harness.next_server()
        await controlled.initialize(**CAPABLE)
        opened = (await controlled.expect("textDocument/didOpen"))["params"]["textDocument"]
        assert opened["text"] == "let knot = 1\n"


class TestDiagnosticsOfTheWorkspace:
    async def test_every_file_is_looked_at_and_what_else_is_said_is_told(self, harness: LspHarness) -> None:
        asking = ask(harness, DiagnosticsTool(harness.servers), path=".")
        controlled = await harness.next_server()
        await controlled.initialize(**CAPABLE)
        controlled.publish(harness.directory / "generated.demo", "nobody opened this")
        for _ in range(2):
            opened = (await controlled.expect("textDocument/didOpen"))["params"]["textDocument"]
            name = Path(opened["uri"]).name
            controlled.publish(harness.directory / name, f"wrong in {name}", version=opened["version"])
        assert (await asking).content.splitlines() == [
            "controlled: 3 errors.",
            "a.demo:1:1: error: wrong in a.demo",
            "b.demo:1:1: error: wrong in b.demo",
            "generated.demo:1:1: error: nobody opened this",
        ]

    async def test_a_workspace_without_such_files_starts_nothing(self, harness: LspHarness) -> None:
        (harness.directory / "sub").mkdir()
        with pytest.raises(ToolError, match="No configured language server supports any file type in sub"):
            await ask(harness, DiagnosticsTool(harness.servers), path="sub")
        assert harness.changes == []


class TestRename:
    def edit(self, harness: LspHarness) -> dict[str, Any]:
        a, b = harness.directory / "a.demo", harness.directory / "b.demo"
        return {
            "changes": {
                a.as_uri(): [{"range": place(a, 0, 4, 8)["range"], "newText": "bow"}],
                b.as_uri(): [{"range": place(b, 0, 4, 8)["range"], "newText": "bow"}],
            }
        }

    async def start(self, harness: LspHarness) -> tuple[asyncio.Task[ToolResult], ControlledServer, dict[str, Any]]:
        asking = ask(harness, RenameTool(harness.servers), path="b.demo", symbol="knot", new_name="bow")
        controlled = await harness.next_server()
        await controlled.initialize(**CAPABLE)
        return asking, controlled, await controlled.expect("textDocument/rename")

    async def test_all_files_are_changed_with_one_permission_and_recorded(self, harness: LspHarness) -> None:
        """A3: what the server computed its edit from counts as read. A4: each change is recorded."""
        asking, controlled, request = await self.start(harness)
        assert request["params"]["newName"] == "bow"
        controlled.answer(request, self.edit(harness))
        result = await asking
        assert result.content.startswith("Renamed knot to bow in a.demo, b.demo.")
        assert (harness.directory / "a.demo").read_text() == "let bow = 1\n"
        assert (harness.directory / "b.demo").read_text() == "use bow\n"
        need = harness.context.needs[-1]
        paths = [harness.directory / "a.demo", harness.directory / "b.demo"]
        assert (need.tool, need.action, need.title) == ("rename", "edit", "Rename knot to bow in 2 files")
        assert need.paths == tuple(map(str, paths))
        assert need.detail.count("+++ b/") == 2
        assert harness.context.reads == paths
        assert [(change.path, change.before) for change in harness.context.changes] == [
            (paths[0], b"let knot = 1\n"),
            (paths[1], b"use knot\n"),
        ]

    async def test_a_refused_permission_changes_nothing(self, project: Path) -> None:
        context = OpenToolContext(project, refuse=lambda need: need.action == "edit")
        async with open_lsp_harness(project, context=context) as harness:
            asking, controlled, request = await self.start(harness)
            controlled.answer(request, self.edit(harness))
            with pytest.raises(ToolError, match="Not allowed: Rename knot to bow in 2 files"):
                await asking
        assert (project / "a.demo").read_text() == "let knot = 1\n"
        assert context.changes == []

    async def test_when_one_file_cannot_be_written_none_is_changed(self, project: Path) -> None:
        async def meddle(need: Need) -> None:
            if need.action == "edit":
                (project / "b.demo").write_text("use knot, said somebody else\n")

        context = OpenToolContext(project, on_permit=meddle)
        async with open_lsp_harness(project, context=context) as harness:
            asking, controlled, request = await self.start(harness)
            controlled.answer(request, self.edit(harness))
            with pytest.raises(ToolError, match=r"Someone else just changed b\.demo"):
                await asking
        assert (project / "a.demo").read_text() == "let knot = 1\n"
        assert (project / "b.demo").read_text() == "use knot, said somebody else\n"
        assert context.changes == []

    async def test_what_cannot_be_renamed_is_said(self, harness: LspHarness) -> None:
        asking, controlled, request = await self.start(harness)
        controlled.answer(request, None)
        controlled.answer(await controlled.expect("textDocument/rename"), None)
        with pytest.raises(ToolError, match=r"controlled cannot rename 'knot' here\. Nothing was changed"):
            await asking

    async def test_a_name_with_spaces_is_refused_before_anything_starts(self, harness: LspHarness) -> None:
        with pytest.raises(ToolError, match="one name, without spaces"):
            await ask(harness, RenameTool(harness.servers), path="b.demo", symbol="knot", new_name="a b")
        assert harness.changes == []
