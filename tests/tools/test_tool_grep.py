"""`grep`: lines by regular expression; the same with ripgrep and without."""

import asyncio
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import ENGINES, NO_RIPGREP, TREES, grow, kit_of

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.search import ripgrep
from longboat.tools.search.grep import GrepTool
from longboat.tools.search.matches import MAX_LINES, MAX_SHOWN
from parts import how, missing

Engine = Mapping[str, str] | None


async def grep(directory: Path, engine: Engine, pattern: str, **arguments: object) -> str:
    return (await kit_of(directory, engine).use(GrepTool(), pattern=pattern, **arguments)).content


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    grow(
        tmp_path,
        {
            ".gitignore": "*.log\n",
            ".git/config": "needle\n",
            ".env": "needle\n",
            "a.py": "one\nneedle = 1\nthree\nfour\nfive\nNEEDLE\n",
            "src/b.py": "x\r\nneedle(y)\r\n",
            "src/c.ts": "needle;\n",
            "src/binary": b"needle\0",
            "x.log": "needle\n",
        },
    )
    return tmp_path


@pytest.mark.parametrize("engine", ENGINES)
async def test_lines_are_shown_by_file_with_their_numbers(tree: Path, engine: Engine) -> None:
    found = await grep(tree, engine, "needle")
    assert found == "a.py\n2:needle = 1\n\nsrc/b.py\n2:needle(y)\n\nsrc/c.ts\n1:needle;"


