"""What language servers say after an edit and of a whole workspace, and renames: told step by step with a puppet."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lsp_puppet import CAPABLE, QUICK, Puppet, Stage, ask, open_stage, place

from longboat.permissions.verdict import Need
from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.lsp.client.slot import ServerState
from longboat.tools.lsp.diagnostics import DiagnosticsTool
from longboat.tools.lsp.rename import RenameTool
from longboat.tools.protocol import ToolResult


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.pup").write_text("let knot = 1\n")
    (tmp_path / "b.pup").write_text("use knot\n")
    return tmp_path.resolve()


@pytest.fixture
async def stage(project: Path) -> AsyncIterator[Stage]:
    async with open_stage(project) as stage:
        yield stage


class TestDiagnosticsAfterAnEdit:
    async def start(self, stage: Stage, name: str, text: str) -> tuple[Puppet, asyncio.Task[str], dict[str, Any]]:
        """An edit for which the server is started."""
        editing = self.edit(stage, name, text)
        puppet = await stage.entrance()
        await puppet.greet(**CAPABLE)
        return puppet, editing, (await puppet.expect("textDocument/didOpen"))["params"]["textDocument"]

    def edit(self, stage: Stage, name: str, text: str) -> asyncio.Task[str]:
        path = stage.directory / name
        path.write_text(text)
        return asyncio.create_task(stage.servers.diagnostics_after(path, text))

    async def test_only_what_is_said_of_this_version_counts(self, stage: Stage) -> None:
        a = stage.directory / "a.pup"
        puppet, editing, opened = await self.start(stage, "a.pup", "let not = 1\n")
        assert opened["text"] == "let not = 1\n"
        puppet.publish(a, "not is a word", version=opened["version"])
        assert await editing == "puppet on a.pup: 1 error.\na.pup:1:1: error: not is a word"

        editing = self.edit(stage, "a.pup", "let knot = 1\n")
        changed = (await puppet.expect("textDocument/didChange"))["params"]["textDocument"]
        assert changed["version"] > opened["version"]
        puppet.publish(a, "late and wrong", version=opened["version"])
        puppet.publish(a, version=changed["version"])
        assert await editing == ""

    async def test_files_that_broke_by_it_are_told_once(self, stage: Stage) -> None:
        a, b, c = (stage.directory / name for name in ("a.pup", "b.pup", "c.pup"))
        puppet, editing, opened = await self.start(stage, "a.pup", "let knot = 2\n")
        puppet.publish(c, "broken long ago")
        puppet.publish(a, version=opened["version"])
        assert await editing == ""

        editing = self.edit(stage, "a.pup", "let rope = 2\n")
        changed = (await puppet.expect("textDocument/didChange"))["params"]["textDocument"]
        puppet.publish(b, "knot is unknown")
        puppet.publish(a, version=changed["version"])
        told = "New errors in other files since the last change:\nb.pup:1:1: error: knot is unknown"
        assert await editing == told

        editing = self.edit(stage, "a.pup", "let rope = 3\n")
        changed = (await puppet.expect("textDocument/didChange"))["params"]["textDocument"]
        puppet.publish(a, version=changed["version"])
        assert await editing == ""

    async def test_what_is_repeated_to_the_letter_after_an_edit_may_be_taken_back(self, project: Path) -> None:
        """As a busy pyright does: first the old problems under the new version, then the new ones."""
        async with open_stage(project, replace(QUICK, doubt_s=30.0)) as stage:
            a = project / "a.pup"
            puppet, editing, opened = await self.start(stage, "a.pup", "let not = 1\n")
            puppet.publish(a, "not is a word", version=opened["version"])
            assert "not is a word" in await editing
            editing = self.edit(stage, "a.pup", "let knot = 1\n")
            changed = (await puppet.expect("textDocument/didChange"))["params"]["textDocument"]
            puppet.publish(a, "not is a word", version=changed["version"])
            puppet.say({"id": "later", "method": "workspace/workspaceFolders", "params": None})
            while (await puppet.hear()).get("id") != "later":
                pass  # now it has heard the old problems
            done, _ = await asyncio.wait({editing}, timeout=5 * QUICK.settle_s)
            assert not done
            puppet.publish(a, version=changed["version"])
            assert await editing == ""

    async def test_a_server_without_versions_is_heard_when_it_speaks_after_the_change(self, stage: Stage) -> None:
        a = stage.directory / "a.pup"
        puppet, editing, _ = await self.start(stage, "a.pup", "let not = 1\n")
        puppet.publish(a, "not is a word")
        assert "not is a word" in await editing

    async def test_a_server_that_is_asked_for_diagnostics_is_asked(self, stage: Stage) -> None:
        editing = self.edit(stage, "a.pup", "let not = 1\n")
        puppet = await stage.entrance()
        await puppet.greet(**CAPABLE, diagnosticProvider={"interFileDependencies": True})
        request = await puppet.expect("textDocument/diagnostic")
        here = place(stage.directory, 0, 4, 7)["range"]
        items = [{"range": here, "message": "not is a word", "severity": 1}]
        puppet.answer(request, {"kind": "full", "items": items})
        assert await editing == "puppet on a.pup: 1 error.\na.pup:1:5: error: not is a word"

    async def test_a_server_that_dawdles_is_not_waited_for_for_ever(self, project: Path) -> None:
        async with open_stage(project, replace(QUICK, diagnostics_s=0.5, hurried_s=0.0)) as stage:
            puppet, editing, _ = await self.start(stage, "a.pup", "let not = 1\n")
            late = "(puppet has not checked a.pup yet. Call diagnostics later for the result.)"
            assert await editing == late
            assert await self.edit(stage, "a.pup", "let not = 2\n") == late
            editing = self.edit(stage, "a.pup", "let not = 3\n")
            while "not = 3" not in str(await puppet.expect("textDocument/didChange")):
                pass
            puppet.publish(project / "a.pup", "not is a word")
            assert await editing == late, "it was late twice, and is waited for less"
            assert puppet.is_alive

    async def test_a_server_that_dies_meanwhile_says_nothing(self, stage: Stage) -> None:
        puppet, editing, _ = await self.start(stage, "a.pup", "let not = 1\n")
        puppet.die()
        assert await editing == ""

    async def test_a_server_that_starts_slowly_does_not_hold_the_edit_up(self, project: Path) -> None:
        async with open_stage(project, replace(QUICK, first_diagnostics_s=0.3)) as stage:
            editing = self.edit(stage, "a.pup", "let not = 1\n")
            puppet = await stage.entrance()
            assert "has not checked a.pup yet" in await editing
            await puppet.greet(**CAPABLE)
            await stage.wait_state(ServerState.READY)

    async def test_other_files_start_nothing(self, stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> None:
        outside = tmp_path_factory.mktemp("outside") / "a.pup"
        assert await stage.servers.diagnostics_after(stage.directory / "a.txt", "x\n") == ""
        assert await stage.servers.diagnostics_after(outside, "x\n") == ""
        assert stage.changes == []

    async def test_a_file_that_was_read_warms_its_server(self, stage: Stage) -> None:
        stage.servers.warm(stage.directory / "a.pup")
        puppet = await stage.entrance()
        await puppet.greet(**CAPABLE)
        opened = (await puppet.expect("textDocument/didOpen"))["params"]["textDocument"]
        assert opened["text"] == "let knot = 1\n"


class TestDiagnosticsOfTheWorkspace:
    async def test_every_file_is_looked_at_and_what_else_is_said_is_told(self, stage: Stage) -> None:
        asking = ask(stage, DiagnosticsTool(stage.servers), path=".")
        puppet = await stage.entrance()
        await puppet.greet(**CAPABLE)
        puppet.publish(stage.directory / "generated.pup", "nobody opened this")
        for _ in range(2):
            opened = (await puppet.expect("textDocument/didOpen"))["params"]["textDocument"]
            name = Path(opened["uri"]).name
            puppet.publish(stage.directory / name, f"wrong in {name}", version=opened["version"])
        assert (await asking).content.splitlines() == [
            "puppet: 3 errors.",
            "a.pup:1:1: error: wrong in a.pup",
            "b.pup:1:1: error: wrong in b.pup",
            "generated.pup:1:1: error: nobody opened this",
        ]

    async def test_a_workspace_without_such_files_starts_nothing(self, stage: Stage) -> None:
        (stage.directory / "sub").mkdir()
        with pytest.raises(ToolError, match="No configured language server supports any file type in sub"):
            await ask(stage, DiagnosticsTool(stage.servers), path="sub")
        assert stage.changes == []


class TestRename:
    def edit(self, stage: Stage) -> dict[str, Any]:
        a, b = stage.directory / "a.pup", stage.directory / "b.pup"
        return {
            "changes": {
                a.as_uri(): [{"range": place(a, 0, 4, 8)["range"], "newText": "bow"}],
                b.as_uri(): [{"range": place(b, 0, 4, 8)["range"], "newText": "bow"}],
            }
        }

    async def start(self, stage: Stage) -> tuple[asyncio.Task[ToolResult], Puppet, dict[str, Any]]:
        asking = ask(stage, RenameTool(stage.servers), path="b.pup", symbol="knot", new_name="bow")
        puppet = await stage.entrance()
        await puppet.greet(**CAPABLE)
        return asking, puppet, await puppet.expect("textDocument/rename")

    async def test_all_files_are_changed_with_one_permission_and_recorded(self, stage: Stage) -> None:
        """A3: what the server computed its edit from counts as read. A4: each change is recorded."""
        asking, puppet, request = await self.start(stage)
        assert request["params"]["newName"] == "bow"
        puppet.answer(request, self.edit(stage))
        result = await asking
        assert result.content.startswith("Renamed knot to bow in a.pup, b.pup.")
        assert (stage.directory / "a.pup").read_text() == "let bow = 1\n"
        assert (stage.directory / "b.pup").read_text() == "use bow\n"
        need = stage.context.needs[-1]
        paths = [stage.directory / "a.pup", stage.directory / "b.pup"]
        assert (need.tool, need.action, need.title) == ("rename", "edit", "Rename knot to bow in 2 files")
        assert need.paths == tuple(map(str, paths))
        assert need.detail.count("+++ b/") == 2
        assert stage.context.reads == paths
        assert [(change.path, change.before) for change in stage.context.changes] == [
            (paths[0], b"let knot = 1\n"),
            (paths[1], b"use knot\n"),
        ]

    async def test_a_refused_permission_changes_nothing(self, project: Path) -> None:
        context = OpenToolContext(project, refuse=lambda need: need.action == "edit")
        async with open_stage(project, context=context) as stage:
            asking, puppet, request = await self.start(stage)
            puppet.answer(request, self.edit(stage))
            with pytest.raises(ToolError, match="Not allowed: Rename knot to bow in 2 files"):
                await asking
        assert (project / "a.pup").read_text() == "let knot = 1\n"
        assert context.changes == []

    async def test_when_one_file_cannot_be_written_none_is_changed(self, project: Path) -> None:
        async def meddle(need: Need) -> None:
            if need.action == "edit":
                (project / "b.pup").write_text("use knot, said somebody else\n")

        context = OpenToolContext(project, on_permit=meddle)
        async with open_stage(project, context=context) as stage:
            asking, puppet, request = await self.start(stage)
            puppet.answer(request, self.edit(stage))
            with pytest.raises(ToolError, match=r"Someone else just changed b\.pup"):
                await asking
        assert (project / "a.pup").read_text() == "let knot = 1\n"
        assert (project / "b.pup").read_text() == "use knot, said somebody else\n"
        assert context.changes == []

    async def test_what_cannot_be_renamed_is_said(self, stage: Stage) -> None:
        asking, puppet, request = await self.start(stage)
        puppet.answer(request, None)
        puppet.answer(await puppet.expect("textDocument/rename"), None)
        with pytest.raises(ToolError, match=r"puppet cannot rename 'knot' here\. Nothing was changed"):
            await asking

    async def test_a_name_with_spaces_is_refused_before_anything_starts(self, stage: Stage) -> None:
        with pytest.raises(ToolError, match="one name, without spaces"):
            await ask(stage, RenameTool(stage.servers), path="b.pup", symbol="knot", new_name="a b")
        assert stage.changes == []
