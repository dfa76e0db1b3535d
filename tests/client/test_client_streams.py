"""Both clients against a server that drops, stalls and refuses as the test says (R3)."""

import asyncio
import gc
import shutil
import socketserver
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast

import httpx2
import msgspec
import pytest

from longboat.client import Client, Event, SyncClient, transport
from longboat.errors import EmptyPrompt, ServerUnreachable, StoreUnavailable, WorkspaceNotFound
from longboat.wire.events import Change, encode_body, encode_unlogged
from longboat.wire.models import (
    Accepted,
    Delivery,
    MessageDelta,
    Outcome,
    Run,
    RunComplete,
    RunState,
    Session,
    Snapshot,
    Workspace,
)

CUT, END, HANG = "cut", "end", "hang"
"""Drop the connection in mid-body; end the body in order; say nothing more."""

Step = bytes | str | tuple[int, bytes]


@dataclass
class Stub:
    """A server that plays `streams` to one event stream after another and `answers` to other requests."""

    socket: Path
    streams: deque[list[Step]] = field(default_factory=deque)
    answers: dict[str, deque[Step]] = field(default_factory=dict)
    seen: list[tuple[str, str, bytes]] = field(default_factory=list)
    """Method and path, Last-Event-ID, body; of each request in order."""
    over: threading.Event = field(default_factory=threading.Event)
    close: Callable[[], None] = lambda: None

    def cursors(self) -> list[str]:
        return [cursor for request, cursor, _ in self.seen if request.endswith("/events")]


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    stub: Stub


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        return "stub"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        stub = cast(_Server, self.server).stub
        path = self.path.partition("?")[0]
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        stub.seen.append((f"{self.command} {path}", self.headers.get("last-event-id", ""), body))
        if path.endswith("/events"):
            self._stream(stub, stub.streams.popleft())
        else:
            self._play(stub.answers[f"{self.command} {path}"].popleft())

    def _play(self, step: Step) -> None:
        if isinstance(step, str):
            self.close_connection = True
            return
        status, content = step if isinstance(step, tuple) else (200, step)
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, stub: Stub, steps: list[Step]) -> None:
        self.close_connection = True
        if isinstance(steps[0], tuple):
            self._play(steps[0])
            return
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for step in steps:
            if isinstance(step, bytes):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(step), step))
            elif step == END:
                self.wfile.write(b"0\r\n\r\n")
            elif step == HANG:
                stub.over.wait(30)


@pytest.fixture
def stub() -> Iterator[Stub]:
    directory = Path(tempfile.mkdtemp(prefix="lb", dir="/tmp"))  # pytest's own paths are too long for a socket
    server = _Server(str(directory / "s"), _Handler)
    server.stub = Stub(directory / "s")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def close() -> None:
        server.shutdown()
        server.server_close()

    server.stub.close = close
    yield server.stub
    server.stub.over.set()
    close()
    thread.join()
    gc.collect()  # while the test's own warning filters hold
    shutil.rmtree(directory)


leaks_in_httpcore2 = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
"""Its sync backend forgets a unix socket that it could not connect."""

Take = Callable[[Stub, int], list[Event]]
Follow = Callable[[Stub], list[Event]]


@pytest.fixture(params=["async", "sync"])
def take(request: pytest.FixtureRequest) -> Take:
    """The first n events of the workspace `w`; gives up after half a second without a server."""

    async def take_async(stub: Stub, count: int) -> list[Event]:
        found: list[Event] = []
        async with Client(socket=stub.socket) as client:
            events = client.events("w", give_up_after_s=0.5)
            while len(found) < count:
                found.append(await anext(events))
            await events.aclose()
        return found

    def take_sync(stub: Stub, count: int) -> list[Event]:
        with SyncClient(socket=stub.socket) as client:
            events = client.events("w", give_up_after_s=0.5)
            found = [next(events) for _ in range(count)]
            events.close()
        return found

    return take_sync if request.param == "sync" else lambda stub, count: asyncio.run(take_async(stub, count))


@pytest.fixture(params=["async", "sync"])
def follow(request: pytest.FixtureRequest) -> Follow:
    """All events of one run."""

    async def follow_async(stub: Stub) -> list[Event]:
        async with Client(socket=stub.socket) as client:
            return [event async for event in client.run("hi", run_id="mine", path="/p")]

    def follow_sync(stub: Stub) -> list[Event]:
        with SyncClient(socket=stub.socket) as client:
            return list(client.run("hi", run_id="mine", path="/p"))

    return follow_sync if request.param == "sync" else lambda stub: asyncio.run(follow_async(stub))


def delta(number: int) -> bytes:
    text = MessageDelta(message_id="m", session_id="s", run_id="mine", part=0, offset=number, text=str(number))
    return f"id: w/1/{number}\n".encode() + encode_body(Change.UPDATED, text)


