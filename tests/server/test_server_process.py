"""The server process: start, signals, exit codes (B5). Real processes, because signals and exits are."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from server_harness import make_project

from longboat.wire.events import Event, decode_event
from longboat.wire.sse import Decoder
from secrecy import CheckedTransport

_SCRIPT = """
import json, sys
from pathlib import Path
from longboat.config.settings import ServerSection, Settings
from longboat.server.main import serve

base = Path(sys.argv[1])
settings = Settings(data_dir=base / "data", runtime_dir=base / "run", socket=base / "run" / "longboat.sock", token="t",
                    server=ServerSection(drain_s=float(sys.argv[2])))

def ready(found):
    heavy = {"pydantic", "pydantic_ai", "httpx2", "prometheus_client", "opentelemetry"}
    heavy |= {"asyncpg", "longboat.fleet", "longboat.store.postgres"}  # (G14)
    heavy = sorted(heavy & set(sys.modules))
    print(json.dumps({"socket": found.socket, "heavy": heavy}), flush=True)

sys.exit(serve(settings, ready=ready))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A server in a process of its own."""

    process: asyncio.subprocess.Process
    base: Path
    ready: dict

    @property
    def socket(self) -> str:
        return str(self.base / "run" / "longboat.sock")

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=CheckedTransport(httpx2.AsyncHTTPTransport(uds=self.socket)), base_url="http://x"
        )

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """The exit code."""
        self.process.send_signal(number)
        return await self.process.wait()


async def _launch(base: Path, drain_s: float) -> asyncio.subprocess.Process:
    environ = {**os.environ, "XDG_CONFIG_HOME": str(base / "config")}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", _SCRIPT, str(base), str(drain_s), stdout=-1, stderr=-1, env=environ
    )


@asynccontextmanager
async def running(base: Path, *, drain_s: float = 1) -> AsyncIterator[Child]:
    process = await _launch(base, drain_s)
    try:
        line = await process.stdout.readline()
        assert line, (await process.stderr.read()).decode()
        yield Child(process=process, base=base, ready=json.loads(line))
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _join(client: httpx2.AsyncClient, path: Path) -> str:
    make_project(path)
    return f"/v1/workspaces/{(await client.post('/v1/workspaces', json={'path': str(path)})).json()['id']}"


async def test_a_server_that_is_ready_answers_and_has_loaded_nothing_heavy(tmp_path):
    async with running(tmp_path) as child, child.client() as client:
        assert child.ready == {"socket": child.socket, "heavy": []}
        assert (await client.get("/v1/health")).json()["status"] == "ok"
        assert await child.stop() == 0
    assert sorted(item.name for item in (tmp_path / "run").iterdir()) == ["longboat.sock.lock"]


@pytest.mark.parametrize(
    "request_",
    [b"GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", b"?\r\n\r\n"],
)
async def test_odd_requests_do_not_fill_the_log(tmp_path, request_):
    async with running(tmp_path) as child:
        for _ in range(20):
            reader, writer = await asyncio.open_unix_connection(child.socket)
            writer.write(request_)
            assert (await reader.readline()).startswith(b"HTTP/1.1 ")
            writer.close()
        assert await child.stop() == 0
        lines = (await child.process.stderr.read()).splitlines()
    assert [line for line in map(json.loads, lines) if line["level"] != "info"] == []


async def test_sigint_stops_it_like_sigterm(tmp_path):
    async with running(tmp_path) as child:
        assert await child.stop(signal.SIGINT) == 0


async def test_control_stops_it(tmp_path):
    async with running(tmp_path) as child, child.client() as client:
        assert (await client.post("/v1/control", json={"command": "shutdown"})).status_code == 202
        assert await child.process.wait() == 0


async def test_sigterm_ends_open_streams_cleanly_and_cuts_stuck_readers_within_drain_plus_5_s_b5(tmp_path):
    async with running(tmp_path, drain_s=1) as child, child.client() as client:
        workspace = await _join(client, tmp_path / "project")
        # Made large, so that the snapshot alone fills the stuck reader's buffers and the server waits in a send.
        for _ in range(40):
            await asyncio.gather(*(client.post(f"{workspace}/sessions", json={"title": "x" * 500}) for _ in range(50)))
        reader, writer = await asyncio.open_unix_connection(child.socket)
        writer.write(f"GET {workspace}/events?client_id=reading HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head = await reader.readuntil(b"event: snapshot")
        with socket.socket(socket.AF_UNIX) as stuck:
            stuck.setblocking(False)
            stuck.connect(child.socket)
            stuck.send(f"GET {workspace}/events?client_id=stuck HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            shown = {}
            while len(shown.get("clients", ())) < 2:
                shown = (await client.get(workspace)).json()
            rest = asyncio.create_task(reader.read())
            code = await child.stop()
        assert code == 0
        assert (head + await rest).endswith(b"0\r\n\r\n")
        writer.close()
        await writer.wait_closed()
        assert _faults(await child.process.stderr.read()) == []


@asynccontextmanager
async def silent_model(base: Path) -> AsyncIterator[None]:
    """The user's model takes the request and never says a word."""
    over = asyncio.Event()

    async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        provider = {"type": "openai-compatible", "base_url": url, "api_key": "x", "models": [{"id": "m"}]}
        config = {"providers": {"silent": provider}, "models": {"large": "silent/m"}, "titles": False}
        file = base / "config" / "longboat" / "longboat.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(config))
        make_project(base / "p", {})

        try:
            yield
        finally:
            over.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """A session whose first run is active and will not end by itself, and whose second is queued."""

    workspace: str
    session_id: str

    async def submit(self, client: httpx2.AsyncClient, run_id: str) -> httpx2.Response:
        body = {"session_id": self.session_id, "prompt": "x", "run_id": run_id}
        return await client.post(f"{self.workspace}/agent", json=body)


