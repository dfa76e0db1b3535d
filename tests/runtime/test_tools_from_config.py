"""Web tools and the sandbox as longboat.json sets them up, used by the model in a turn (A1, A8)."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from scenario import call, open_scenario

from longboat.testing import Say
from longboat.tools.sandbox import landlock, seccomp
from longboat.wire.asks import PermissionAnswer
from longboat.wire.models import Outcome
from parts import how
from secrecy import SECRETS

PAGE = "<html><body><h1>The tide</h1><p>High at <b>noon</b>.</p></body></html>"
HITS = {"web": {"results": [{"title": "Tides", "url": "https://tides.example/", "description": "when they come"}]}}


@asynccontextmanager
async def website() -> AsyncIterator[tuple[str, list[str]]]:
    """A page at /, answers of a search provider at /search; and the requests as they came."""
    heard: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heard.append(head)
        kind, body = ("application/json", json.dumps(HITS)) if "/search" in head else ("text/html", PAGE)
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n".encode())
        writer.write(f"connection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard
    finally:
        server.close()
        await server.wait_closed()


async def test_a_page_of_an_allowed_network_is_fetched_once_somebody_permits_it(tmp_path: Path) -> None:
    """A1, A2: asked with the URL, and the model reads text."""
    async with website() as (url, heard):
        config = {"web": {"allowed_networks": ["127.0.0.0/8"]}}
        steps = [[call("fetch", url=f"{url}/tide")], [Say("At noon.")]]
        async with open_scenario(tmp_path, steps, config=config) as scene:
            await scene.start("when is high tide?", ask=True)
            ask = await scene.asked()
            assert (ask.tool, heard) == ("fetch", []), "nothing goes out before somebody says so"
            assert f"{url}/tide" in ask.title
            await scene.answer(ask, PermissionAnswer.ONCE)
            assert (await scene.running.completed("r1")).text == "At noon."
            (read,) = scene.fine()
            assert "The tide" in read
            assert "High at **noon**." in read
            await scene.check()
        assert len(heard) == 1


@pytest.mark.parametrize("tool", ["fetch", "download"])
async def test_a_private_address_is_refused_unless_the_configuration_allows_it(tmp_path: Path, tool: str) -> None:
    """A1: even where everything is approved."""
    async with website() as (url, heard):
        arguments = {"url": f"{url}/tide"} | ({"path": "tide.html"} if tool == "download" else {})
        async with open_scenario(tmp_path, [[call(tool, **arguments)], [Say("No.")]]) as scene:
            await scene.turn("fetch it")
            (result,) = scene.results()
            assert result.is_error
            assert "private or local address" in result.content
            await scene.check()
        assert heard == []


async def test_a_search_goes_to_the_configured_provider_with_its_key_and_the_key_stays_here(tmp_path: Path) -> None:
    """A1: the tool is there only where one is configured; the harness listens for the key."""
    async with website() as (url, heard):
        config = {"web": {"search": {"kind": "brave", "endpoint": f"{url}/search", "key": "$LB_TEST_KEY"}}}
        async with open_scenario(
            tmp_path, [[call("web_search", query="tides")], [Say("Found.")]], config=config
        ) as scene:
            await scene.turn("look it up")
            (found,) = scene.fine()
            assert "https://tides.example/" in found
            assert "web_search" in {tool.name for tool in scene.model.requests[0].tools}
            await scene.check()
        (asked,) = heard
        assert SECRETS["provider key"] in asked
    (tmp_path / "other").mkdir()
    async with open_scenario(tmp_path / "other", [[Say("No.")]]) as scene:
        await scene.turn("look it up")
        assert "web_search" not in {tool.name for tool in scene.model.requests[0].tools}


# The sandbox


def _box_works() -> bool:
    trial = ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-net", "--unshare-pid", "true"]
    return shutil.which("bwrap") is not None and not subprocess.run(trial, capture_output=True, check=False).returncode


needs_box = pytest.mark.skipif(not _box_works(), reason=f"{how('bwrap')} (or it is not allowed here)")


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A directory outside of /tmp, where the box has a place of its own."""
    with TemporaryDirectory(dir="/var/tmp") as path:
        yield Path(path)


