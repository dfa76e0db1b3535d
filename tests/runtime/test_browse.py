"""What clients show of a workspace's files: directories, names, diffs."""

import asyncio
import json
import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from running_app import RunningApp, launch

from longboat.errors import BadInput, RunNotFound, SessionNotFound
from longboat.runtime.archive.net_changes import NetChange, net_changes, unified_diff
from longboat.runtime.workspace.browse import MAX_ENTRIES, best_of
from longboat.testing import CallTool, Say, ScriptedModel
from longboat.wire.events import Change
from longboat.wire.listings import FileKind
from longboat.wire.requests import Approve

BIG = 100_000


def call(name: str, **arguments: Any) -> CallTool:
    return CallTool(name, json.dumps(arguments))


def make_tree(root: Path) -> None:
    (root / "src").mkdir()
    (root / "src" / "main.py").write_text("x = 1\n")
    (root / "src" / "domain.py").write_text("")
    (root / "build").mkdir()
    (root / "build" / "out.o").write_text("")
    (root / ".gitignore").write_text("build/\n")
    (root / "away").symlink_to("/")


async def test_a_directory_is_listed_without_what_git_ignores(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        make_tree(running.workspace.directory)
        page = await running.workspace.browse.files(".", everything=False)
        assert (page.path, page.complete) == (".", True)
        assert [(item.path, item.kind) for item in page.items] == [
            ("away", FileKind.LINK),
            ("longboat.json", FileKind.FILE),
            ("src", FileKind.DIRECTORY),
        ]
        below = await running.workspace.browse.files("src", everything=False)
        assert [(item.name, item.path, item.size) for item in below.items] == [
            ("domain.py", "src/domain.py", 0),
            ("main.py", "src/main.py", 6),
        ]
        everything = await running.workspace.browse.files(".", everything=True)
        assert {".gitignore", "build"} <= {item.name for item in everything.items}


async def test_a_large_directory_is_cut_and_says_so(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        many = running.workspace.directory / "many"
        many.mkdir()
        for number in range(MAX_ENTRIES + 1):
            (many / f"{number:05}").touch()
        page = await running.workspace.browse.files("many", everything=False)
        assert (len(page.items), page.complete) == (MAX_ENTRIES, False)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("..", "path_outside"),
        ("/etc", "path_outside"),
        ("~", "path_outside"),
        ("away", "path_outside"),
        ("src/../../..", "path_outside"),
        ("nowhere", "path_not_found"),
        ("src/main.py", "path_not_directory"),
        ("", "bad_path"),
        ("a\0b", "bad_path"),
    ],
)
async def test_nothing_but_a_directory_of_the_workspace_is_listed(tmp_path: Path, path: str, code: str) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        make_tree(running.workspace.directory)
        with pytest.raises(BadInput) as refused:
            await running.workspace.browse.files(path, everything=True)
        assert refused.value.code == code


