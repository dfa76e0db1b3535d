"""The deadline of a workspace's commands reaches them whenever they are started (G3)."""

from pathlib import Path

import pytest

from longboat.config.settings import Config
from longboat.runtime.workspace.tools import WorkspaceTools
from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.mcp.logins import Logins
from longboat.tools.process.output_files import MEGABYTE, OutputFiles


async def test_the_last_deadline_counts_for_jobs_from_before_and_after_it(tmp_path: Path) -> None:
    scratches = tmp_path / "scratch"
    tools = WorkspaceTools(
        tmp_path,
        data_dir=tmp_path / "data",
        scratch=scratches / "w",
        config=Config,
        logins=Logins(tmp_path / "logins"),
        output_files=OutputFiles(scratches, limit=MEGABYTE, workspace_limit=MEGABYTE),
        extra=(),
        tell=lambda _: None,
    )
    context = OpenToolContext(tmp_path)
    tools.allow_for(3600)
    tools.allow_for(0)
    (bash,) = (await tools.shell()).tools.values()
    with pytest.raises(ToolError, match="could not confirm that it still owns the workspace"):
        await context.use(bash, command="touch ran")
    tools.allow_for(3600)
    assert (await context.use(bash, command="echo on")).content.startswith("on\n")
    tools.allow_for(0)
    with pytest.raises(ToolError, match="could not confirm that it still owns the workspace"):
        await context.use(bash, command="touch ran")
    assert not (tmp_path / "ran").exists()
    await tools.aclose()
