"""`glob`: files by pattern, newest first; the same with ripgrep and without."""

import asyncio
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import ENGINES, NO_RIPGREP, TREES, grow, kit_of

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.search.glob import MAX_SHOWN, GlobTool
from longboat.tools.search.globs import compiled, split
from parts import how, missing

Engine = Mapping[str, str] | None


async def glob(directory: Path, engine: Engine, **arguments: object) -> list[str]:
    return (await kit_of(directory, engine).use(GlobTool(), **arguments)).content.split("\n")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    grow(
        tmp_path,
        {
            ".gitignore": "*.log\nbuild/\n",
            ".git/config.py": "",
            ".github/workflows/ci.yml": "",
            "a.py": "",
            "build/out.py": "",
            "src/b.py": "",
            "src/deep/c.py": "",
            "src/deep/c.ts": "",
            "src/deep/.d.py": "",
            "x.log": "",
        },
    )
    return tmp_path


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["src/deep/c.py", "src/b.py", "a.py"]),
        ("**/*.py", ["src/deep/c.py", "src/b.py", "a.py"]),
        ("./*.py", ["a.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**/*.{py,ts}", ["src/deep/c.ts", "src/deep/c.py", "src/b.py"]),
        ("src/**", ["src/deep/c.ts", "src/deep/c.py", "src/b.py"]),
        ("src/deep/", ["src/deep/c.ts", "src/deep/c.py"]),
        ("*/deep/?.[pt][ys]", ["src/deep/c.ts", "src/deep/c.py"]),
        (".github/**/*.yml", [".github/workflows/ci.yml"]),
        (".*.py", ["src/deep/.d.py"]),
        ("build/*.py", ["build/out.py"]),
        ("{tree}/src/*.py", ["src/b.py"]),
        ("a.py", ["a.py"]),
    ],
)
async def test_patterns_find_files_newest_first(tree: Path, engine: Engine, pattern: str, found: list[str]) -> None:
    assert await glob(tree, engine, pattern=pattern.replace("{tree}", str(tree))) == found


@pytest.mark.parametrize("engine", ENGINES)
async def test_all_finds_hidden_and_ignored_files_but_never_git_itself(tree: Path, engine: Engine) -> None:
    found = await glob(tree, engine, pattern="*.{py,log}", all=True)
    assert found == ["x.log", "src/deep/.d.py", "src/deep/c.py", "src/b.py", "build/out.py", "a.py"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_path_limits_the_search_and_anchors_the_pattern(tree: Path, engine: Engine) -> None:
    assert await glob(tree, engine, pattern="deep/*.py", path="src") == ["src/deep/c.py"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_no_match_says_what_was_left_out(tree: Path, engine: Engine) -> None:
    assert (await glob(tree, engine, pattern="*.rs"))[0].startswith("No file matches")


@pytest.mark.parametrize("engine", ENGINES)
async def test_many_files_are_cut_to_the_newest(tmp_path: Path, engine: Engine) -> None:
    grow(tmp_path, {f"f{number:03}": "" for number in range(MAX_SHOWN + 50)})
    found = await glob(tmp_path, engine, pattern="f*")
    assert found[:MAX_SHOWN] == [f"f{number:03}" for number in range(MAX_SHOWN + 49, 49, -1)]
    assert found[MAX_SHOWN:] == ["", "(The 200 newest of 250 files. Use a narrower pattern to see others.)"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_symlinks_are_not_followed(tmp_path: Path, engine: Engine) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    grow(tmp_path, {"workspace/a.py": "", "outside/secret.py": ""})
    (workspace / "link").symlink_to(outside)
    (workspace / "file.py").symlink_to(outside / "secret.py")
    assert await glob(workspace, engine, pattern="**/*.py") == ["a.py"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_name_that_is_no_utf8_can_be_shown(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.py")).touch()
    assert await glob(tmp_path, engine, pattern="*.py") == ["caf\\udce9.py"]


@pytest.mark.parametrize("place", ["/usr/share/doc", ".."])
async def test_a_pattern_that_leads_outside_is_asked_for_as_such(tmp_path: Path, place: str) -> None:
    """A2."""
    outside = (tmp_path / place).resolve()
    context = OpenToolContext(tmp_path, refuse=lambda need: need.paths == (str(outside),))
    with pytest.raises(ToolError, match="Not allowed"):
        await context.use(GlobTool(), pattern=f"{place}/*.py")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pattern": "{}"}, "pattern is empty"),
        ({"pattern": "*/../*.py"}, "cannot contain `..`"),
        ({"pattern": "{a,b}" * 8}, "more than 100 alternatives"),
        ({"pattern": "[z-a]"}, "is invalid"),
        ({"pattern": "*", "path": "nowhere"}, "nowhere does not exist"),
        ({"pattern": "*", "path": "a.py"}, "is a file"),
    ],
)
async def test_bad_patterns_and_places_are_told(tree: Path, arguments: dict[str, str], said: str) -> None:
    with pytest.raises(ToolError, match=said):
        await glob(tree, None, **arguments)


@pytest.mark.parametrize("name", ["--help", "-e", "--pre=touch pwned", "include:py"])
@pytest.mark.parametrize("engine", ENGINES)
async def test_a_pattern_or_directory_is_never_an_option(tmp_path: Path, engine: Engine, name: str) -> None:
    grow(tmp_path, {f"{name}/{name}": "x"})
    assert await glob(tmp_path, engine, pattern=name) == [f"{name}/{name}"]
    assert await glob(tmp_path, engine, pattern="*", path=name) == [f"{name}/{name}"]


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("*.py", ("", "*.py")),
        ("src/**/*.py", ("src", "**/*.py")),
        ("/etc/*.conf", ("/etc", "*.conf")),
        ("/*", ("/", "*")),
        ("src/a.py", ("src", "a.py")),
        ("~/x/{a,b}/c", ("~/x", "{a,b}/c")),
    ],
)
def test_the_plain_beginning_of_a_pattern_is_its_directory(pattern: str, parts: tuple[str, str]) -> None:
    assert split(pattern) == parts


@given(st.text("ab/*?[]!{},.\\^-~&|", min_size=1, max_size=10), st.text("ab/.", min_size=1, max_size=8))
def test_every_pattern_is_understood_or_refused(pattern: str, path: str) -> None:
    try:
        globs = compiled(pattern)
    except ToolError:
        return
    globs.match(path)


@given(st.text("ab.-", min_size=1, max_size=8).filter(lambda name: name.strip(".")))
def test_a_plain_name_matches_itself_alone(name: str) -> None:
    globs = compiled(name)
    assert globs.match(name)
    assert globs.match(f"x/{name}")
    assert not globs.match(f"{name}x")


PATTERNS = st.sampled_from(
    ["*", "*.py", "**/*", "a/**", "b/*", "*.{py,log}", "[ab]*", ".*", ".hid/**", "build", "?.py"]
)


@pytest.mark.skipif(missing("rg"), reason=how("rg"))
@settings(max_examples=40, deadline=None)
@given(files=TREES, pattern=PATTERNS, everything=st.booleans())
def test_with_and_without_ripgrep_the_same_files_are_found(
    files: dict[str, bytes], pattern: str, everything: bool
) -> None:
    async def both(directory: Path) -> tuple[list[str], list[str]]:
        with_it = await glob(directory, None, pattern=pattern, all=everything)
        return with_it, await glob(directory, NO_RIPGREP, pattern=pattern, all=everything)

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name).resolve()
        for place in ("a", "b", ".hid"):
            (directory / place).mkdir()
        grow(directory, files)
        with_it, without_it = asyncio.run(both(directory))
        assert with_it == without_it
