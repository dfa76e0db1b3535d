"""A request may take the owner as long as it takes, through a door too (G2)."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from longboat.backoff import Backoff
from longboat.errors import LongboatError
from longboat.fleet import door as door_module
from longboat.fleet.door import Door
from longboat.fleet.node import Node
from longboat.runtime.app import App
from longboat.store.postgres.nodes import Whereabouts

LEASE_S = 15.0
IMPORT = ("POST", "/v1/workspaces/w/sessions/import")
PROMPT = ("POST", "/v1/workspaces/w/agent")
READ = ("GET", "/v1/workspaces/w/files/find")

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
REFUSAL = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}"


class SlowOwner:
    """Answers at once whether it is there, and everything else only when the test lets it."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = asyncio.Event()
        self.probed = asyncio.Event()
        self.finish = asyncio.Event()
        self.requests = 0
        self.probes = [ANSWER]
        """How it answers whether it is there; the last one again and again."""
        self._server: asyncio.Server | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b" /v1/version " in head:
            answer = self.probes.pop(0) if len(self.probes) > 1 else self.probes[0]
            if answer == ANSWER:
                self.probed.set()
        else:
            self.requests += 1
            self.asked.set()
            await self.finish.wait()
            answer = ANSWER
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def __aenter__(self) -> "SlowOwner":
        self._server = await asyncio.start_server(self.serve, "127.0.0.1")
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.finish.set()
        self.cut_off()

    def cut_off(self) -> None:
        """Accept no more connections. Those that are there stay open."""
        assert self._server is not None
        self._server.close()


@pytest.fixture
async def owner() -> AsyncIterator[SlowOwner]:
    async with SlowOwner() as serving:
        yield serving


@pytest.fixture
def door(owner: SlowOwner) -> Door:
    found = Whereabouts(home="", home_url=None, owner="a", owner_url=owner.url, epoch=1, until=1.0, other_url=None)

    async def find(_workspace_id: str) -> Whereabouts:
        return found

    async def wait_leases_moved(_timeout_s: float) -> None: ...

    node = SimpleNamespace(name="b", url="http://b", secret=b"s", lease_s=LEASE_S, leaving=False, relayed=0)
    node.database_time, node.drop_expired, node.when_peer_gone = lambda: 0.0, lambda: None, lambda _told: None
    node.find, node.wait_leases_moved = find, wait_leases_moved
    limits = SimpleNamespace(max_body_mb=1, max_import_mb=1)
    app = SimpleNamespace(settings=SimpleNamespace(heartbeat_s=20.0, server=limits), is_open=lambda _: False)
    return Door(refuse_own, cast(App, app), cast(Node, node), refuse=refuse)


async def refuse_own(_scope: Any, _receive: Any, send: Any) -> None:
    """The routes of the door itself: whoever reads from the store needs the owner."""
    await tell(send, 503, "owner_unreachable")


async def refuse(error: LongboatError, send: Any) -> None:
    await tell(send, 503, error.code)


async def tell(send: Any, status: int, code: str) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps({"code": code, "message": "…"}).encode()})


@asynccontextmanager
async def asking(door: Door, request: tuple[str, str]) -> AsyncIterator["asyncio.Task[tuple[int, str]]"]:
    """What a client is told: a status, and the code of a refusal."""
    method, path = request

    async def ask() -> tuple[int, str]:
        told: list[Any] = []
        bodies = iter([{"type": "http.request", "body": b"{}"}])

        async def receive() -> Any:
            return next(bodies, None) or await asyncio.get_running_loop().create_future()

        async def send(message: Any) -> None:
            told.append(message)

        scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
        await door({**scope, "headers": []}, receive, send)
        body = json.loads(b"".join(each["body"] for each in told[1:]))
        return told[0]["status"], body.get("code", "")

    task = asyncio.ensure_future(ask())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture
async def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock of the event loop so much further: every timer that began before is over then."""
    loop, passed = asyncio.get_running_loop(), 0.0
    time = loop.time

    def skip(seconds: float) -> None:
        nonlocal passed
        passed += seconds

    monkeypatch.setattr(loop, "time", lambda: time() + passed)
    return skip


@pytest.mark.parametrize("request_", [IMPORT, PROMPT, READ], ids=["import", "prompt", "read"])
async def test_g2_a_request_that_takes_the_owner_an_hour_gets_its_answer_through_a_door(
    owner: SlowOwner, door: Door, request_: tuple[str, str], pass_time: Callable[[float], None]
) -> None:
    """After two minutes, it was called lost, or made again."""
    async with asking(door, request_) as told:
        await owner.asked.wait()
        pass_time(3600)
        probed = asyncio.ensure_future(owner.probed.wait())
        await asyncio.wait((told, probed), return_when=asyncio.FIRST_COMPLETED)
        assert not told.done(), told.result()
        owner.finish.set()
        assert await told == (200, "")
        assert owner.requests == 1


async def test_g5_what_may_not_be_repeated_is_not_given_up_because_its_owner_was_out_of_reach_for_a_moment(
    owner: SlowOwner, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_module, "SLOW", Backoff(base_s=0.0))
    owner.probes = [REFUSAL, ANSWER]
    async with asking(door, IMPORT) as told:
        await owner.probed.wait()
        owner.finish.set()
        assert await told == (200, "")


@pytest.mark.parametrize("request_", [IMPORT, PROMPT], ids=["import", "prompt"])
async def test_g5_an_owner_that_stays_out_of_reach_is_not_waited_for_and_may_have_done_what_it_was_asked(
    owner: SlowOwner, door: Door, request_: tuple[str, str], pass_time: Callable[[float], None]
) -> None:
    """It is still the owner. A prompt was called refused: the door had not got another connection."""
    async with asking(door, request_) as told:
        await owner.asked.wait()
        owner.cut_off()
        pass_time(3600)
        assert await told == (503, "owner_lost")


async def test_g2_a_connection_whose_other_end_is_gone_without_a_word_ends_by_itself(
    owner: SlowOwner, door: Door
) -> None:
    """Nothing else would tell: the owner's machine lost its power and is back, or a firewall forgot the connection."""
    async with asking(door, IMPORT):
        await owner.asked.wait()
        ((connection,),) = [list(peer._connections) for peer in door._relay._peers.values()]
        options = connection._transport.get_extra_info("socket")
        assert options.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert 0 < options.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 60_000
