"""MCP servers that we start (A1, B7): tools, results, cancel, changes, death, and the end of every process."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvloop
from mcp_harness import McpHarness, old, opened, pid_in, stdio
from open_programs import open_programs
from other_processes import is_alive, is_stopped, wait_until

from longboat.backoff import Backoff
from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.mcp import McpArgument, McpPrompt, McpServers, Phase
from longboat.tools.mcp.server import RECONNECT
from longboat.tools.process.programs import Programs


@pytest.fixture
async def programs(tmp_path: Path) -> AsyncIterator[Programs]:
    async with open_programs(tmp_path) as programs:
        yield programs


async def test_tools_are_namespaced_and_answer(tmp_path: Path) -> None:
    async with opened(tmp_path, {"t-1": stdio(tmp_path)}) as harness:
        tools = {tool.spec.name: tool.spec for tool in harness.servers.tools()}
        assert {"mcp__t-1__echo", "mcp__t-1__odd_name_of_a_tool", "mcp_resource"} <= tools.keys()
        echo = tools["mcp__t-1__echo"]
        assert (echo.description, echo.schema["type"]) == ("Say it again.", "object")
        assert echo.schema["required"] == ["text"]
        assert await harness.use("mcp__t-1__echo", text="äöü") == "äöü"
        assert await harness.use("mcp__t-1__odd_name_of_a_tool") == "odd"
        assert harness.servers.instructions() == {"t-1": "Echo before you shout."}
    assert harness.phases("t-1") == [Phase.CONNECTING, Phase.READY, Phase.CLOSED]


async def test_nothing_starts_before_somebody_asks(tmp_path: Path, programs: Programs) -> None:
    harness = McpHarness(tmp_path, {"t": stdio(tmp_path), "off": stdio(tmp_path, enabled=False)}, programs=programs)
    assert [state.phase for state in harness.servers.states()] == [Phase.CLOSED, Phase.CLOSED]
    assert harness.servers.tools() == []
    await harness.servers.aclose()
    assert not (tmp_path / "started").exists()


async def test_a_person_sees_the_call_and_its_arguments_before_it_is_made(tmp_path: Path) -> None:
    async with opened(tmp_path, {"t": stdio(tmp_path)}) as harness:
        await harness.use("mcp__t__echo", text="hello")
        (need,) = harness.context.needs
        assert (need.tool, need.action, need.argument) == ("mcp__t__echo", "call", '{"text":"hello"}')
        assert need.title == "Call echo of the MCP server t"
        assert json.loads(need.detail) == {"text": "hello"}
        harness.context = OpenToolContext(tmp_path, refuse=lambda _: True)
        with pytest.raises(ToolError, match="Not allowed"):
            await harness.use("mcp__t__hang")
        assert not (tmp_path / "hanging").exists()


async def test_results_are_text_and_bounded(tmp_path: Path) -> None:
    async with opened(tmp_path, {"t": stdio(tmp_path)}) as harness:
        assert await harness.use("mcp__t__picture") == (
            "before\n[image, image/png, 8 bytes; cannot be shown as text]\nafter"
        )
        assert await harness.use("mcp__t__structured") == 'two things\n{\n  "things": [\n    1,\n    2\n  ]\n}'
        much = await harness.use("mcp__t__much", count=1_000_000)
        assert len(much) < 31_000
        assert "970,000 characters left out" in much


async def test_what_a_tool_raises_is_an_error_for_the_model(tmp_path: Path) -> None:
    async with opened(tmp_path, {"t": stdio(tmp_path)}) as harness:
        with pytest.raises(ToolError, match="no such harbour"):
            await harness.use("mcp__t__fail", text="no such harbour")
        with pytest.raises(ToolError, match="text"):
            await harness.use("mcp__t__echo", wrong=1)


async def test_a_call_has_its_time_limit(tmp_path: Path) -> None:
    async with opened(tmp_path, {"t": old(tmp_path, timeout_s=3)}) as harness:
        with pytest.raises(ToolError, match=r"did not answer within 3 s \(mcp.t.timeout_s\)"):
            await harness.use("mcp__t__hang")
        await wait_until((tmp_path / "canceled").exists)


async def test_a_canceled_call_is_canceled_at_the_server_at_once(tmp_path: Path) -> None:
    """One that waited for the server would wait for as long as the call may take, which is longer than a test may."""
    async with opened(tmp_path, {"t": stdio(tmp_path, timeout_s=3_600)}) as harness:
        call = asyncio.create_task(harness.use("mcp__t__hang"))
        await wait_until((tmp_path / "hanging").exists)
        await wait_until(lambda: harness.context.outputs)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await wait_until((tmp_path / "canceled").exists)
        assert "".join(harness.context.outputs) == "hanging\n"
        assert await harness.use("mcp__t__echo", text="still here") == "still here"


async def test_a_server_that_does_not_read_holds_up_no_cancel(tmp_path: Path) -> None:
    """opencode #40829: abort waits for what is running."""
    async with opened(tmp_path, {"t": stdio(tmp_path)}) as harness:
        os.kill(pid_in(tmp_path), 19)  # SIGSTOP: it takes nothing from its input any more
        calls = [asyncio.create_task(harness.use("mcp__t__echo", text="x" * 100_000)) for _ in range(10)]
        await wait_until(lambda: len(harness.context.needs) == 10)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        assert is_stopped(pid_in(tmp_path)), "the calls ended before the server read anything"
    assert not is_alive(pid_in(tmp_path))


