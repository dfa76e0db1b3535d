"""Whatever path a model gives to whatever tool: an answer or a ToolError, never another exception (D10)."""

from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from hostile_paths import PATHS, make_obstacles
from longboat.testing.tool_context import CallableTool, OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.files.edit import EditTool
from longboat.tools.files.ls import LsTool
from longboat.tools.files.multiedit import MultieditTool
from longboat.tools.files.view import ViewTool
from longboat.tools.files.write import WriteTool
from longboat.tools.lsp.client.symbol_location import open_source
from longboat.tools.process.bash import BashTool
from longboat.tools.process.jobs import Jobs
from longboat.tools.search import ripgrep
from longboat.tools.search.glob import GlobTool
from longboat.tools.search.grep import GrepTool

EDIT = {"old_text": "text", "new_text": "other"}
CALLS: dict[str, tuple[type[CallableTool], str, dict[str, Any]]] = {
    "ls": (LsTool, "path", {}),
    "glob in": (GlobTool, "path", {"pattern": "*.py"}),
    "glob": (GlobTool, "pattern", {}),
    "grep in": (GrepTool, "path", {"pattern": "text"}),
    "grep among": (GrepTool, "include", {"pattern": "text"}),
    "view": (ViewTool, "path", {}),
    "write": (WriteTool, "path", {"content": "text"}),
    "edit": (EditTool, "path", EDIT),
    "multiedit": (MultieditTool, "path", {"edits": [EDIT]}),
}


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenToolContext:
    monkeypatch.setattr(ripgrep, "TIME_S", 1)  # one of the paths leads to the root, with everything below it
    directory = tmp_path / "work"
    directory.mkdir()
    make_obstacles(directory)
    return OpenToolContext(directory)


@pytest.fixture
async def bash(tmp_path: Path) -> AsyncIterator[BashTool]:
    jobs = Jobs(tmp_path / "scratch")
    yield BashTool(jobs)
    await jobs.aclose()


async def answer(call: Awaitable[object]) -> str:
    try:
        return str(await call)
    except ToolError as error:
        return str(error)


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize(("tool", "name", "others"), CALLS.values(), ids=CALLS)
async def test_every_tool_answers_or_refuses(
    context: OpenToolContext, tool: type[CallableTool], name: str, others: dict[str, Any], path: str
) -> None:
    assert 0 < len(await answer(context.use(tool(), **{name: path}, **others))) < 10_000


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
async def test_bash_answers_or_refuses(context: OpenToolContext, bash: BashTool, path: str) -> None:
    assert await answer(context.use(bash, command="true", cwd=path))
    assert await answer(context.use(bash, command=f"test -e '{path}'"))


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
async def test_tools_that_ask_language_servers_answer_or_refuse(context: OpenToolContext, path: str) -> None:
    assert await answer(open_source(context, "symbols", path))


@pytest.mark.parametrize(
    "name", ["256 characters", "4,096 characters", "2,000 levels", "NUL", "through a loop of links"]
)
async def test_a_file_that_cannot_be_is_refused_before_anything_is_made(context: OpenToolContext, name: str) -> None:
    before = sorted(context.directory.rglob("*"))
    with pytest.raises(ToolError):
        await context.use(WriteTool(), path=PATHS[name], content="text")
    assert sorted(context.directory.rglob("*")) == before
    assert context.needs == [], "nobody is asked about it"
