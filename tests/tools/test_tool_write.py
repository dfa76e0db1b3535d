"""`write`: new files, whole replacements, and what protects what is there (A3)."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from longboat.permissions.verdict import Need
from longboat.testing.tool_context import Change, OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.files.write import WriteTool


async def test_a_new_file_is_made_with_its_directories(tmp_path: Path) -> None:
    context = OpenToolContext(tmp_path, diagnostics="1 warning")
    result = await context.use(WriteTool(), path="src/new/a.py", content="x = 1\n")
    path = tmp_path / "src" / "new" / "a.py"
    assert path.read_text() == "x = 1\n"
    difference = "--- /dev/null\n+++ b/src/new/a.py\n@@ -0,0 +1 @@\n+x = 1\n"
    assert result.content == f"Created src/new/a.py (6 bytes).\n\n{difference}\n\n1 warning"
    assert context.changes == [Change(path=path, before=None, after=b"x = 1\n")]
    assert context.needs == [
        Need(
            tool="write",
            action="edit",
            argument="src/new/a.py",
            paths=(str(path),),
            title="Create src/new/a.py",
            detail=difference,
        )
    ]


async def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        await OpenToolContext(tmp_path).use(WriteTool(), path="a", content="x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


async def test_an_existing_file_must_have_been_read_and_be_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    context = OpenToolContext(tmp_path)
    with pytest.raises(ToolError, match="has not been read"):
        await context.use(WriteTool(), path="a.txt", content="two\n")
    context.saw(path)
    path.write_text("someone else\n")
    with pytest.raises(ToolError, match="has changed since"):
        await context.use(WriteTool(), path="a.txt", content="two\n")
    assert path.read_text() == "someone else\n"
    assert context.needs == []


async def test_a_replacement_keeps_mode_and_leaves_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("one\n")
    path.chmod(0o750)
    context = OpenToolContext(tmp_path)
    context.saw(path)
    result = await context.use(WriteTool(), path="run.sh", content="two\n")
    assert "-one\n+two\n" in result.content
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("two\n", 0o750)
    assert os.listdir(tmp_path) == ["run.sh"]
    assert context.changes == [Change(path=path, before=b"one\n", after=b"two\n")]


async def test_two_writes_in_a_row_need_no_read_between_them(tmp_path: Path) -> None:
    context = OpenToolContext(tmp_path)
    for content in ("one", "two"):
        await context.use(WriteTool(), path="a", content=content)
    assert (tmp_path / "a").read_text() == "two"


async def test_a_symlink_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("one")
    (tmp_path / "link.txt").symlink_to("real.txt")
    context = OpenToolContext(tmp_path)
    context.saw(tmp_path / "real.txt")
    await context.use(WriteTool(), path="link.txt", content="two")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "two"
    assert context.needs[0].argument == "real.txt"


@pytest.mark.parametrize(
    ("old", "content", "new", "remark"),
    [
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n", "CRLF line endings were kept"),
        (b"a\r\nb\n", "a\nc\n", b"a\nc\n", ""),
        (b"a\r\nb\r\n", "a\r\nc\n", b"a\r\nc\n", ""),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n", ""),
        ("ä\n".encode("utf-16"), "ö\n", "ö\n".encode("utf-16"), ""),
        ("ä\n".encode("latin-1"), "ö\n", "ö\n".encode("latin-1"), ""),
        ("ä\n".encode("latin-1"), "Ω\n", "Ω\n".encode(), "It is now UTF-8"),
    ],
)
async def test_encoding_and_line_ends_of_a_file_are_kept(
    tmp_path: Path, old: bytes, content: str, new: bytes, remark: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(old)
    context = OpenToolContext(tmp_path)
    context.saw(path)
    result = await context.use(WriteTool(), path="a.txt", content=content)
    assert path.read_bytes() == new
    assert remark in result.content


async def test_the_same_content_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    context = OpenToolContext(tmp_path)
    context.saw(path)
    result = await context.use(WriteTool(), path="a.txt", content="one\n")
    assert "already has exactly this content" in result.content
    assert context.changes == []


async def test_a_refusal_leaves_no_trace(tmp_path: Path) -> None:
    context = OpenToolContext(tmp_path, refuse=lambda _: True)
    with pytest.raises(ToolError, match="Not allowed"):
        await context.use(WriteTool(), path="new/a.txt", content="x")
    assert os.listdir(tmp_path) == []
    assert context.changes == []


@pytest.mark.parametrize("existing", [None, b"one"])
async def test_a_file_that_someone_changes_while_permission_is_asked_is_left_alone(
    tmp_path: Path, existing: bytes | None
) -> None:
    """A3: the content just before the write decides, not the time."""
    path = tmp_path / "a.txt"

    async def meanwhile(_: Need) -> None:
        path.write_bytes(b"someone else")

    context = OpenToolContext(tmp_path, on_permit=meanwhile)
    if existing is not None:
        path.write_bytes(existing)
        context.saw(path)
    with pytest.raises(ToolError, match="Someone else just changed"):
        await context.use(WriteTool(), path="a.txt", content="mine")
    assert path.read_bytes() == b"someone else"
    assert os.listdir(tmp_path) == ["a.txt"]
    assert context.changes == []


async def test_a_directory_that_becomes_a_symlink_while_permission_is_asked_leads_nowhere(tmp_path: Path) -> None:
    """A2: what was allowed is the path that was shown."""
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    (workspace / "src").mkdir(parents=True)
    outside.mkdir()

    async def meanwhile(_: Need) -> None:
        (workspace / "src").rmdir()
        (workspace / "src").symlink_to(outside)

    with pytest.raises(ToolError, match="Someone else just changed"):
        await OpenToolContext(workspace, on_permit=meanwhile).use(WriteTool(), path="src/a.txt", content="x")
    assert os.listdir(outside) == []


async def test_a_cancel_while_permission_is_asked_writes_nothing(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def wait_for_ever(_: Need) -> None:
        asked.set()
        await asyncio.Event().wait()

    context = OpenToolContext(tmp_path, on_permit=wait_for_ever)
    task = asyncio.create_task(context.use(WriteTool(), path="a.txt", content="x"))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert os.listdir(tmp_path) == []


class SlowKit(OpenToolContext):
    """Takes its time to record a change, until it is let go on."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.recording = asyncio.Event()
        self.go_on = asyncio.Event()

    async def note_change(self, key: str, path: Path, before: bytes | None, after: bytes | None) -> str:
        self.recording.set()
        await self.go_on.wait()
        return await super().note_change(key, path, before, after)


