"""Tools that show many files leave out those that nobody is to view (A2)."""

from pathlib import Path

import pytest

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.files.ls import LsTool
from longboat.tools.search.glob import GlobTool
from longboat.tools.search.grep import GrepTool


@pytest.fixture
def context(tmp_path: Path) -> OpenToolContext:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text("word\n")
    (tmp_path / "open").write_text("word\n")
    return OpenToolContext(tmp_path, hidden=lambda path: path.startswith(f"{tmp_path.resolve()}/secrets"))


@pytest.mark.parametrize("mode", ["content", "files", "count"])
async def test_grep_does_not_show_them(context: OpenToolContext, mode: str) -> None:
    result = await context.use(GrepTool(), pattern="word", mode=mode)
    assert "open" in result.content
    assert "key" not in result.content


async def test_glob_and_ls_do_not_show_them(context: OpenToolContext) -> None:
    for result in (await context.use(GlobTool(), pattern="**"), await context.use(LsTool())):
        assert "open" in result.content
        assert "key" not in result.content