def complete(number: int) -> bytes:
    payload = RunComplete(run_id="mine", session_id="s", outcome=Outcome.END_TURN, text="done")
    return f"id: w/1/{number}\n".encode() + encode_body(Change.CREATED, payload)


SNAPSHOT = encode_unlogged(Snapshot(cursor="w/1/0", sessions=(), runs=(), messages=()))
ACCEPTED = msgspec.json.encode(Accepted(run_id="mine", seq=1, state=RunState.ACTIVE, position=0))


def texts(events: list[Event]) -> list[str]:
    return [event.payload.text for event in events if event.type == "message_delta"]


def a_run(*, state: RunState) -> Run:
    return Run(run_id="mine", seq=1, session_id="s", state=state, delivery=Delivery.QUEUE, prompt="hi", accepted_at="t")


def prepare_run(stub: Stub, *, submit: list[Step]) -> None:
    workspace = Workspace(id="w", path="/p", created_at="t", ready=True, busy=False)
    session = Session(id="s", workspace_id="w", title="", created_at="t", updated_at="t")
    stub.answers = {
        "POST /v1/workspaces": deque([(201, msgspec.json.encode(workspace))]),
        "POST /v1/workspaces/w/sessions": deque([(201, msgspec.json.encode(session))]),
        "GET /v1/workspaces/w/runs/mine": deque([(404, b'{"code": "run_not_found", "message": "new"}')]),
        "POST /v1/workspaces/w/agent": deque(submit),
    }


def test_r3_a_dropped_stream_is_taken_up_where_it_broke_with_nothing_lost_or_repeated(stub: Stub, take: Take) -> None:
    half = delta(3)[:-9]
    stub.streams += [[SNAPSHOT, delta(1), delta(2) + half, CUT], [delta(3), END], [delta(4), HANG]]
    assert texts(take(stub, 5)) == ["1", "2", "3", "4"]
    assert stub.cursors() == ["", "w/1/2", "w/1/3"]


def test_r3_a_server_that_restarts_is_waited_for(stub: Stub, take: Take) -> None:
    leaving = b'{"code": "server_leaving", "message": "bye"}'
    stub.streams += [[SNAPSHOT, END], [(503, leaving)], [(502, b"<html>")], [delta(1), HANG]]
    assert texts(take(stub, 2)) == ["1"]
    assert stub.cursors() == ["", "w/1/0", "w/1/0", "w/1/0"]


def test_a_refusal_on_reconnect_is_raised_as_what_it_is(stub: Stub, take: Take) -> None:
    stub.streams += [[SNAPSHOT, END], [(404, b'{"code": "workspace_not_found", "message": "gone"}')]]
    with pytest.raises(WorkspaceNotFound, match="gone"):
        take(stub, 2)


@leaks_in_httpcore2
def test_r3_a_server_gone_for_good_is_given_up(stub: Stub, take: Take) -> None:
    stub.streams += [[SNAPSHOT, delta(1), HANG]]

    def leave() -> None:
        _wait_for_stream(stub)
        stub.close()
        stub.socket.unlink()
        stub.over.set()

    timer = threading.Thread(target=leave)
    timer.start()
    with pytest.raises(ServerUnreachable, match=r"Gave up after 0\.5 s"):
        take(stub, 3)
    timer.join()


def _wait_for_stream(stub: Stub) -> None:
    while not stub.cursors():
        threading.Event().wait(0.005)


@leaks_in_httpcore2
def test_a_server_that_was_never_there_is_reported_at_once(stub: Stub, take: Take) -> None:
    stub.socket = stub.socket.with_name("nobody")
    with pytest.raises(ServerUnreachable, match="No answer from the Longboat server at unix socket"):
        take(stub, 1)


def test_a_silent_connection_is_dead_and_replaced(stub: Stub, take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "STREAM_TIMEOUT", httpx2.Timeout(5, read=0.2))
    stub.streams += [[SNAPSHOT, HANG], [delta(1), HANG]]
    assert texts(take(stub, 2)) == ["1"]


def test_r1_the_stream_is_open_before_the_prompt_is_submitted(stub: Stub, follow: Follow) -> None:
    prepare_run(stub, submit=[(202, ACCEPTED)])
    stub.streams += [[SNAPSHOT, delta(1), complete(2), HANG]]
    assert [event.type for event in follow(stub)] == ["message_delta", "run_complete"]
    assert [request for request, _, _ in stub.seen][-2:] == [
        "GET /v1/workspaces/w/events",
        "POST /v1/workspaces/w/agent",
    ]