@needs_box
@pytest.mark.parametrize("mode", ["auto", "required"])
async def test_a_boxed_command_writes_to_the_workspace_and_nowhere_else(
    tmp_path: Path, elsewhere: Path, mode: str
) -> None:
    """A8: inside a turn, as the configuration says, with everything approved."""
    outside, beside = elsewhere / "made", tmp_path / "beside"
    steps: list[list[Any]] = [
        [call("bash", command=f"echo in > made; echo temp > {beside}")],
        [call("bash", command=f"echo out > {outside}")],
        [call("bash", command="echo '{}' > longboat.json")],
        [Say("done")],
    ]
    async with open_scenario(tmp_path, steps, config={"sandbox": mode}) as scene:
        before = scene.read("longboat.json")
        assert (await scene.turn("write")).outcome is Outcome.END_TURN
        inside, out, own = scene.results()
        assert (inside.is_error, scene.read("made")) == (False, "in\n")
        assert out.is_error
        assert "Read-only file system" in out.content
        assert "It ran in a bubblewrap sandbox" in out.content
        assert not outside.exists()
        assert not beside.exists(), "/tmp is its own"
        assert own.is_error, "it must not say what it may do itself"
        assert scene.read("longboat.json") == before
        await scene.check()


@needs_box
async def test_a_boxed_command_has_no_network(tmp_path: Path) -> None:
    """A8: not even that of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        reach = f"import socket; socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), 5)"
        steps = [[call("bash", command=f'{sys.executable} -c "{reach}"')], [Say("done")]]
        async with open_scenario(tmp_path, steps, config={"sandbox": "required"}) as scene:
            await scene.turn("connect")
            (result,) = scene.results()
            assert result.is_error
            assert "no network" in result.content
            await scene.check()
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_a_required_sandbox_that_is_not_there_refuses_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A8: nothing is run; `auto` asks, says that there is no box, and runs it."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("git", "bash", "touch"):
        (tools / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr("longboat.tools.sandbox.landlock.version", lambda: 0)
    steps: list[list[Any]] = [[call("bash", command="touch made")], [Say("No.")]]
    for mode in ("required", "auto"):
        place = tmp_path / mode
        place.mkdir()
        async with open_scenario(place, steps, config={"sandbox": mode}) as scene:
            await scene.start("touch it", ask=True)
            if mode == "auto":
                ask = await scene.asked()
                assert "not sandboxed: bubblewrap (`bwrap`) is not installed" in ask.detail
                await scene.answer(ask, PermissionAnswer.ONCE)
            await scene.running.completed("r1")
            (result,) = scene.results()
            if mode == "required":
                assert result.is_error
                assert "bubblewrap (`bwrap`) is not installed" in result.content
                assert "install bubblewrap, or to set the sandbox to `auto` or `off`" in result.content
            assert (scene.path / "made").exists() is (mode == "auto")
            await scene.check()


@pytest.mark.parametrize(
    ("sandbox", "ask", "told"), [("auto", False, 1), ("auto", True, 0), ("off", False, 0), ("required", False, 0)]
)
async def test_a_run_that_asks_nobody_says_at_its_start_that_there_is_no_box(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str, ask: bool, told: int
) -> None:
    """A8: a permission tells it too, but with --yolo there is none; `off` was chosen, `required` refuses."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "git"):  # and no bwrap
        (programs / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr("longboat.tools.sandbox.landlock.version", lambda: 0)
    async with open_scenario(tmp_path, [[Say("done")]], config={"sandbox": sandbox}) as scene:
        await scene.turn("look", ask=ask)
        notices = [event.message for event in scene.watcher.of("agent_event") if event.type == "notice"]
        assert len(notices) == told
        assert all("without a sandbox" in text and "`bwrap`" in text for text in notices)


@pytest.mark.skipif(
    landlock.version() < landlock.CAN_SCOPE or not seccomp.without_sockets(), reason="needs Linux 6.12 with Landlock"
)
@pytest.mark.parametrize("mode", ["auto", "required"])
async def test_where_bubblewrap_is_missing_landlock_is_the_box_and_is_named(
    tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """A8: in the notice of a run that asks nobody, in what the model hears, and in what it can ask for."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "git"):  # and no bwrap
        (programs / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(programs))
    steps: list[list[Any]] = [
        [call("bash", command=f"echo in > made; echo out > {elsewhere}/made")],
        [call("longboat_info")],
        [Say("done")],
    ]
    async with open_scenario(tmp_path, steps, config={"sandbox": mode}) as scene:
        await scene.turn("write")
        ran, info = scene.results()
        walls = "Landlock sandbox: no network and no sockets"
        assert "Permission denied" in ran.content
        assert f"It ran in a {walls}" in ran.content
        assert (scene.read("made"), os.listdir(elsewhere)) == ("in\n", [])
        assert f"Sandbox for bash: {mode}; in a {walls}" in info.content
        (notice,) = [event.message for event in scene.watcher.of("agent_event") if event.type == "notice"]
        assert notice == f"Commands run in the {walls} (bubblewrap (`bwrap`) is not installed)."
        await scene.check()