async def test_names_are_found_by_a_part_and_by_their_letters_the_best_first(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        make_tree(running.workspace.directory)
        found = await running.workspace.browse.search("main", limit=10)
        assert (found.items, found.complete) == (("src/main.py", "src/domain.py"), True)
        assert (await running.workspace.browse.search("SRCDPY", limit=10)).items == ("src/domain.py",)
        assert (await running.workspace.browse.search("out.o", limit=10)).items == ()
        cut = await running.workspace.browse.search("", limit=1)
        assert (len(cut.items), cut.complete) == (1, False)


@pytest.mark.parametrize("query", ["ÜBUNG", "übung", "u\u0308bung", "STRASSE"])
def test_capital_letters_and_accents_are_found_however_they_are_written(query: str) -> None:
    paths = ["docs/U\u0308bung-Straße.md", "docs/other.md"]
    assert best_of(query, paths, 9) == paths[:1]


def test_a_whole_name_is_better_than_its_beginning_than_a_part_than_a_directory_than_letters() -> None:
    paths = ["m/a/i/n.py", "main/x.py", "src/domain", "src/main.py", "deep/er/main"]
    assert best_of("main", paths, 9) == ["deep/er/main", "src/main.py", "src/domain", "main/x.py", "m/a/i/n.py"]
    assert best_of("main", paths, 2) == ["deep/er/main", "src/main.py"]


async def changed(running: RunningApp) -> Path:
    source = running.workspace.directory / "a.txt"
    source.write_text("one\ntwo\n")
    await running.submit("change it", "r1", approve=Approve.ALL)
    await running.completed("r1")
    return source


def editing() -> ScriptedModel:
    return ScriptedModel(
        [
            [call("view", path="a.txt"), call("write", path="b.txt", content="new\n")],
            [call("edit", path="a.txt", old_text="one", new_text="1")],
            [call("edit", path="a.txt", old_text="two", new_text="2")],
            [Say("done")],
            [Say("next")],
        ],
        context_window=BIG,
    )


async def test_the_diff_of_a_session_draws_the_changes_of_a_file_together_and_git_takes_it(tmp_path: Path) -> None:
    async with launch(tmp_path, editing()) as running:
        source = await changed(running)
        page = await running.workspace.browse.diff(session_id=running.session_id, run_id=None)
        assert [(item.path, item.change, item.additions, item.deletions) for item in page.items] == [
            ("b.txt", Change.CREATED, 1, 0),
            ("a.txt", Change.UPDATED, 2, 2),
        ]
        assert page == await running.workspace.browse.diff(session_id=None, run_id="r1")
        source.write_text("one\ntwo\n")
        (source.parent / "b.txt").unlink()
        patch = "".join(item.diff for item in page.items)
        command = partial(subprocess.run, ["git", "apply"], input=patch, text=True, cwd=source.parent, check=True)
        await asyncio.to_thread(command)
        assert source.read_text() == "1\n2\n"
        assert (source.parent / "b.txt").read_text() == "new\n"


async def test_what_was_undone_is_in_no_diff_any_more_and_redo_brings_it_back(tmp_path: Path) -> None:
    """A4."""
    async with launch(tmp_path, editing()) as running:
        await changed(running)
        before = await running.workspace.browse.diff(session_id=running.session_id, run_id=None)
        await running.workspace.undo_turn(running.session_id)
        assert (await running.workspace.browse.diff(session_id=running.session_id, run_id=None)).items == ()
        await running.workspace.redo_turn(running.session_id)
        assert await running.workspace.browse.diff(session_id=running.session_id, run_id=None) == before
        await running.workspace.undo_turn(running.session_id)
        await running.submit("something else", "r2")
        await running.completed("r2")
        assert (await running.workspace.browse.diff(session_id=running.session_id, run_id=None)).items == ()


async def test_a_diff_of_nothing_is_refused(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        with pytest.raises(BadInput):
            await running.workspace.browse.diff(session_id=None, run_id=None)
        with pytest.raises(SessionNotFound):
            await running.workspace.browse.diff(session_id="nope", run_id=None)
        with pytest.raises(RunNotFound):
            await running.workspace.browse.diff(session_id=None, run_id="nope")


def test_a_change_by_somebody_else_in_between_is_not_taken_for_ours() -> None:
    changes = [("a", b"1", b"2"), ("b", None, b"x"), ("a", b"2", b"3"), ("a", b"foreign", b"4"), ("b", b"x", None)]
    assert net_changes(changes) == [
        NetChange(path="a", before=b"1", after=b"3"),
        NetChange(path="a", before=b"foreign", after=b"4"),
    ]


def test_a_deleted_file_and_one_that_is_no_text_have_their_diffs() -> None:
    gone, whole = unified_diff(NetChange(path="a", before=b"x\n", after=None), "a")
    assert whole
    assert gone.splitlines() == ["--- a/a", "+++ /dev/null", "@@ -1 +0,0 @@", "-x"]
    assert unified_diff(NetChange(path="a", before=None, after=os.fsencode("\0")), "a") == ("", True)
    text, whole = unified_diff(NetChange(path="a", before=None, after=b"line\n" * 1000), "a", 500)
    assert not whole
    assert len(text) < 600