@pytest.mark.parametrize("engine", ENGINES)
async def test_context_is_shown_with_gaps_marked(tree: Path, engine: Engine) -> None:
    found = await grep(tree, engine, "needle", path="a.py", context=1, ignore_case=True)
    assert found == "a.py\n1-one\n2:needle = 1\n3-three\n--\n5-five\n6:NEEDLE"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"mode": "files"}, "a.py\nsrc/b.py\nsrc/c.ts"),
        ({"mode": "files", "include": "*.{py,rs}"}, "a.py\nsrc/b.py"),
        ({"mode": "files", "include": "src/*.py"}, "src/b.py"),
        ({"mode": "files", "include": "[a-b].py"}, "a.py\nsrc/b.py"),
        ({"mode": "files", "include": ".env"}, ".env"),
        ({"mode": "files", "path": "src", "include": "*.py"}, "src/b.py"),
        ({"mode": "files", "all": True}, ".env\na.py\nsrc/b.py\nsrc/c.ts\nx.log"),
        ({"mode": "files", "path": "x.log"}, "x.log"),
        ({"mode": "count"}, "a.py: 1\nsrc/b.py: 1\nsrc/c.ts: 1\n\n(3 matching lines in 3 files.)"),
        ({"mode": "count", "path": "a.py", "ignore_case": True}, "a.py: 2\n\n(2 matching lines in 1 files.)"),
    ],
)
async def test_modes_and_limits(tree: Path, engine: Engine, arguments: dict[str, object], found: str) -> None:
    assert await grep(tree, engine, "needle", **arguments) == found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("pattern", "literal", "found"),
    [
        (r"needle\(y\)$", False, "src/b.py\n2:needle(y)"),
        ("needle(y)", True, "src/b.py\n2:needle(y)"),
        ("^x$", False, "src/b.py\n1:x"),
        ("nothing like it", False, "No match. Set all to include hidden and ignored files."),
    ],
)
async def test_patterns_are_regular_expressions_unless_literal(
    tree: Path, engine: Engine, pattern: str, literal: bool, found: str
) -> None:
    assert await grep(tree, engine, pattern, literal=literal) == found


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_search_that_left_nothing_out_gives_no_hint(tree: Path, engine: Engine) -> None:
    assert await grep(tree, engine, "nothing like it", all=True) == "No match."
    assert await grep(tree, engine, "nothing like it", path="src/b.py") == "No match in src/b.py."


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_pattern_is_never_an_option_and_a_name_neither(tmp_path: Path, engine: Engine) -> None:
    grow(tmp_path, {"--pre=touch pwned": "--files\n-v\n", "-f": "--files\n", "*.py": "--files\n"})
    assert await grep(tmp_path, engine, "--files", mode="files") == "*.py\n--pre=touch pwned\n-f"
    assert await grep(tmp_path, engine, "-v", path="--pre=touch pwned") == "--pre=touch pwned\n2:-v"
    assert await grep(tmp_path, engine, "--files", path="-f") == "-f\n1:--files"
    assert await grep(tmp_path, engine, "-", include="*.py") == "*.py\n1:--files"
    assert sorted(os.listdir(tmp_path)) == ["*.py", "--pre=touch pwned", "-f"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_many_matches_are_cut_and_counted(tmp_path: Path, engine: Engine) -> None:
    grow(tmp_path, {"a.txt": "needle\n" * 1_000, "b.txt": "needle\n"})
    lines = (await grep(tmp_path, engine, "needle")).split("\n")
    assert lines[1 : MAX_LINES + 1] == [f"{number}:needle" for number in range(1, MAX_LINES + 1)]
    assert lines[MAX_LINES + 1 :] == ["", "(250 of 1,001 matching lines in 2 files: narrow the search.)"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_flood_of_matches_ends_the_search(tmp_path: Path, engine: Engine) -> None:
    grow(tmp_path, {"a.txt": "needle\n" * 200_000})
    found = await grep(tmp_path, engine, "needle")
    assert len(found) < MAX_SHOWN + 1_000
    assert "The search stopped early: more than 5,000 results" in found


@pytest.mark.parametrize("engine", ENGINES)
async def test_of_a_long_line_the_part_around_the_match_is_shown(tmp_path: Path, engine: Engine) -> None:
    grow(tmp_path, {"a.js": "x" * 300_000 + "needle" + "y" * 300_000 + "\n"})
    found = await grep(tmp_path, engine, "need.e")
    assert found.startswith("a.js\n1:…xxx")
    assert "xneedley" in found
    assert len(found) < 500


@pytest.mark.parametrize("engine", ENGINES)
async def test_symlinks_are_not_followed(tmp_path: Path, engine: Engine) -> None:
    grow(tmp_path, {"workspace/a": "needle", "outside/secret": "needle"})
    (tmp_path / "workspace" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "workspace" / "file").symlink_to(tmp_path / "outside" / "secret")
    assert await grep(tmp_path / "workspace", engine, "needle", mode="files") == "a"


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_name_that_is_no_utf8_can_be_shown(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).write_text("needle\n")
    for mode, found in [("content", "\n1:needle"), ("files", ""), ("count", ": 1\n\n(1 matching lines in 1 files.)")]:
        assert await grep(tmp_path, engine, "needle", mode=mode) == f"caf\\udce9{found}"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pattern": ""}, "pattern is empty"),
        ({"pattern": "a\nb"}, "never spans lines"),
        ({"pattern": "a\0b"}, "never spans lines"),
        ({"pattern": "\ud800"}, "surrogate"),
        ({"pattern": "(unclosed"}, "The search failed: regex parse error"),
        ({"pattern": "x", "path": "nowhere"}, "nowhere does not exist"),
        ({"pattern": "x", "path": "src/binary"}, r"src/binary is not a text file \(binary file\)"),
        ({"pattern": "x", "include": ""}, "glob pattern is empty"),
        ({"pattern": "x", "mode": "lines"}, "Invalid input for grep"),
    ],
)
async def test_what_cannot_be_searched_is_told(
    tree: Path, engine: Engine, arguments: dict[str, str], said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        await grep(tree, engine, **arguments)


async def test_a_refused_search_runs_nothing(tree: Path) -> None:
    """A2."""
    context = OpenToolContext(tree, refuse=lambda need: need.paths == ("/etc",))
    with pytest.raises(ToolError, match="Not allowed: Search /etc for root"):
        await context.use(GrepTool(), pattern="root", path="/etc")
    assert (context.needs[0].tool, context.needs[0].action, context.needs[0].argument) == ("grep", "read", "/etc")


async def test_a_cancel_ends_the_process_at_once(tmp_path: Path) -> None:
    """T3: a canceled run leaves no search behind."""
    programs, workspace = tmp_path / "programs", tmp_path / "workspace"
    workspace.mkdir()
    grow(programs, {"rg": "#!/bin/sh\necho $$ > started\nexec sleep 1000\n"})
    (programs / "rg").chmod(0o755)
    os.mkfifo(workspace / "started")
    context = OpenToolContext(workspace, environ={"PATH": f"{programs}:/usr/bin:/bin"})
    task = asyncio.create_task(context.use(GrepTool(), pattern="x"))
    pid = int(await asyncio.to_thread((workspace / "started").read_text))
    assert psutil.pid_exists(pid)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not psutil.pid_exists(pid)


async def test_a_search_that_takes_too_long_is_ended_and_shows_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A regular expression of a model can take for ever where there is no ripgrep."""
    monkeypatch.setattr(ripgrep, "TIME_S", 0.5)
    grow(tmp_path, {"a.txt": "x" * 60 + "\n"})
    found = await grep(tmp_path, NO_RIPGREP, "(x+x+)+y")
    assert "The search stopped early: it took more than" in found


async def test_modules_and_programs_of_the_workspace_are_not_run(tmp_path: Path) -> None:
    """Argument and module injection: what lies in the workspace is only ever data."""
    trap = "import os; os.mkdir('pwned')\n"
    grow(
        tmp_path,
        {"json.py": trap, "longboat/__init__.py": trap, "sitecustomize.py": trap, "rg": "#!/bin/sh\nmkdir pwned\n"},
    )
    (tmp_path / "rg").chmod(0o755)
    environ = {"PATH": ".", "PYTHONPATH": ".", "RIPGREP_CONFIG_PATH": "./config"}
    assert await grep(tmp_path, environ, "mkdir pwned", mode="files") == "rg"
    assert not (tmp_path / "pwned").exists()


QUERIES = st.fixed_dictionaries(
    {
        "pattern": st.sampled_from(["needle", "^needle", "needle$", r"\bne+dle\b", "no", "e. ", "é"]),
        "mode": st.sampled_from(["content", "files", "count"]),
        "context": st.integers(0, 2),
        "include": st.sampled_from([None, "*.py", "a/**", "**/*.{py,log}", ".*", "[ab]*"]),
        "ignore_case": st.booleans(),
        "all": st.booleans(),
    }
)


@pytest.mark.skipif(missing("rg"), reason=how("rg"))
@settings(max_examples=40, deadline=None)
@given(files=TREES, query=QUERIES)
def test_with_and_without_ripgrep_the_same_is_found(files: dict[str, bytes], query: dict[str, object]) -> None:
    async def both(directory: Path) -> tuple[str, str]:
        pattern = str(query["pattern"])
        more = {name: value for name, value in query.items() if name != "pattern"}
        return await grep(directory, None, pattern, **more), await grep(directory, NO_RIPGREP, pattern, **more)

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name).resolve()
        grow(directory, files)
        with_it, without_it = asyncio.run(both(directory))
        assert with_it == without_it