async def _make_busy(client: httpx2.AsyncClient, path: Path) -> Busy:
    workspace = await _join(client, path)
    busy = Busy(workspace=workspace, session_id=(await client.post(f"{workspace}/sessions")).json()["id"])
    for state in ("active", "queued"):
        assert (await busy.submit(client, state)).status_code == 202
        while (await client.get(f"{workspace}/runs/{state}")).json()["state"] != state:
            pass
    return busy


async def _read_events(client: httpx2.AsyncClient, workspace: str, opened: asyncio.Event) -> list[Event]:
    """All events until the stream ends as a stream should."""
    decoder, events = Decoder(), []
    async with client.stream("GET", f"{workspace}/events?client_id=me", timeout=60) as response:
        async for chunk in response.aiter_raw():
            events += [decode_event(frame.data) for frame in decoder.decode(chunk)]
            opened.set()
    return events


async def test_leaving_refuses_prompts_takes_cancels_and_a_second_signal_skips_the_drain_b5(tmp_path):
    async with silent_model(tmp_path), running(tmp_path, drain_s=600) as child, child.client() as client:
        busy = await _make_busy(client, tmp_path / "p")
        opened = asyncio.Event()
        streamed = asyncio.create_task(_read_events(client, busy.workspace, opened))
        long_poll = asyncio.create_task(client.get(f"{busy.workspace}/runs/queued?wait=60", timeout=70))
        await opened.wait()
        child.process.send_signal(signal.SIGTERM)
        while (await client.get("/v1/health")).json()["status"] != "leaving":
            pass
        refused = await busy.submit(client, "late")
        assert (refused.status_code, refused.json()["code"]) == (503, "server_leaving")
        assert (await client.get(f"{busy.workspace}/runs/active")).json()["state"] == "active"
        assert await child.stop() == 0
        ended = [event.payload for event in await streamed if event.type == "run_complete"]
        assert [(done.run_id, done.outcome) for done in ended] == [("active", "interrupted")]
        assert (await long_poll).json()["state"] == "queued"
        assert _faults(await child.process.stderr.read()) == []


async def test_a_cancel_during_the_drain_still_works_and_ends_it_b5(tmp_path):
    async with silent_model(tmp_path), running(tmp_path, drain_s=50) as child, child.client() as client:
        busy = await _make_busy(client, tmp_path / "p")
        child.process.send_signal(signal.SIGTERM)
        while (await client.get("/v1/health")).json()["status"] != "leaving":
            pass
        canceled = await client.post(f"{busy.workspace}/agent/sessions/{busy.session_id}/cancel")
        assert sorted(canceled.json()["canceled"]) == ["active", "queued"]
        assert await child.process.wait() == 0


def _faults(log: bytes) -> list[dict]:
    return [line for line in map(json.loads, log.splitlines()) if line["level"] in ("error", "critical")]


async def test_a_second_server_on_the_same_socket_is_refused_with_how_to_attach(tmp_path):
    async with running(tmp_path) as child:
        second = await _launch(tmp_path, 1)
        _, told = await second.communicate()
        assert second.returncode == 1
        assert told.decode().startswith("longboat: A server is already listening on ")
        assert "Traceback" not in told.decode()
        async with child.client() as client:
            assert (await client.get("/v1/health")).status_code == 200


async def test_a_server_that_was_killed_leaves_nothing_that_stops_the_next_one(tmp_path):
    async with running(tmp_path) as child:
        await child.stop(signal.SIGKILL)
        assert "longboat.sock" in os.listdir(tmp_path / "run")
    async with running(tmp_path) as child, child.client() as client:
        assert (await client.get("/v1/health")).json()["status"] == "ok"
        assert json.loads((tmp_path / "run" / "server.json").read_bytes())["pid"] == child.process.pid


async def test_a_data_directory_in_use_is_refused_and_no_socket_is_left(tmp_path):
    async with running(tmp_path) as child:
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "data").symlink_to(child.base / "data")
        second = await _launch(tmp_path / "other", 1)
        _, told = await second.communicate()
        assert second.returncode == 1
        assert told.decode().startswith("longboat: Another server (pid ")
        assert not (tmp_path / "other" / "run" / "longboat.sock").exists()
