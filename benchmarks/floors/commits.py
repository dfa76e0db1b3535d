"""A store reduced to its least: one table, one writer thread, group commit."""

import asyncio
import sqlite3
import threading
from pathlib import Path
from queue import Empty, SimpleQueue


class Commits:
    """`synchronous` FULL survives a power cut; NORMAL, which Longboat's deltas use, survives kill -9."""

    def __init__(self, path: Path, *, synchronous: str = "FULL") -> None:
        self._path = path
        self._synchronous = synchronous
        self._loop = asyncio.get_running_loop()
        self._inbox: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        threading.Thread(target=self._write, daemon=True).start()

    def commit(self, data: bytes) -> "asyncio.Future[None]":
        """Resolves when the data is on disk."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._inbox.put((data, future))
        return future

    def _write(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, data BLOB)")
        while True:
            batch = [self._inbox.get()]
            try:
                while True:
                    batch.append(self._inbox.get_nowait())
            except Empty:
                pass
            connection.execute("BEGIN IMMEDIATE")
            for data, _ in batch:
                connection.execute("INSERT INTO rows (data) VALUES (?)", (data,))
            connection.execute("COMMIT")
            self._loop.call_soon_threadsafe(_settle, [future for _, future in batch])


def _settle(futures: "list[asyncio.Future[None]]") -> None:
    for future in futures:
        if not future.cancelled():
            future.set_result(None)
