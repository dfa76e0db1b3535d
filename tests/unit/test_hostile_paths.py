"""Whatever path a model gives to whatever tool: an answer or a ToolError, never another exception (D10)."""

from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from hostile_paths import PATHS, make_obstacles
from longboat.testing.kit import KitTool, OpenKit
from longboat.tools import ripgrep
from longboat.tools.bash import BashTool
from longboat.tools.edit import EditTool
from longboat.tools.glob import GlobTool
from longboat.tools.grep import GrepTool
from longboat.tools.jobs import Jobs
from longboat.tools.kit import ToolError
from longboat.tools.ls import LsTool
from longboat.tools.lsp.spot import open_source
from longboat.tools.multiedit import MultieditTool
from longboat.tools.view import ViewTool
from longboat.tools.write import WriteTool

EDIT = {"old_text": "text", "new_text": "other"}
CALLS: dict[str, tuple[type[KitTool], str, dict[str, Any]]] = {
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
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenKit:
    monkeypatch.setattr(ripgrep, "TIME_S", 1)  # one of the paths leads to the root, with everything below it
    directory = tmp_path / "work"
    directory.mkdir()
    make_obstacles(directory)
    return OpenKit(directory)


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
    kit: OpenKit, tool: type[KitTool], name: str, others: dict[str, Any], path: str
) -> None:
    assert 0 < len(await answer(kit.use(tool(), **{name: path}, **others))) < 10_000


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
async def test_bash_answers_or_refuses(kit: OpenKit, bash: BashTool, path: str) -> None:
    assert await answer(kit.use(bash, command="true", cwd=path))
    assert await answer(kit.use(bash, command=f"test -e '{path}'"))


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
async def test_tools_that_ask_language_servers_answer_or_refuse(kit: OpenKit, path: str) -> None:
    assert await answer(open_source(kit, "symbols", path))


@pytest.mark.parametrize(
    "name", ["256 characters", "4,096 characters", "2,000 levels", "NUL", "through a loop of links"]
)
async def test_a_file_that_cannot_be_is_refused_before_anything_is_made(kit: OpenKit, name: str) -> None:
    before = sorted(kit.directory.rglob("*"))
    with pytest.raises(ToolError):
        await kit.use(WriteTool(), path=PATHS[name], content="text")
    assert sorted(kit.directory.rglob("*")) == before
    assert kit.needs == [], "nobody is asked about it"