async def test_tools_that_appear_are_listed(tmp_path: Path) -> None:
    async with opened(tmp_path, {"t": stdio(tmp_path)}) as harness:
        before = len(harness.names())
        assert await harness.use("mcp__t__grow", name="later") == "done"
        await harness.until(lambda state: state.tools == before)  # mcp_resource is ours, later is new
        assert "mcp__t__later" in harness.names()
        assert await harness.use("mcp__t__later") == "grown"


async def test_a_server_of_before_2026_is_spoken_to_in_its_own_way(tmp_path: Path) -> None:
    async with opened(tmp_path, {"t": old(tmp_path)}) as harness:
        assert harness.names() == ["mcp__t__hang", "mcp__t__grow", "mcp__t__garble"]
        assert harness.servers.tools()[0].spec.schema == {"type": "object", "properties": {}}
        await harness.use("mcp__t__grow")
        await harness.until(lambda state: state.tools == 4)
        assert harness.names()[-1] == "mcp__t__grown3"
        call = asyncio.create_task(harness.use("mcp__t__hang"))
        await wait_until((tmp_path / "hanging").exists)
        call.cancel()
        await wait_until((tmp_path / "canceled").exists)
        assert (tmp_path / "canceled").read_text() == (tmp_path / "hanging").read_text()
        with pytest.raises(ToolError, match="does not follow the protocol"):
            await harness.use("mcp__t__garble")
        assert json.loads((tmp_path / "roots").read_text())["roots"][0]["uri"] == tmp_path.as_uri()


async def test_a_server_that_dies_is_started_again_and_the_next_call_waits_for_it(tmp_path: Path) -> None:
    async with opened(tmp_path, {"t": stdio(tmp_path)}) as harness:
        with pytest.raises(ToolError, match="exited during the call, which may have been partly done"):
            await harness.use("mcp__t__die")
        assert "mcp__t__echo" in harness.names()
        assert await harness.use("mcp__t__echo", text="back") == "back"
        failed = await harness.until(lambda state: state.phase is Phase.FAILED)
        assert failed.reason == "it ended; it wrote: my last words"
        assert (tmp_path / "started").read_text() == "started\nstarted\n"
    assert harness.phases("t")[:5] == [
        *(Phase.CONNECTING, Phase.READY, Phase.FAILED, Phase.CONNECTING, Phase.READY),
    ]