def test_a_prompt_whose_answer_was_lost_is_sent_again_with_the_same_run_id(stub: Stub, follow: Follow) -> None:
    prepare_run(stub, submit=[CUT, (202, ACCEPTED)])
    stub.streams += [[SNAPSHOT, complete(1), HANG]]
    assert [event.type for event in follow(stub)] == ["run_complete"]
    first, second = [body for request, _, body in stub.seen if request.endswith("/agent")]
    assert first == second
    assert msgspec.json.decode(first)["run_id"] == "mine"


@pytest.mark.parametrize("code", ["server_leaving", "owned_elsewhere", "owner_unreachable", "owner_lost"])
def test_r3_a_prompt_is_sent_again_if_the_next_server_may_take_it(stub: Stub, follow: Follow, code: str) -> None:
    refused = (503, b'{"code": "%s", "message": "again"}' % code.encode())
    prepare_run(stub, submit=[refused, (202, ACCEPTED)])
    for answers in stub.answers.values():
        answers.appendleft(refused)
    stub.streams += [[SNAPSHOT, complete(1), HANG]]
    assert [event.type for event in follow(stub)] == ["run_complete"]
    bodies = [body for request, _, body in stub.seen if request.endswith("/agent")]
    assert len(set(bodies)) == 1
    sessions = [body for request, _, body in stub.seen if request == "POST /v1/workspaces/w/sessions"]
    assert len(sessions) == 2
    assert len(set(sessions)) == 1, "the session has its own id, too"


def test_a_run_id_that_is_known_is_followed_in_its_own_session_and_no_other_is_made(stub: Stub, follow: Follow) -> None:
    known = a_run(state=RunState.ACTIVE)
    prepare_run(stub, submit=[(202, ACCEPTED)])
    stub.answers["GET /v1/workspaces/w/runs/mine"] = deque([(200, msgspec.json.encode(known))])
    stub.streams += [[SNAPSHOT, complete(1), HANG]]
    assert [event.type for event in follow(stub)] == ["run_complete"]
    assert "POST /v1/workspaces/w/sessions" not in [request for request, _, _ in stub.seen]


REFUSED = b'{"code": "empty_prompt", "message": "empty"}'


def test_a_refused_prompt_leaves_no_session_behind(stub: Stub, follow: Follow) -> None:
    prepare_run(stub, submit=[(400, REFUSED)])
    stub.answers["GET /v1/workspaces/w/runs"] = deque([b'{"items": []}'])
    stub.answers["DELETE /v1/workspaces/w/sessions/s"] = deque([(204, b"")])
    stub.streams += [[SNAPSHOT, HANG]]
    with pytest.raises(EmptyPrompt, match="empty"):
        follow(stub)
    assert stub.seen[-1][0] == "DELETE /v1/workspaces/w/sessions/s"


@pytest.fixture(params=["async", "sync"])
def cancel(request: pytest.FixtureRequest) -> Callable[[Stub, float], Run]:
    async def cancel_async(stub: Stub, seconds: float) -> Run:
        async with Client(socket=stub.socket) as client:
            return await client.cancel_run("w", "mine", give_up_after_s=seconds)

    def cancel_sync(stub: Stub, seconds: float) -> Run:
        with SyncClient(socket=stub.socket) as client:
            return client.cancel_run("w", "mine", give_up_after_s=seconds)

    return cancel_sync if request.param == "sync" else lambda stub, seconds: asyncio.run(cancel_async(stub, seconds))


def test_r4_a_cancel_is_asked_again_while_the_store_is_locked_or_the_server_starts_again(
    stub: Stub, cancel: Callable[[Stub, float], Run]
) -> None:
    locked, leaving = (
        b'{"code": "store_unavailable", "message": "locked"}',
        b'{"code": "server_leaving", "message": "b"}',
    )
    canceled = msgspec.json.encode(a_run(state=RunState.FINISHED))
    stub.answers = {"POST /v1/workspaces/w/runs/mine/cancel": deque([(503, locked), CUT, (503, leaving), canceled])}
    assert cancel(stub, 30).state is RunState.FINISHED
    assert len(stub.seen) == 4


def test_r4_a_cancel_that_nobody_waits_for_is_asked_once(stub: Stub, cancel: Callable[[Stub, float], Run]) -> None:
    locked = b'{"code": "store_unavailable", "message": "locked"}'
    stub.answers = {"POST /v1/workspaces/w/runs/mine/cancel": deque([(503, locked)])}
    with pytest.raises(StoreUnavailable, match="locked"):
        cancel(stub, 0)


def test_an_outage_and_its_end_are_told_to_whoever_asked(stub: Stub) -> None:
    told: list[str] = []
    stub.streams += [[SNAPSHOT, END], [delta(1), HANG]]
    with SyncClient(socket=stub.socket, on_outage=lambda lost: told.append(type(lost).__name__)) as client:
        events = client.events("w")
        assert [next(events).type for _ in range(2)] == ["snapshot", "message_delta"]
        events.close()
    assert told == ["ServerUnreachable", "NoneType"]
