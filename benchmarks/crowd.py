"""`python -m benchmarks.crowd SOCKET COUNT TARGET`: many subscribers in one process, which read as cheaply as it goes.

TARGET holds `{n}`, the subscriber's number. Says `ready` when all are past their snapshot; then, for each line on
stdin, reads until every one has seen a run end and says when that was."""

import os
import selectors
import socket
import sys
import time

MARK = b"event: run_complete"


def main() -> None:
    path, count, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    sockets = [_subscribe(path, target.format(n=number)) for number in range(count)]
    _wait(sockets, b"event: snapshot")
    print("ready", flush=True)
    for _ in sys.stdin:
        _wait(sockets, MARK)
        print(time.monotonic_ns(), flush=True)


def _subscribe(path: str, target: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


def _wait(sockets: list[socket.socket], mark: bytes) -> None:
    """Until each of them has received the mark."""
    with selectors.DefaultSelector() as selector:
        for connection in sockets:
            selector.register(connection, selectors.EVENT_READ, b"")
        left = len(sockets)
        while left:
            for key, _ in selector.select():
                data = os.read(key.fd, 256 * 1024)
                if not data:
                    raise ConnectionError("a stream ended")
                if mark in data or mark in key.data + data[: len(mark)]:
                    selector.unregister(key.fileobj)
                    left -= 1
                else:
                    selector.modify(key.fileobj, selectors.EVENT_READ, data[-len(mark) :])


if __name__ == "__main__":
    main()
