"""The deadline of a workspace's commands and hooks reaches them whenever they are started (G3)."""

import asyncio
from pathlib import Path

import pytest
from other_processes import wait_until

from longboat.config.settings import Config
from longboat.context.hooks import NOT_CONFIRMED, Hook, HookCall, HookEvent, HookResult, Hooks, ask
from longboat.runtime.workspace.tools import WorkspaceTools
from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.mcp.logins import Logins
from longboat.tools.process.output_files import MEGABYTE, OutputFiles
from longboat.wire.workspace_state import JobState


def workspace_tools(tmp_path: Path) -> WorkspaceTools:
    output_directory = tmp_path / "scratch"
    return WorkspaceTools(
        tmp_path,
        data_dir=tmp_path / "data",
        scratch=output_directory / "w",
        config=Config,
        logins=Logins(tmp_path / "logins"),
        output_files=OutputFiles(output_directory, limit=MEGABYTE, workspace_limit=MEGABYTE),
        extra=(),
        tell=lambda _: None,
    )


async def test_the_last_deadline_counts_for_jobs_from_before_and_after_it(tmp_path: Path) -> None:
    tools = workspace_tools(tmp_path)
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


async def test_an_event_that_a_hook_could_not_decide_in_time_is_denied(tmp_path: Path) -> None:
    """One that runs, and one that would be started later."""
    tools = workspace_tools(tmp_path)
    tools.allow_for(3600)
    row = Hooks(before_tool=(Hook(command="touch runs; sleep 1000"),))
    call = HookCall(event=HookEvent.BEFORE_TOOL, session_id="s", run_id="r", directory=str(tmp_path), tool="bash")
    asking = asyncio.create_task(ask(row, call, environ=tools.environ, start=tools.start_hook))
    await wait_until((tmp_path / "runs").exists)
    (tmp_path / "runs").unlink()
    tools.allow_for(0)
    denied = HookResult(decision="deny", reason=NOT_CONFIRMED)
    assert await asking == denied
    assert await ask(row, call, environ=tools.environ, start=tools.start_hook) == denied
    assert not (tmp_path / "runs").exists()
    await tools.aclose()


async def test_jobs_end_with_their_workspace_whatever_its_servers_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An MCP server that did not leave in time kept the commands running, also past the lease."""
    monkeypatch.setattr("longboat.runtime.workspace.tools.LEAVE_S", 0)
    tools = workspace_tools(tmp_path)
    (bash,) = (await tools.shell()).tools.values()
    await OpenToolContext(tmp_path).use(bash, command="sleep 4321", run_in_background=True)
    (job,) = tools.jobs_shown()
    assert job.state is JobState.RUNNING

    class Stubborn:
        async def aclose(self) -> None:
            await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(tools, "_configured", (b"", Stubborn()))
    await tools.aclose()
    (job,) = tools.jobs_shown()
    assert job.state is not JobState.RUNNING