async def test_a_cancel_after_the_write_lets_it_be_recorded(tmp_path: Path) -> None:
    """A4: what was written can be undone."""
    context = SlowKit(tmp_path)
    task = asyncio.create_task(context.use(WriteTool(), path="a.txt", content="x"))
    await context.recording.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    context.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert context.changes == [Change(path=tmp_path / "a.txt", before=None, after=b"x")]


class PausedServer(OpenToolContext):
    """The lease is over by the time that a change is recorded, as if the server had been stopped there (SIGSTOP)."""

    is_over = False

    async def expect_change(self, path: Path, before: bytes | None, after: bytes | None) -> str:
        self.is_over = True
        return await super().expect_change(path, before, after)

    def may_change(self) -> bool:
        return not self.is_over


async def test_g3_a_server_whose_lease_ended_after_it_recorded_a_change_does_not_make_it(tmp_path: Path) -> None:
    """Another node may work in the directory by now."""
    context = PausedServer(tmp_path)
    with pytest.raises(ToolError, match=r"no longer owns the workspace\. a\.txt was not written"):
        await context.use(WriteTool(), path="a.txt", content="x")
    assert os.listdir(tmp_path) == []
    assert context.expected == {}


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("folder", "x", "is a directory"),
        ("file/a.txt", "x", "cannot be written: (File exists|Not a directory)"),
        ("a.txt", "\ud800", "surrogate"),
    ],
)
async def test_what_cannot_be_written_is_told(tmp_path: Path, path: str, content: str, said: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(ToolError, match=said):
        await OpenToolContext(tmp_path).use(WriteTool(), path=path, content=content)