async def test_a_server_that_keeps_dying_is_left_alone_until_somebody_asks(tmp_path: Path) -> None:
    program = "import sys; print('no license', file=sys.stderr); open('starts', 'a').write('x'); sys.exit(1)"
    section = {"t": {"command": sys.executable, "args": ["-c", program]}}
    backoff = Backoff(base_s=0.01, ceiling_s=1_000, attempts=3)
    async with opened(tmp_path, section, backoff=backoff) as harness:
        await harness.until(lambda _: harness.phases("t").count(Phase.FAILED) == 3)
        (state,) = harness.servers.states()
        assert state.reason == "it exited before it was ready; it wrote: no license"
        await harness.servers.wait_connected()
        assert (tmp_path / "starts").read_text() == "xxx"
        assert (await harness.servers.begin_login("t")).phase is Phase.FAILED
        await harness.until(lambda _: harness.phases("t").count(Phase.FAILED) == 6)
        assert (tmp_path / "starts").read_text() == "xxxxxx"


async def test_a_server_that_fails_or_hangs_never_blocks_a_prompt(tmp_path: Path, programs: Programs) -> None:
    section = {
        "silent": {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]},
        "missing": {"command": "no-such-program"},
        "unset": {"command": "true", "env": {"KEY": "$NOT_SET_ANYWHERE"}},
        "wrong": {"command": "true", "colour": "blue"},
        "good": stdio(tmp_path),
    }
    harness = McpHarness(tmp_path, section, programs=programs, wait_s=0.2)
    await harness.servers.wait_connected()
    await harness.until(lambda state: state.name == "good" and state.phase is Phase.READY)
    again = asyncio.ensure_future(harness.servers.wait_connected())
    for _ in range(10):
        await asyncio.sleep(0)
    assert again.done(), "only the first turn waits"
    assert await harness.use("mcp__good__echo", text="hi") == "hi"
    states = {state.name: state for state in harness.servers.states()}
    assert states["silent"].phase is Phase.CONNECTING
    assert states["missing"].reason == "mcp.missing.command: the program 'no-such-program' was not found"
    assert "NOT_SET_ANYWHERE, which is not set" in states["unset"].reason
    assert states["wrong"].reason == "mcp.wrong: Object contains unknown field `colour`"
    await harness.servers.aclose()


async def test_prompts_and_resources_are_listed_and_read(tmp_path: Path) -> None:
    async with opened(tmp_path, {"t": stdio(tmp_path)}) as harness:
        assert harness.servers.prompts() == [
            McpPrompt(
                server="t",
                name="review",
                description="Review a file.",
                arguments=(McpArgument(name="path", required=True), McpArgument(name="tone")),
            ),
            McpPrompt(server="t", name="dawdle", description="", arguments=()),
        ]
        assert await harness.servers.list_prompts("t") == tuple(harness.servers.prompts())
        assert await harness.servers.prompt("t", "review", {"path": "a.py"}) == "Review a.py in a kind tone."
        with pytest.raises(ToolError, match="no MCP server 'u'"):
            await harness.servers.prompt("u", "review", {})
        assert [resource.uri for resource in harness.servers.resources()] == ["memo://today", "memo://day/{day}"]
        assert await harness.use("mcp_resource") == (
            "[t] memo://today memo (text/plain): What is on today.\n[t] memo://day/{day} memo_of (text/plain)"
        )
        assert harness.context.needs == []
        assert await harness.use("mcp_resource", uri="memo://today") == "buy rope"
        assert await harness.use("mcp_resource", server="t", uri="memo://day/friday") == "nothing on friday"
        assert [(need.tool, need.action, need.argument) for need in harness.context.needs] == [
            ("mcp_resource", "read", "t memo://today"),
            ("mcp_resource", "read", "t memo://day/friday"),
        ]
        with pytest.raises(ToolError, match="The MCP server t failed"):
            await harness.use("mcp_resource", uri="memo://nowhere/at/all")


async def test_the_child_gets_what_it_is_configured_with_and_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "hush hush")
    section = {"t": stdio(tmp_path, env={"GIVEN": "<$SECRET_OF_OURS>"})}
    async with opened(tmp_path, section, child_environ={"PATH": os.environ["PATH"]}) as harness:
        assert await harness.use("mcp__t__environment", name="GIVEN") == "<hush hush>"
        assert await harness.use("mcp__t__environment", name="SECRET_OF_OURS") == "(not set)"


