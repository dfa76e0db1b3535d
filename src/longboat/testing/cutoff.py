"""A network link that a test can cut: a TCP proxy on loopback that passes bytes until a test stops it.

    async with Cutoff(("127.0.0.1", 5432)) as link:      # or Cutoff("/run/postgresql/.s.PGSQL.5432")
        … a client of 127.0.0.1:{link.port} …
        link.reset()                       # open connections break, new ones are refused
        link.black_hole()                  # everything stays open and nothing passes
        link.delay(0.2)                    # every piece is late
        link.half_close(Side.SERVER)       # the server sees the end; its answers still pass
        lost = link.lose_answer(b"COMMIT") # the request arrives, its answer does not
        await lost.wait()
        link.heal()

All methods take effect at once. Must not know what the bytes mean.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from longboat.tasks import Tasks, run_together

Target = tuple[str, int] | str | Path
"""A host and port, or the path of a unix socket."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_PIECE = 1 << 16
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Side(Enum):
    CLIENT = "client"
    SERVER = "server"


class _Reset(Exception):
    """Raised to break this connection."""


@dataclass(eq=False, kw_only=True)
class _Trap:
    """What becomes of the next request that holds the text."""

    text: bytes
    answered: bool
    """The server gets the request; its answer is lost."""
    then: Callable[[], None]
    sprung: asyncio.Event = field(default_factory=asyncio.Event)

    def trigger(self) -> NoReturn:
        self.then()
        self.sprung.set()
        raise _Reset


@dataclass(eq=False, kw_only=True)
class _Pair:
    """One connection of a client, and the one to the server that belongs to it."""

    client: Streams
    server: Streams
    cuts: int
    """How often the link had been reset when the client came."""
    ended: set[Side] = field(default_factory=set)
    """The sides that have been sent an end."""
    trap: _Trap | None = None
    """Its request has passed on this connection, and the answer has not come yet."""

    def streams_to(self, side: Side) -> Streams:
        return (self.client[0], self.server[1]) if side is Side.SERVER else (self.server[0], self.client[1])

    def end(self, side: Side) -> None:
        """Send the end of the stream to this side."""
        if side not in self.ended:
            self.ended.add(side)
            self.streams_to(side)[1].write_eof()

    def reset(self) -> None:
        for _, writer in (self.client, self.server):
            _reset(writer)

    def close(self) -> None:
        for _, writer in (self.client, self.server):
            writer.close()


