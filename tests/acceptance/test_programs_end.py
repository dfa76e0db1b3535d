"""Hooks, MCP servers and language servers end with their server and before its lease does (D5, G3).

Each holds a lock in the workspace's directory for as long as it lives; so does a daemon of each, which has left the
process group, the session and the environment.
"""

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from cli_home import GIVE_UP_S
from cluster import locked, open_fleet, try_locks, until_there
from processes import open_site
from sessions import SessionClient

from longboat.testing import CallTool, Say
from longboat.testing.endpoint import ScriptedEndpoint

pytestmark = pytest.mark.acceptance

SUPPORT = Path(__file__).parents[1] / "support"
NAMES = ("hook", "mcp", "lsp")
LOCKS = tuple(f"{name}{which}" for name in NAMES for which in ("", "-daemon"))


def holding(name: str, command: str, *, later: str) -> str:
    """A shell command that becomes `command` and holds two locks; `later`, from the second time on, without locks."""
    daemon = f"setsid env -i {locked(f'{name}-daemon')} < /dev/null > /dev/null 2>&1 &"
    held = shlex.quote(f"touch {name}.held; exec {command}")
    return f"if [ -e {name}.held ]; then exec {later}; fi; {daemon} exec flock -n {name} sh -c {held}"


def programs() -> dict[str, Any]:
    """A project's configuration: one of each. The hook of `bash` never answers the first time."""
    python = shlex.quote(sys.executable)
    mcp, lsp = f"{python} {SUPPORT / 'mcp_old_server.py'} .", f"{python} -S -E {SUPPORT / 'silent_lsp.py'}"
    hook = {"matcher": "bash", "command": holding("hook", "sleep 4321", later="true"), "timeout_s": 600}
    language = {"args": ["-c", holding("lsp", lsp, later=lsp)], "file_types": ["demo"]}
    return {
        "hooks": {"before_tool": [hook]},
        "mcp": {"t": {"type": "stdio", "command": "sh", "args": ["-c", holding("mcp", mcp, later=mcp)]}},
        "lsp": {"demo": {"command": "sh", **language}},
    }


async def hold_all(session: SessionClient, model: ScriptedEndpoint, directory: Path) -> None:
    """Start all three: the run `r1` waits for the hook."""
    (directory / "a.demo").write_text("let knot = 1\n")
    model.add([CallTool("view", {"path": "a.demo"})], [CallTool("bash", {"command": "touch ran"})], name="long")
    await session.submit("[[long]]", "r1", approve="all")
    await until_there(*(directory / f"{name}.held" for name in LOCKS))


async def test_d5_they_end_with_a_server_that_is_killed() -> None:
    async with open_site() as site:
        await site.serve()
        directory = site.project(**programs())
        await hold_all(await site.session(directory), site.model, directory)
        await site.kill()
        for name in LOCKS:
            free = await asyncio.create_subprocess_exec("flock", "-w", str(GIVE_UP_S), name, "true", cwd=directory)
            assert await free.wait() == 0, name
        assert not (directory / "ran").exists()


@pytest.mark.parametrize("what", ["stopped", "cut off"])
async def test_g3_they_are_gone_before_the_next_owner_starts(what: str) -> None:
    """Also what they started; and what the hook had not decided is not done when the server goes on."""
    async with open_fleet("owner", "door", lease_s=10) as fleet:
        owner = fleet["owner"]
        owner.model.add([CallTool("bash", {"command": try_locks(*LOCKS)})], [Say("done")], name="look")
        directory = fleet.project(**programs())
        session = await owner.session(directory)
        ben = await fleet.through("door", session)
        async with ben.watch("ben") as bens:
            await hold_all(session, owner.model, directory)
            await ben.submit("[[look]]", "r2", approve="all", delivery="queue")
            await bens.state("r2", "queued")
            if what == "stopped":
                owner.pause()
            else:
                fleet.links["owner"].database.black_hole()
            assert (await bens.complete("r1")).error
            assert not (await bens.complete("r2")).error
            found = [message for message in await ben.messages() if message["role"] == "tool"][-1]
            assert [name for name in LOCKS if f"{name} is free" not in str(found)] == []
            if what == "stopped":
                assert psutil.Process(owner.server.pid).status() == psutil.STATUS_STOPPED
                owner.resume()
            else:
                fleet.links["owner"].database.heal()
            await session.submit("and now?", "r3")
            await bens.complete("r3")
        assert not (directory / "ran").exists()
        assert await ben.check_books() == {"r1": "interrupted", "r2": "end_turn", "r3": "end_turn"}
