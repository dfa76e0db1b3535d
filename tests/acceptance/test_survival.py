"""Runs outlive their clients; the server outlives its disk (B2, B3, E2, E5, L15)."""

import asyncio
import json
import os
import re
import resource
import socket
import struct
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from processes import AROUND, Site, open_site
from sessions import SessionClient

from longboat.testing import CallTool, Pause, Say

pytestmark = pytest.mark.acceptance

doors = pytest.mark.parametrize("door", AROUND)


def _held(site: Site) -> None:
    site.model.add([Say("still "), Pause(site.model.gate("hold")), Say("here")], name="held")


# Clients that die


@doors
async def test_b2_the_run_of_a_killed_longboat_run_goes_on_and_whoever_attaches_sees_it_end(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        _held(site)
        directory = site.project()
        client = await site.longboat("run", "--run-id", "orphan", "[[held]]", cwd=directory)
        await site.model.gate("hold").reached()
        client.kill()
        await client.wait()
        session = await site.session(directory)
        async with session.watch() as watch:
            assert [run.run_id for run in watch.events[0].payload.runs] == ["orphan"]
            site.model.gate("hold").open()
            complete = await watch.complete("orphan")
        assert (complete.outcome, complete.text) == ("end_turn", "still here")


@doors
async def test_b2_a_prompt_whose_sender_hangs_up_at_once_is_accepted_whole_or_not_at_all(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        _held(site)
        session = await site.session(site.project())
        async with session.watch() as watch:
            await _send_and_vanish(site, session, '"prompt": "[[held]]", "run_id": "whole"}')
            await site.model.gate("hold").reached()
            await _send_and_vanish(site, session, '"prompt": "cut o', missing=20)
            site.model.gate("hold").open()
            assert (await watch.complete("whole")).text == "still here"
        assert await session.check_books() == {"whole": "end_turn"}


async def _send_and_vanish(site: Site, session: SessionClient, rest: str, *, missing: int = 0) -> None:
    """Post a prompt and reset the connection without reading a byte of the answer."""
    body = f'{{"session_id": "{session.session_id}", {rest}'.encode()
    token = "".join(f"{name}: {value}\r\n" for name, value in site.headers.items())
    head = f"POST {session.workspace}/agent HTTP/1.1\r\nHost: localhost\r\n{token}Content-Length: {len(body) + missing}"
    _, writer = await site.raw()
    writer.write(head.encode() + b"\r\n\r\n" + body)
    await writer.drain()
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


@doors
async def test_b3_a_run_that_nobody_is_attached_to_goes_on_and_its_log_is_whole(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        _held(site)
        session = await site.session(site.project())
        await session.submit("[[held]]", "r1")
        await site.model.gate("hold").reached()
        assert (await session.http.delete("/v1/clients/historian")).status_code == 204
        assert (await session.http.get(session.workspace)).json()["clients"] == []
        site.model.gate("hold").open()
        assert await session.outcome("r1") == "end_turn"
        assert await session.check_books() == {"r1": "end_turn"}


@doors
async def test_e5_a_reader_that_never_reads_slows_nobody_and_loses_nobody_anything(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await site.session(site.project())
        token = "".join(f"{name}: {value}\r\n" for name, value in site.headers.items())
        reader, stuck = await site.raw()
        target = f"{session.workspace}/events?client_id=stuck"
        stuck.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{token}\r\n".encode())
        await reader.readuntil(b"event: snapshot")
        async with session.watch() as watch:
            for n in range(4):
                await session.submit("[[burst:20000:1]]", f"r{n}")
            completes = [await watch.complete(f"r{n}") for n in range(4)]
        assert {len(done.text.split()) for done in completes} == {20_000}
        stuck.transport.abort()
        assert set((await session.check_books()).values()) == {"end_turn"}


# A disk that fails


class _FullDisk:
    """The data directory is a small file system of its own, which the test fills. Gone with the server."""

    def __init__(self, site: Site) -> None:
        self._site = site
        site.data.mkdir(mode=0o700)
        own = [] if os.getuid() == 0 else ["--map-root-user"]
        self.under = ["unshare", "--mount", *own, "sh", "-c", 'mount -t tmpfs -o size=4m tmpfs "$0" && exec "$@"']
        self.under.append(str(site.data))

    @property
    def _filler(self) -> Path:
        return Path(f"/proc/{self._site.server.pid}/root{self._site.data}/filler")

    def fill(self) -> None:
        with suppress(OSError), self._filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def mend(self) -> None:
        self._filler.unlink()


class _FileLimit:
    """No file of the server may grow: every write of the store fails, as on a failing disk."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.under: list[str] = []

    def fill(self) -> None:
        self._limit(512)

    def mend(self) -> None:
        self._limit(resource.RLIM_INFINITY)

    def _limit(self, size: int) -> None:
        resource.prlimit(self._site.server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _may_mount() -> bool:
    own = [] if os.getuid() == 0 else ["--map-root-user"]
    try:
        return subprocess.run(["unshare", "--mount", *own, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


full_disk = pytest.param(
    _FullDisk, marks=pytest.mark.skipif(not _may_mount(), reason="may not mount: run as root, or allow user namespaces")
)


@pytest.mark.parametrize("trouble", [full_disk, _FileLimit])
async def test_e2_l15_a_store_that_cannot_be_written_refuses_prompts_and_the_active_run_ends_once_it_can(
    trouble: Callable[[Site], _FullDisk | _FileLimit],
) -> None:
    async with open_site() as site:
        disk = trouble(site)
        await site.serve(under=disk.under)
        _held(site)
        session = await site.session(site.project())
        async with session.watch() as watch:
            await session.submit("[[held]]", "active")
            await site.model.gate("hold").reached()
            await watch.text("still")
            disk.fill()
            for _ in range(3):
                refused = await session.ask("no room for this", "refused")
                assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
            health = (await session.http.get("/v1/health")).json()
            assert health["status"] == "degraded"
            assert health["detail"]
            assert [run["run_id"] for run in await session.ledger()] == ["active"], "reading must go on"
            site.model.gate("hold").open()
            await site.model.requests[0].ended.wait()
            assert (await session.run("active"))["state"] == "active"
            disk.mend()
            complete = await watch.complete("active")
            assert (complete.outcome, complete.text) == ("end_turn", "still here")
            assert (await session.http.get(f"{session.workspace}/runs/refused")).status_code == 404
            await session.submit("now there is room", "refused")
            assert (await watch.complete("refused")).outcome == "end_turn"
        assert (await session.http.get("/v1/health")).json()["status"] == "ok"
        assert await session.check_books() == {"active": "end_turn", "refused": "end_turn"}
        assert site.server.returncode is None


async def test_e2_killed_while_the_store_fails_the_run_is_settled_by_the_next_start() -> None:
    async with open_site() as site:
        disk = _FileLimit(site)
        await site.serve()
        _held(site)
        session = await site.session(site.project())
        async with session.watch() as watch:
            await session.submit("[[held]]", "active")
            await session.submit("behind", "queued")
            await watch.text("still")
            await watch.state("queued", "queued")
            disk.fill()
            assert (await session.ask("x", "refused")).status_code == 503
            site.model.gate("hold").open()
            await site.model.requests[0].ended.wait()
            await site.kill()
        await site.serve()
        session = await site.back_at(session)
        assert await session.outcome("queued") == "end_turn"
        assert await session.check_books() == {"active": "interrupted", "queued": "end_turn"}


async def test_several_runs_at_once_survive_a_disk_that_fails_and_comes_back() -> None:
    async with open_site() as site:
        disk = _FileLimit(site)
        await site.serve()
        directory = site.project()
        sessions = [await site.session(directory) for _ in range(4)]
        _held(site)
        await sessions[0].submit("[[held]]", "held")
        await site.model.gate("hold").reached()
        for n, session in enumerate(sessions):
            await session.submit(f"[[burst:{3000 + n}:1]]", f"r{n}")
        disk.fill()
        assert (await sessions[1].ask("x", "refused")).status_code == 503
        disk.mend()
        site.model.gate("hold").open()
        async with asyncio.timeout(60):
            for n, session in enumerate(sessions):
                assert await session.outcome(f"r{n}") == "end_turn"
                await session.check_books()


@pytest.mark.parametrize("scope", ["session", "run"])
@pytest.mark.parametrize("trouble", [full_disk, _FileLimit])
async def test_d7_l15_on_a_full_disk_a_cancel_ends_the_command_at_once_and_is_saved_when_there_is_room(
    trouble: Callable[[Site], _FullDisk | _FileLimit], scope: str
) -> None:
    async with open_site() as site:
        disk = trouble(site)
        await site.serve(under=disk.under)
        command = json.dumps({"command": "echo pid=$$=; exec sleep 7776"})
        site.model.add([CallTool("bash", command)], name="busy")
        session = await site.session(site.project())
        async with session.watch() as watch:
            await session.submit("[[busy]]", "active", approve="all")
            await session.submit("behind", "queued")
            await watch.state("queued", "queued")
            shown = await watch.until(lambda event: event.type == "message_delta" and bool(_pid(event.payload.text)))
            process = psutil.Process(_pid(shown.payload.text))
            disk.fill()
            what = "runs/active" if scope == "run" else f"agent/sessions/{session.session_id}"
            refused = await session.http.post(f"{session.workspace}/{what}/cancel")
            assert (refused.status_code, refused.json()["code"]) == (503, "cancel_not_durable")
            await asyncio.to_thread(process.wait, 60)
            assert (await session.run("active"))["state"] == "active", "its end cannot be written yet"
            disk.mend()
            assert (await watch.complete("active")).outcome == "canceled"
            behind = "canceled" if scope == "session" else "end_turn"
            assert (await watch.complete("queued")).outcome == behind
        assert await session.check_books() == {"active": "canceled", "queued": behind}
        log = site.log.read_text()
        assert log.count("The store cannot be written") == 1
        assert log.count("The store can be written again") == 1


def _pid(shown: str) -> int:
    """What the command has printed of itself; 0 if this is not it."""
    found = re.search(r"pid=(\d+)=", shown)
    return int(found[1]) if found else 0
