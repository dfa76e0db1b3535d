"""POST prompt → the first byte of its request at the model, against POST prompt → 202 of the same prompts."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from benchmarks.harness import Row, RunningServer, compare, longboat, milliseconds, transposed
from benchmarks.wires import GIVE_UP_S, RUN_COMPLETE, Wire, request

ROUNDS, SAMPLES, WARM_UP = 8, 40, 20
QUIET_S = 0.005
PROMPTS = 10
"""Of one session, as in the row of the 202."""

_STREAM = b'data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
_ANSWER = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(_STREAM)) + _STREAM


def measure() -> list[Row]:
    with _model() as (url, arrivals), longboat(url) as server:
        pairs = _samples(server, arrivals)
        for _ in range(WARM_UP):
            next(pairs)
        rounds = transposed((next(pairs) for _ in range(ROUNDS * SAMPLES)), SAMPLES)
    return [compare("POST prompt → its request at the model, floor: → 202, p50", rounds, milliseconds, at_most=1.8)]


def _samples(server: RunningServer, arrivals: "SimpleQueue[float]") -> Iterator[tuple[float, float]]:
    with server.subscriber() as events, Wire(server.socket) as wire:
        while True:
            body = {"session_id": server.new_session(), "prompt": "How do I sort a list of dictionaries by two keys?"}
            sent = request("POST", f"{server.workspace}/agent", body)
            for _ in range(PROMPTS):
                time.sleep(QUIET_S)
                start = time.perf_counter()
                wire.send(sent)
                wire.answer()
                accepted = time.perf_counter() - start
                arrived = arrivals.get(timeout=GIVE_UP_S) - start
                events.wait_for(RUN_COMPLETE)
                yield accepted, arrived


@contextmanager
def _model() -> Iterator[tuple[str, "SimpleQueue[float]"]]:
    """A model on a bare socket: its address, and when the requests came."""
    arrivals: SimpleQueue[float] = SimpleQueue()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_serve, args=(listening, arrivals), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", arrivals


def _serve(listening: socket.socket, arrivals: "SimpleQueue[float]") -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        threading.Thread(target=_answer_all, args=(connection, arrivals), daemon=True).start()


def _answer_all(connection: socket.socket, arrivals: "SimpleQueue[float]") -> None:
    with connection:
        while data := connection.recv(65536):
            arrived = time.perf_counter()
            head, _, body = data.partition(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            left = int(length.split(b":")[1]) - len(body)
            while left > 0:
                left -= len(connection.recv(65536))
            arrivals.put(arrived)
            connection.sendall(_ANSWER)
