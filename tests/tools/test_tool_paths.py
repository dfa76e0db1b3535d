"""Where a path leads that a model gave, and what permissions see of it."""

import shutil
from pathlib import Path

import pytest

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.files.edit import EditTool
from longboat.tools.files.ls import LsTool
from longboat.tools.files.paths import resolve
from longboat.tools.files.view import ViewTool
from longboat.tools.files.write import WriteTool


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return workspace


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a.txt", "a.txt"),
        ("./src//a.txt", "src/a.txt"),
        ("src/../a.txt", "a.txt"),
        (".", "."),
        ("~$lock.docx", "~$lock.docx"),
        ("src/~/a", "src/~/a"),
    ],
)
def test_a_relative_path_is_in_the_workspace(workspace: Path, given: str, shown: str) -> None:
    target = resolve(workspace, given)
    assert (target.shown, target.inside) == (shown, True)
    assert target.path == workspace / shown


def test_an_absolute_path_into_the_workspace_is_shown_relative_to_it(workspace: Path) -> None:
    assert resolve(workspace, str(workspace / "a" / "b")).shown == "a/b"


@pytest.mark.parametrize("given", ["../secret", "src/../../secret", "{outside}/secret", "out/secret"])
def test_a_path_that_leaves_the_workspace_is_outside(workspace: Path, given: str) -> None:
    (workspace / "out").symlink_to(workspace.parent)
    target = resolve(workspace, given.format(outside=workspace.parent))
    assert (target.path, target.inside) == (workspace.parent / "secret", False)
    assert target.shown == str(workspace.parent / "secret")


def test_a_sibling_with_the_same_beginning_is_outside(workspace: Path) -> None:
    assert not resolve(workspace, f"{workspace}-other/a").inside


def test_a_tilde_is_the_home_and_outside(workspace: Path) -> None:
    target = resolve(workspace, "~/notes.txt")
    assert (target.path, target.inside) == (Path.home().resolve() / "notes.txt", False)


@pytest.mark.parametrize(
    ("given", "said"), [("", "The path is empty"), ("a\0b", "NUL"), ("a\ud800b", "is not a valid file name")]
)
def test_what_is_no_path_is_refused(workspace: Path, given: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        resolve(workspace, given)


@pytest.mark.parametrize("given", ["loop", "a" * 5_000, "/".join(["a" * 200] * 40)])
async def test_a_path_that_cannot_be_opened_is_told(workspace: Path, given: str) -> None:
    (workspace / "loop").symlink_to("loop")
    with pytest.raises(ToolError, match=r"cannot be opened|does not exist|is not a valid file name"):
        await OpenToolContext(workspace).use(ViewTool(), path=given)


async def test_a_symlink_out_of_the_workspace_is_asked_for_by_where_it_leads(workspace: Path) -> None:
    """A2: the path outside is what permissions see, and nothing is read or written if they refuse."""
    outside = workspace.parent / "outside.txt"
    outside.write_text("kept\n")
    (workspace / "inside.txt").symlink_to(outside)
    context = OpenToolContext(workspace, refuse=lambda need: str(outside) in need.paths)
    context.saw(outside)
    calls = [
        (ViewTool(), {}),
        (WriteTool(), {"content": "new\n"}),
        (EditTool(), {"old_text": "kept", "new_text": "lost"}),
    ]
    for tool, arguments in calls:
        with pytest.raises(ToolError, match="Not allowed"):
            await context.use(tool, path="inside.txt", **arguments)
    assert {(need.argument, need.paths) for need in context.needs} == {(str(outside), (str(outside),))}
    assert outside.read_text() == "kept\n"


async def test_a_dangling_symlink_out_of_the_workspace_is_outside_too(workspace: Path) -> None:
    (workspace / "link").symlink_to(workspace.parent / "new.txt")
    context = OpenToolContext(workspace)
    await context.use(WriteTool(), path="link", content="x")
    assert context.needs[0].paths == (str(workspace.parent / "new.txt"),)
    assert (workspace.parent / "new.txt").read_text() == "x"
    assert (workspace / "link").is_symlink()


async def test_a_missing_file_is_answered_with_the_nearest_names(workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "src" / "Settings.py").write_text("")
    with pytest.raises(ToolError, match=r"src/setings.py does not exist. Did you mean src/Settings.py\?"):
        await OpenToolContext(workspace).use(ViewTool(), path="src/setings.py")
    with pytest.raises(ToolError, match=r"scr/Settings.py does not exist. Did you mean src\?"):
        await OpenToolContext(workspace).use(ViewTool(), path="scr/Settings.py")


async def test_a_workspace_that_was_deleted_is_named_and_nothing_beside_it_is(workspace: Path) -> None:
    (workspace.parent / "workspaces").mkdir()
    context = OpenToolContext(workspace)
    shutil.rmtree(workspace)
    with pytest.raises(ToolError, match=r"^The workspace's directory no longer exists\.$"):
        await context.use(LsTool())
    for path in ("a.txt", "src/a.txt"):
        with pytest.raises(ToolError, match=rf"^{path} does not exist\. Use ls or glob to find it\.$"):
            await context.use(ViewTool(), path=path)


async def test_names_outside_the_workspace_are_not_given_away(workspace: Path) -> None:
    (workspace.parent / "secret.txt").write_text("")
    with pytest.raises(ToolError, match=r"does not exist\. Use ls or glob"):
        await OpenToolContext(workspace).use(EditTool(), path="../secret.tx", old_text="a", new_text="b")