async def test_a_secret_is_in_no_state(tmp_path: Path) -> None:
    program = "import os, sys; print('bad key', os.environ['API'], file=sys.stderr)"
    section = {"t": {"command": sys.executable, "args": ["-c", program], "env": {"API": "$THE_KEY"}}}
    environ = {"THE_KEY": "sk-123456789"}
    async with opened(tmp_path, section, environ=environ, backoff=replace(RECONNECT, attempts=1)) as harness:
        assert harness.servers.states()[0].reason.endswith("it wrote: bad key $THE_KEY")
        assert "sk-123456789" not in repr(harness.states)


async def test_closing_ends_every_process_and_touches_no_other_workspace(tmp_path: Path) -> None:
    """B7: one workspace's servers are its own."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    async with opened(two, {"t": stdio(two)}) as other:
        async with opened(one, {"t": stdio(one)}) as harness:
            grandchild = int(await harness.use("mcp__t__child"))
            assert is_alive(grandchild)
            assert is_alive(pid_in(one))
        assert not is_alive(grandchild)
        assert not is_alive(pid_in(one))
        assert await other.use("mcp__t__echo", text="untouched") == "untouched"
        with pytest.raises(ToolError, match="There is no MCP server"):
            await harness.servers.prompt("x", "review", {})
        with pytest.raises(ToolError, match="The MCP server t is closed"):
            await harness.servers.prompt("t", "review", {"path": "a"})


async def test_what_a_dead_server_left_running_is_ended(tmp_path: Path) -> None:
    async with opened(tmp_path, {"t": stdio(tmp_path)}) as harness:
        grandchild = int(await harness.use("mcp__t__child"))
        with pytest.raises(ToolError, match="exited during the call"):
            await harness.use("mcp__t__die")
        await harness.use("mcp__t__echo", text="back")
        assert not is_alive(grandchild)


def test_a_server_that_will_not_end_is_killed_on_uvloop_too(tmp_path: Path) -> None:
    """The server runs on uvloop: what it starts must end there as well."""

    async def life() -> None:
        async with opened(tmp_path, {"t": old(tmp_path, "--deaf")}) as harness:
            assert "mcp__t__hang" in harness.names()
            call = asyncio.create_task(harness.use("mcp__t__hang"))
            await wait_until((tmp_path / "hanging").exists)
            await harness.servers.aclose()
            assert not is_alive(pid_in(tmp_path))
            with pytest.raises(ToolError, match="exited during the call"):
                await call

    uvloop.run(life())


async def test_closing_while_it_connects_leaves_nothing_behind(tmp_path: Path, programs: Programs) -> None:
    program = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    harness = McpHarness(
        tmp_path, {"t": {"command": sys.executable, "args": ["-c", program]}}, programs=programs, wait_s=0
    )
    await harness.servers.wait_connected()
    await wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    await harness.servers.aclose()
    assert not is_alive(pid_in(tmp_path))
    await harness.servers.wait_connected()
    assert harness.phases("t") == [Phase.CONNECTING, Phase.CLOSED]


async def test_a_published_server_works(tmp_path: Path) -> None:
    """mcp-server-time from PyPI."""
    section = {"time": {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}}
    async with opened(tmp_path, section) as harness:
        assert harness.names() == ["mcp__time__get_current_time", "mcp__time__convert_time"]
        answer = await harness.use(
            "mcp__time__convert_time", source_timezone="Asia/Tokyo", time="12:00", target_timezone="UTC"
        )
        assert "T03:00" in answer
        with pytest.raises(ToolError, match="Nowhere"):
            await harness.use("mcp__time__get_current_time", timezone="Nowhere/Land")


async def test_a_callback_that_fails_stops_no_server(tmp_path: Path) -> None:
    def broken(_: object) -> None:
        raise ValueError("the hub is gone")

    async with open_programs(tmp_path) as programs:
        around: dict[str, Any] = {"directory": tmp_path, "environ": {}, "child_environ": os.environ}
        servers = McpServers({"t": stdio(tmp_path)}, **around, programs=programs, on_change=broken, wait_s=60)
        await servers.wait_connected()
        assert servers.states()[0].phase is Phase.READY
        await servers.aclose()
