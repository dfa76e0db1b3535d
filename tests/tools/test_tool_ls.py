"""`ls`: a tree that fits."""

from pathlib import Path

import pytest
from trees import grow

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.files.ls import MAX_ENTRIES, LsTool


async def ls(directory: Path, **arguments: object) -> str:
    return (await OpenToolContext(directory).use(LsTool(), **arguments)).content


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    grow(
        tmp_path,
        {
            ".gitignore": "*.log\nnode_modules/\n!.github\n",
            ".git/HEAD": "",
            ".github/ci.yml": "",
            ".env": "",
            "README.md": "",
            "debug.log": "",
            "node_modules/left-pad/index.js": "",
            "src/app/main.py": "",
            "src/app/.cache/x": "",
            "src/lib.py": "",
        },
    )
    (tmp_path / "docs").symlink_to("/usr/share/doc")
    (tmp_path / "empty").mkdir()
    return tmp_path


async def test_a_tree_leaves_out_hidden_and_ignored_files(tree: Path) -> None:
    assert await ls(tree) == (
        "./\n  .github/\n    ci.yml\n  README.md\n  docs -> /usr/share/doc\n  empty/\n"
        "  src/\n    app/\n      main.py\n    lib.py"
    )


async def test_all_shows_everything_but_git_itself(tree: Path) -> None:
    lines = [line.strip() for line in (await ls(tree, all=True)).split("\n")]
    assert {".env", ".gitignore", "debug.log", "node_modules/", "index.js", ".cache/"} <= set(lines)
    assert ".git/" not in lines


async def test_a_subdirectory_keeps_the_rules_of_those_above(tree: Path) -> None:
    grow(tree, {"src/app/x.log": "", "src/app/.gitignore": "!x.log"})
    assert await ls(tree, path="src") == "src/\n  app/\n    main.py\n    x.log\n  lib.py"


async def test_an_ignored_directory_can_be_listed_by_its_name(tree: Path) -> None:
    assert await ls(tree, path="node_modules") == "node_modules/\n  left-pad/\n    index.js"


async def test_depth_ends_the_tree(tree: Path) -> None:
    assert await ls(tree, path="src", depth=1) == "src/\n  app/\n  lib.py"


async def test_a_tree_that_does_not_fit_shows_its_upper_levels(tmp_path: Path) -> None:
    grow(tmp_path, {f"d{directory:02}/f{file:02}": "" for directory in range(20) for file in range(61)})
    lines = (await ls(tmp_path)).split("\n")
    top = [line for line in lines if line.startswith("  d")]
    assert [line.split("/")[0].strip() for line in top] == [f"d{directory:02}" for directory in range(20)]
    assert top[6:] == ["  d06/", "  d07/ … (61 entries)", *(f"  d{number:02}/ …" for number in range(8, 20))]
    assert len(lines) <= MAX_ENTRIES + 3
    assert "List a directory marked with …" in lines[-1]


async def test_what_is_no_directory_is_told(tree: Path) -> None:
    with pytest.raises(ToolError, match=r"README\.md is a file, not a directory\. Use view"):
        await ls(tree, path="README.md")
    with pytest.raises(ToolError, match=r"sr does not exist. Did you mean src\?"):
        await ls(tree, path="sr")


async def test_an_empty_directory_is_said_to_be_empty(tree: Path) -> None:
    assert (await ls(tree, path="empty")).startswith("empty/ is empty")


async def test_a_refused_directory_is_not_listed(tree: Path) -> None:
    """A2: a symlink is asked for by where it leads."""
    context = OpenToolContext(tree, refuse=lambda need: need.paths == ("/usr/share/doc",))
    with pytest.raises(ToolError, match="Not allowed: List /usr/share/doc"):
        await context.use(LsTool(), path="docs")
    assert context.needs[0].action == "read"
