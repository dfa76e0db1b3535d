"""MCP servers that somebody else runs, over streamable http and sse (A1)."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp_harness import McpHarness, free_port, opened, pid_in, running
from other_processes import wait_until

from longboat.backoff import Backoff
from longboat.tools.context import ToolError
from longboat.tools.mcp import Phase
from longboat.tools.mcp.server import RECONNECT

WAYS = {"http": ("http", "/mcp"), "http of before 2026": ("http", "/mcp", "--old"), "sse": ("sse", "/sse")}


@pytest.fixture(params=WAYS)
async def web(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[dict[str, Any], list[str]]]:
    """The entry of a server that runs, and how to start it again."""
    kind, path, *more = WAYS[request.param]
    port = free_port()
    arguments = [kind, str(tmp_path), "--port", str(port), *more]
    url = f"http://127.0.0.1:{port}{path}"
    section = {"w": {"type": kind, "url": url, "headers": {"x-key": "$THE_KEY"}, "timeout_s": 3_600}}
    async with running(port, "mcp_server.py", *arguments):
        yield section, arguments


def at(web: tuple[dict[str, Any], list[str]], tmp_path: Path) -> Any:
    backoff = Backoff(base_s=0.05, ceiling_s=0.5, attempts=50)
    return opened(tmp_path, web[0], environ={"THE_KEY": "sk-123456789"}, backoff=backoff)


async def test_tools_answer_and_get_the_headers(web: tuple[dict[str, Any], list[str]], tmp_path: Path) -> None:
    async with at(web, tmp_path) as harness:
        assert await harness.use("mcp__w__echo", text="over the net") == "over the net"
        assert await harness.use("mcp__w__header", name="x-key") == "sk-123456789"
        assert await harness.use("mcp_resource", uri="memo://today") == "buy rope"
        with pytest.raises(ToolError, match="no such harbour"):
            await harness.use("mcp__w__fail", text="no such harbour")


async def test_a_canceled_call_is_canceled_at_the_server(web: tuple[dict[str, Any], list[str]], tmp_path: Path) -> None:
    """One that waited for the server would wait for as long as the call may take, which is longer than a test may."""
    async with at(web, tmp_path) as harness:
        call = asyncio.create_task(harness.use("mcp__w__hang"))
        await wait_until((tmp_path / "hanging").exists)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await wait_until((tmp_path / "canceled").exists)
        assert await harness.use("mcp__w__echo", text="still here") == "still here"


async def test_tools_that_appear_are_listed(web: tuple[dict[str, Any], list[str]], tmp_path: Path) -> None:
    async with at(web, tmp_path) as harness:
        count = harness.servers.states()[0].tools
        await harness.use("mcp__w__grow", name="later")
        await harness.until(lambda state: state.tools == count + 1)
        assert await harness.use("mcp__w__later") == "grown"


async def test_a_server_that_was_restarted_is_found_again(
    web: tuple[dict[str, Any], list[str]], tmp_path: Path
) -> None:
    _, arguments = web
    port = int(arguments[3])
    async with at(web, tmp_path) as harness:
        await harness.use("mcp__w__echo", text="before")
        os.kill(pid_in(tmp_path), 9)
        async with running(port, "mcp_server.py", *arguments):
            assert await _echoed(harness) == "after"
    assert Phase.FAILED in harness.phases("w")
    assert "sk-123456789" not in repr(harness.states)


async def _echoed(harness: McpHarness) -> str:
    """A call that finds the old connection dead says so; the next one waits for the new."""
    try:
        return await harness.use("mcp__w__echo", text="after")
    except ToolError as error:
        assert "exited during the call" in str(error)  # noqa: PT017
    return await harness.use("mcp__w__echo", text="after")


async def test_a_server_that_is_not_there_says_so(tmp_path: Path) -> None:
    section = {
        "http": {"url": f"http://127.0.0.1:{free_port()}/mcp"},
        "sse": {"type": "sse", "url": f"http://127.0.0.1:{free_port()}/sse"},
    }
    async with opened(tmp_path, section, backoff=replace(RECONNECT, attempts=1)) as harness:
        for state in harness.servers.states():
            assert (state.phase, state.reason) == (
                Phase.FAILED,
                "it cannot be reached: All connection attempts failed",
            )
        with pytest.raises(ToolError, match="The MCP server http cannot be used: it cannot be reached"):
            await harness.servers.prompt("http", "review", {})


async def test_a_wrong_address_and_a_refusal_say_what_to_do_and_no_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING", "httpx2")  # as the server's own logs have it
    caplog.set_level("INFO")
    port = free_port()
    async with running(port, "mcp_login_server.py", str(port), "3600"):
        section = {
            "path": {"url": f"http://127.0.0.1:{port}/wrong?key=sk-123456789"},
            "sse": {"type": "sse", "url": f"http://127.0.0.1:{port}/wrong?key=sk-123456789"},
            "key": {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": "Bearer sk-123456789"}},
        }
        async with opened(tmp_path, section) as harness:
            assert [state.reason for state in harness.servers.states()] == [
                "it answered with HTTP 404: check mcp.path.url",
                "it answered with HTTP 404: check mcp.sse.url",
                "it answered with HTTP 401: add the headers it needs, such as Authorization, to mcp.key.headers",
            ]
            assert "sk-123456789" not in repr(harness.states)
    assert "it answered with HTTP 404" in caplog.text
    assert "sk-123456789" not in caplog.text
