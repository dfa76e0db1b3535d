"""A link that can be cut, with real sockets at both ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from longboat.testing.cutoff import Cutoff, Side, Streams


class Echo:
    """A server that sends every line back and records it. `ended`: a client has said that it sends no more."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.ended = asyncio.Event()
        self.broken = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                self.lines.put_nowait(line)
                writer.write(line)
            self.ended.set()
            writer.write(b"bye\n")
            await writer.drain()
        except ConnectionError:
            self.broken.set()
        finally:
            writer.close()


@asynccontextmanager
async def linked() -> AsyncIterator[tuple[Echo, Cutoff]]:
    echo = Echo()
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, Cutoff(server.sockets[0].getsockname()) as link:
        yield echo, link


@asynccontextmanager
async def client_of(link: Cutoff) -> AsyncIterator[Streams]:
    reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def server_of(link: Cutoff) -> tuple[str, int]:
    assert isinstance(link.target, tuple)
    return link.target


async def say(client: Streams, line: bytes) -> bytes:
    client[1].write(line)
    return await client[0].readline()


async def test_a_whole_link_passes_everything_and_each_end() -> None:
    async with linked() as (echo, link), client_of(link) as client:
        long = b"x" * (1 << 15) + b"\n"
        for line in (b"one\n", long):
            assert await say(client, line) == line
        assert link.connections == 1
        client[1].write_eof()
        assert await client[0].read() == b"bye\n"
        await echo.ended.wait()


async def test_a_link_leads_to_a_unix_socket_and_its_target_may_be_set_later(tmp_path: Path) -> None:
    async with Cutoff() as link:
        async with client_of(link) as client:
            with pytest.raises(ConnectionResetError):
                await say(client, b"nobody is there\n")
        link.target = tmp_path / "socket"
        async with await asyncio.start_unix_server(Echo(), link.target), client_of(link) as client:
            assert await say(client, b"one\n") == b"one\n"


async def test_reset_breaks_connections_at_both_ends_and_refuses_new_ones_until_healed() -> None:
    async with linked() as (echo, link), client_of(link) as client:
        await say(client, b"one\n")
        link.reset()
        with pytest.raises(ConnectionResetError):
            await client[0].read()
        await echo.broken.wait()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", link.port)
        link.heal()
        async with client_of(link) as later:
            assert await say(later, b"two\n") == b"two\n"


async def test_a_black_hole_passes_nothing_and_what_was_sent_arrives_when_it_heals() -> None:
    async with linked() as (echo, link), client_of(link) as client:
        await say(client, b"one\n")
        link.black_hole()
        client[1].write(b"two\n")
        async with client_of(link) as later:
            later[1].write(b"three\n")
            direct = await asyncio.open_connection(*server_of(link))
            assert await say(direct, b"meanwhile\n") == b"meanwhile\n"
            direct[1].close()
            assert echo.lines.qsize() == 2
            link.heal()
            assert await client[0].readline() == b"two\n"
            assert await later[0].readline() == b"three\n"


async def test_a_black_hole_towards_the_client_swallows_the_answers_alone() -> None:
    async with linked() as (echo, link), client_of(link) as client:
        link.black_hole(Side.CLIENT)
        client[1].write(b"one\n")
        assert await echo.lines.get() == b"one\n"
        answer = asyncio.ensure_future(client[0].readline())
        client[1].write(b"two\n")
        assert await echo.lines.get() == b"two\n"
        assert not answer.done()
        link.heal()
        assert await answer == b"one\n"


async def test_what_a_black_hole_holds_up_breaks_with_a_reset() -> None:
    async with linked() as (echo, link), client_of(link) as client:
        await say(client, b"one\n")
        link.black_hole()
        client[1].write(b"two\n")
        async with client_of(link) as later:
            later[1].write(b"three\n")
            link.reset()
            for each in (client, later):
                with pytest.raises(ConnectionResetError):
                    await each[0].read()
        await echo.broken.wait()
        assert echo.lines.qsize() == 1


async def test_a_delayed_link_passes_everything_in_order_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    slept, sleep = list[float](), asyncio.sleep

    async def note_sleep(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    async with linked() as (_, link), client_of(link) as client:
        monkeypatch.setattr(asyncio, "sleep", note_sleep)
        link.delay(0.05)
        assert await say(client, b"one\n") == b"one\n"
        assert slept == [0.05, 0.05], "there and back"
        client[1].write(b"two\n")
        assert await say(client, b"three\n") == b"two\n"
        assert await client[0].readline() == b"three\n"


@pytest.mark.parametrize("towards", list(Side))
async def test_a_half_closed_connection_still_passes_the_other_direction(towards: Side) -> None:
    async with linked() as (echo, link), client_of(link) as client:
        await say(client, b"one\n")
        link.half_close(towards)
        if towards is Side.SERVER:
            await echo.ended.wait()
            assert await client[0].readline() == b"bye\n"
        else:
            assert await client[0].read() == b""
            client[1].write(b"two\n")
            assert [await echo.lines.get() for _ in range(2)] == [b"one\n", b"two\n"]


async def test_a_lost_request_never_arrives_and_a_lost_answer_means_that_the_request_did() -> None:
    async with linked() as (echo, link):
        for lose, arrives in ((link.lose_request, False), (link.lose_answer, True)):
            async with client_of(link) as client, client_of(link) as other:
                lost = lose(b"COMMIT")
                assert await say(other, b"SELECT\n") == b"SELECT\n"
                with pytest.raises(ConnectionResetError):
                    await say(client, b"COMMIT\n")
                await lost.wait()
                assert [await echo.lines.get() for _ in range(1 + arrives)] == [b"SELECT\n", b"COMMIT\n"][: 1 + arrives]
                assert await say(other, b"COMMIT\n") == b"COMMIT\n", "once"
                assert await echo.lines.get() == b"COMMIT\n"
                assert echo.lines.empty()


async def test_the_link_can_be_cut_at_the_very_moment_at_which_an_answer_is_lost() -> None:
    async with linked() as (_, link), client_of(link) as client:
        lost = link.lose_answer(b"COMMIT", then=link.reset)
        with pytest.raises(ConnectionResetError):
            await say(client, b"COMMIT\n")
        assert lost.is_set()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", link.port)


async def test_a_link_that_ends_while_connections_are_held_up_closes_them() -> None:
    async with linked() as (_, link):
        link.black_hole()
        reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
        writer.write(b"one\n")
        await link.__aexit__(None, None, None)
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()
