"""AGENTS.md and its like, found, ordered, bounded, and never from elsewhere (A5)."""

import os
from pathlib import Path

import pytest

from longboat.context import instructions
from longboat.context.instructions import Instruction
from longboat.context.library import Library


class Tree:
    """A repository with a workspace in it, and a user's home."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.repository = root / "repository"
        self.workspace = self.repository / "packages" / "web"
        self.workspace.mkdir(parents=True)
        self.home.mkdir()
        (self.repository / ".git").mkdir()
        self.library = Library(self.workspace, environ={}, user_dir=self.home)

    def write(self, name: str, text: str) -> Path:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return Path(os.path.normpath(path))

    def texts(self) -> list[str]:
        return [item.text for item in self.library.load().instructions]

    def problems(self) -> tuple[str, ...]:
        return self.library.load().problems


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_the_users_own_come_first_then_the_repository_down_to_the_workspace(tree: Tree) -> None:
    inner = tree.write("AGENTS.md", "inner")
    middle = tree.write("../AGENTS.md", "middle")
    outer = tree.write("../../AGENTS.md", "outer\n")
    tree.write("../../../AGENTS.md", "above the repository")
    own = tree.home / ".config" / "longboat" / "AGENTS.md"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    context = tree.library.load()
    assert context.instructions == (
        Instruction(path=own, text="mine"),
        Instruction(path=outer, text="outer"),
        Instruction(path=middle, text="middle"),
        Instruction(path=inner, text="inner"),
    )
    assert context.problems == ()


def test_the_users_directory_follows_xdg_config_home(tree: Tree, tmp_path: Path) -> None:
    own = tmp_path / "xdg" / "longboat" / "AGENTS.md"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    library = Library(tree.workspace, environ={"XDG_CONFIG_HOME": str(tmp_path / "xdg")}, user_dir=tree.home)
    assert [item.text for item in library.load().instructions] == ["mine"]


def test_claude_md_counts_only_where_no_agents_md_is_beside_it(tree: Tree) -> None:
    tree.write("AGENTS.md", "agents")
    tree.write("CLAUDE.md", "claude beside agents")
    tree.write("../CLAUDE.md", "claude alone")
    assert tree.texts() == ["claude alone", "agents"]


def test_without_a_repository_only_the_workspace_counts(tmp_path: Path) -> None:
    workspace = tmp_path / "above" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "AGENTS.md").write_text("here")
    (workspace.parent / "AGENTS.md").write_text("above")
    library = Library(workspace, environ={}, user_dir=tmp_path / "home")
    assert [item.text for item in library.load().instructions] == ["here"]


def test_somebody_elses_git_directory_above_does_not_make_it_the_repository(tree: Tree) -> None:
    tree.write("../../AGENTS.md", "planted")
    git = tree.repository / ".git"
    if os.getuid() == 0:
        os.chown(git, 12345, 12345)
    else:
        git.rmdir()
        git.symlink_to("/")  # root's
    assert tree.texts() == []


def test_a_changed_file_is_read_again_even_at_the_same_size(tree: Tree) -> None:
    path = tree.write("AGENTS.md", "one")
    assert tree.texts() == ["one"]
    path.write_text("two")
    assert tree.texts() == ["two"]
    path.unlink()
    assert tree.texts() == []


def test_an_unchanged_file_is_not_read_again(tree: Tree) -> None:
    path = tree.write("AGENTS.md", "one")
    os.utime(path, (1_000, 1_000))
    assert tree.texts() == ["one"]
    path.write_text("two")
    os.utime(path, (1_000, 1_000))
    assert tree.texts() == ["one"], "the stamp says that nothing changed"
    os.utime(path, (2_000, 2_000))
    assert tree.texts() == ["two"]


def test_nested_instructions_hold_for_files_on_their_way(tree: Tree) -> None:
    outer = tree.write("src/AGENTS.md", "src")
    inner = tree.write("src/api/CLAUDE.md", "api")
    tree.write("docs/AGENTS.md", "docs")
    tree.write("AGENTS.md", "everywhere: told already")
    tree.write("src/api/v1/x.py", "")
    expected = (Instruction(path=outer, text="src"), Instruction(path=inner, text="api"))
    assert tree.library.for_path(tree.workspace / "src/api/v1/x.py").items == expected
    assert tree.library.for_path(Path("src/api/new.py")).items == expected
    assert tree.library.for_path(tree.workspace / "src").items == expected[:1]
    assert tree.library.for_path(tree.workspace / "x.py").items == ()


def test_nothing_nested_holds_outside_the_workspace_or_in_other_peoples_packages(tree: Tree) -> None:
    tree.write("node_modules/pkg/AGENTS.md", "obey me")
    tree.write("../other/AGENTS.md", "other")
    assert tree.library.for_path(tree.workspace / "node_modules/pkg/index.js").items == ()
    assert tree.library.for_path(tree.workspace / "../other/x.py").items == ()


def test_imports_are_followed_one_level_and_each_file_once(tree: Tree) -> None:
    first = tree.write("AGENTS.md", "See @docs/style.md, and (@docs/style.md).\nAlso @../shared.md.")
    style = tree.write("docs/style.md", "style @docs/deeper.md")
    tree.write("docs/docs/deeper.md", "too deep")
    shared = tree.write("../shared.md", "shared")
    context = tree.library.load()
    assert [item.path for item in context.instructions] == [first, style, shared]
    assert context.problems == ()


def test_what_only_looks_like_an_import_is_none(tree: Tree) -> None:
    tree.write("x.md", "not wanted")
    prose = "Ask @alice or me@x.md about @types/node, @/components and `@x.md`.\nuser@host:x.md"
    tree.write("AGENTS.md", f"{prose}\n```\n@x.md\n~~~\n@x.md\n```\n")
    context = tree.library.load()
    assert len(context.instructions) == 1
    assert context.problems == ()


def test_an_import_that_is_missing_is_told_with_its_line(tree: Tree) -> None:
    path = tree.write("AGENTS.md", "one\ntwo @docs/gone.md")
    assert tree.problems() == (f"{path}:2: @docs/gone.md does not exist.",)


def test_an_import_from_outside_is_refused(tree: Tree) -> None:
    secret = tree.home / "secret.md"
    secret.write_text("secret")
    path = tree.write("AGENTS.md", f"@{secret}\n@link.md\n@../../../home/secret.md")
    (tree.workspace / "link.md").symlink_to(secret)
    context = tree.library.load()
    assert [item.path for item in context.instructions] == [path]
    assert context.problems == (
        f"{path}:1: @{secret} is outside {tree.repository} and is not read.",
        f"{path}:2: @link.md is outside {tree.repository} and is not read.",
        f"{path}:3: @../../../home/secret.md is outside {tree.repository} and is not read.",
    )


def test_a_link_out_of_the_repository_is_not_read(tree: Tree) -> None:
    secret = tree.home / "secret"
    secret.write_text("key")
    path = tree.workspace / "AGENTS.md"
    path.symlink_to(secret)
    context = tree.library.load()
    assert context.instructions == ()
    assert context.problems == (
        f"{path}: is a link out of {tree.repository} and is not read. Use a copy instead of a link.",
    )


def test_a_link_within_the_repository_is_read_and_the_users_may_lead_anywhere(tree: Tree) -> None:
    tree.write("../../docs/agents.md", "linked")
    (tree.workspace / "AGENTS.md").symlink_to(tree.repository / "docs" / "agents.md")
    config = tree.home / ".config" / "longboat"
    config.mkdir(parents=True)
    (tree.home / "dotfiles.md").write_text("mine")
    (config / "AGENTS.md").symlink_to(tree.home / "dotfiles.md")
    assert tree.texts() == ["mine", "linked"]


def test_long_instructions_are_cut_furthest_out_first_with_a_note(tree: Tree) -> None:
    inner = tree.write("AGENTS.md", "i" * 50_000)
    outer = tree.write("../../AGENTS.md", "o" * 20_000)
    context = tree.library.load()
    assert context.instructions == (
        Instruction(path=outer, text="o" * 10_000 + f"\n[cut: 10000 more characters in {outer}]"),
        Instruction(path=inner, text="i" * 50_000),
    )
    assert context.problems == (
        f"{outer}: was cut off: all instructions together exceed {instructions.MAX_CHARS} characters.",
    )


def test_bad_files_are_told_by_file_and_line_and_never_raise(tree: Tree) -> None:
    path = tree.workspace / "AGENTS.md"
    for content, expected in (
        (b"one\ntwo\xff", f"{path}:2: expected UTF-8 text."),
        (b"one\n\ntwo\0", f"{path}:3: expected UTF-8 text."),
        (b"x" * (2**20 + 1), f"{path}: is larger than 1 MB and is not read. Make it shorter."),
    ):
        path.write_bytes(content)
        assert tree.problems() == (expected,)
    path.unlink()
    path.mkdir()
    assert tree.problems() == (f"{path}: is not a regular file.",)
    path.rmdir()
    path.symlink_to("AGENTS.md")
    assert tree.problems() == (f"{path}: cannot be read: Too many levels of symbolic links.",)


def test_a_pipe_in_place_of_a_file_does_not_block(tree: Tree) -> None:
    path = tree.workspace / "AGENTS.md"
    os.mkfifo(path)
    assert tree.problems() == (f"{path}: is not a regular file.",)


def test_windows_line_ends_and_a_byte_order_mark_are_no_part_of_the_text(tree: Tree) -> None:
    (tree.workspace / "AGENTS.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert tree.texts() == ["one\ntwo"]


def test_a_workspace_that_is_gone_has_nothing_to_say(tmp_path: Path) -> None:
    library = Library(tmp_path / "gone", environ={}, user_dir=tmp_path / "home")
    context = library.load()
    assert (context.instructions, context.skills, context.problems) == ((), (), ())
