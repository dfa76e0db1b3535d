"""Whoever answers at an address may be anybody: what a command takes from it is bounded in time and in size (R3)."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from longboat.cli.bounded_reading import BoundedReading
from longboat.cli.connection import Connection
from longboat.cli.main import hint_for
from longboat.client import calls
from longboat.client.address import Address
from longboat.client.call import Call
from longboat.errors import BadInput, LongboatError, ServerUnreachable
from longboat.wire.models import Health

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@contextmanager
def stranger(answer: Callable[[socket.socket, threading.Event], None]) -> Iterator[Connection]:
    """Somebody who takes one request and answers it as `answer` does, until it hears that the caller has gone."""
    over = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            wire, _ = listener.accept()
            with wire:
                wire.recv(65_536)
                answer(wire, over)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = threading.Thread(target=serve)
        host.start()
        try:
            yield Connection(Address(url=f"http://127.0.0.1:{listener.getsockname()[1]}"))
        finally:
            over.set()
            host.join()


def trickle(start: bytes, drop: bytes) -> Callable[[socket.socket, threading.Event], None]:
    def answer(wire: socket.socket, over: threading.Event) -> None:
        wire.sendall(start)
        while not over.wait(0.02):
            wire.sendall(drop)

    return answer


def flood(start: bytes, wave: bytes) -> Callable[[socket.socket, threading.Event], None]:
    def answer(wire: socket.socket, over: threading.Event) -> None:
        wire.sendall(start)
        while not over.is_set():
            wire.sendall(wave)

    return answer


def silence(_: socket.socket, over: threading.Event) -> None:
    over.wait()


@pytest.mark.parametrize(
    ("start", "drop"), [(HEAD, b" "), (b"HTTP/1.1 200 OK\r\nx-a: ", b"a"), (CHUNKED, b"1\r\n \r\n")]
)
def test_an_answer_that_trickles_is_given_up_in_time(start: bytes, drop: bytes) -> None:
    """A byte now and then is no silence, and held the command for ever."""
    call = Call(method="GET", path="/v1/health", answer=Health, timeout_s=0.3)
    with stranger(trickle(start, drop)) as connection, pytest.raises(LongboatError) as given_up:
        connection.send(call)
    assert given_up.value.code == "endless_answer"
    assert str(connection.address) in given_up.value.message


@pytest.mark.parametrize(
    ("start", "wave"),
    [
        (HEAD, b" " * 65_536),
        (CHUNKED, b"10000\r\n" + b" " * 65_536 + b"\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 99),
    ],
)
def test_an_answer_that_never_ends_is_not_collected(start: bytes, wave: bytes) -> None:
    with stranger(flood(start, wave)) as connection, pytest.raises(LongboatError) as given_up:
        connection.send(calls.health())
    assert given_up.value.code == "endless_answer"


def test_a_host_that_says_nothing_is_no_server_that_answers() -> None:
    call = Call(method="GET", path="/v1/health", answer=Health, timeout_s=0.2)
    with stranger(silence) as connection, pytest.raises(ServerUnreachable):
        connection.send(call)


def test_an_answer_in_pieces_is_put_together() -> None:
    body = b'{"status":"ok","detail":""}'
    pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    with stranger(lambda wire, _: wire.sendall(CHUNKED + pieces)) as connection:
        assert connection.send(calls.health()) == Health(status="ok", detail="")


def test_a_large_answer_may_take_longer_than_a_small_one() -> None:
    """What is long is allowed its time, as long as it comes."""
    reception = BoundedReading("here", timeout_s=5, most=10 << 20, clock=iter([0.0, 4.0, 6.0, 80.0]).__next__)
    reception.took(1 << 20)
    assert reception.left_s() > 0  # at 4 s
    assert reception.left_s() > 0  # at 6 s, with a megabyte of it
    assert reception.left_s() == 0


def test_a_server_that_does_not_know_a_field_is_older_than_the_command() -> None:
    """After an update, the server that still runs is the old one."""
    refused = BadInput("body: Object contains unknown field `plan`; known fields: prompt.")
    assert "longboat stop" in hint_for(refused)
    assert "longboat stop" not in hint_for(BadInput("body: Expected `str`."))