class Cutoff:
    """A link with a port of its own for as long as its `async with` lasts, also while the link is cut."""

    def __init__(self, target: Target | None = None) -> None:
        self.target = target
        """Where new connections go. May be set later, and changed; without it, connections are reset."""
        self.port = 0
        self._held_port: socket.socket | None = None
        """Bound and never listening: nobody else gets the port while new connections are refused."""
        self._listening: socket.socket | None = None
        self._passes = {side: asyncio.Event() for side in Side}
        self._cuts = 0
        self._delay_s = 0.0
        self._trap: _Trap | None = None
        self._pairs: set[_Pair] = set()
        self._tasks = Tasks()

    @property
    def connections(self) -> int:
        """How many connections are open through the link now."""
        return len(self._pairs)

    async def __aenter__(self) -> Self:
        self._held_port = _bound(0)
        self.port = self._held_port.getsockname()[1]
        self.heal()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.reset()
        await self._tasks.aclose()
        if self._held_port is not None:
            self._held_port.close()

    # What happens to the link

    def heal(self) -> None:
        """Pass everything again. What was held up arrives, as TCP would send it again; what was reset stays so."""
        self._delay_s = 0.0
        self._trap = None
        self._pass_all()
        if self._listening is None:
            self._listening = _bound(self.port)
            self._listening.listen()
            asyncio.get_running_loop().add_reader(self._listening, self._accept, self._listening)

    def reset(self) -> None:
        """Break every connection, and refuse new ones."""
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
            self._listening = None
        self._cuts += 1
        self._pass_all()  # what is held up breaks, too
        for pair in self._pairs:
            pair.reset()

    def black_hole(self, towards: Side | None = None) -> None:
        """Keep every connection, accept new ones, and pass nothing; with `towards`, nothing to that side."""
        for side in Side:
            if towards in (None, side):
                self._passes[side].clear()

    def delay(self, seconds: float) -> None:
        """Hold up every piece this long, in both directions. What comes meanwhile is the next piece."""
        self._delay_s = seconds

    def half_close(self, towards: Side) -> None:
        """Send the end of the stream to one side of every open connection. The other direction still passes."""
        for pair in self._pairs:
            pair.end(towards)

    def lose_request(self, text: bytes, then: Callable[[], None] = lambda: None) -> asyncio.Event:
        """Break the connection that next sends this text, before the server gets it; `then` runs at that moment. The
        event is set when it has happened. The text has to come in one piece."""
        return self._set_trap(_Trap(text=text, answered=False, then=then))

    def lose_answer(self, text: bytes, then: Callable[[], None] = lambda: None) -> asyncio.Event:
        """Break the connection that next sends this text when its answer comes: the server gets the request."""
        return self._set_trap(_Trap(text=text, answered=True, then=then))

    def _set_trap(self, trap: _Trap) -> asyncio.Event:
        self._trap = trap
        return trap.sprung

    def _pass_all(self) -> None:
        for passes in self._passes.values():
            passes.set()

    # Connections

    def _accept(self, listening: socket.socket) -> None:
        try:
            accepted, _ = listening.accept()
        except OSError:  # it left before it was accepted
            return
        accepted.setblocking(False)
        task = self._tasks.spawn(self._carry(accepted, self._cuts), name="carry a connection")
        task.add_done_callback(lambda task: accepted.close() if task.cancelled() else None)  # even before it began

    async def _carry(self, accepted: socket.socket, cuts: int) -> None:
        client = await asyncio.open_connection(sock=accepted)
        try:
            await self._let_through(Side.SERVER, cuts)
            server = await self._dial()
        except BaseException as error:
            _reset(client[1])
            if isinstance(error, OSError | _Reset):
                return
            raise
        pair = _Pair(client=client, server=server, cuts=cuts)
        self._pairs.add(pair)
        try:
            await run_together([self._pump(pair, Side.SERVER), self._pump(pair, Side.CLIENT)])
        except BaseException as error:
            pair.reset()
            if not isinstance(error, OSError | _Reset):
                raise
        finally:
            self._pairs.discard(pair)
            pair.close()

    async def _dial(self) -> Streams:
        match self.target:
            case None:
                raise ConnectionRefusedError
            case (host, port):
                return await asyncio.open_connection(host, port)
            case path:
                return await asyncio.open_unix_connection(path)

    async def _pump(self, pair: _Pair, side: Side) -> None:
        reader, writer = pair.streams_to(side)
        while data := await self._read(reader, side, pair.cuts):
            self._check_trap(pair, side, data)
            if side not in pair.ended:
                writer.write(data)
                await writer.drain()
        pair.end(side)

    async def _read(self, reader: asyncio.StreamReader, side: Side, cuts: int) -> bytes:
        """The next piece, once it may pass. An end or a broken connection is held up in the same way."""
        data, broken = b"", None
        try:
            data = await reader.read(_PIECE)
        except OSError as error:
            broken = error
        if self._delay_s:
            await asyncio.sleep(self._delay_s)
        await self._let_through(side, cuts)
        if broken is not None:
            raise broken
        return data

    async def _let_through(self, side: Side, cuts: int) -> None:
        await self._passes[side].wait()
        if self._cuts != cuts:
            raise _Reset

    def _check_trap(self, pair: _Pair, side: Side, data: bytes) -> None:
        if side is Side.CLIENT:
            if pair.trap is not None:
                pair.trap.trigger()
        elif self._trap is not None and self._trap.text in data:
            trap, self._trap = self._trap, None
            if not trap.answered:
                trap.trigger()
            pair.trap = trap


def _bound(port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.setblocking(False)
    made.bind(("127.0.0.1", port))
    return made


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a reset, as a host does that no longer knows the connection."""
    made = writer.get_extra_info("socket")
    if made is not None and made.family == socket.AF_INET and made.fileno() >= 0:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()
