"""SIGTERM under load: streams end in good order, what waits runs after the next start (B4, B5)."""

import asyncio
import signal

import pytest
from processes import EVERY_STORE, Door, Site, open_site
from sessions import SessionClient, Watch, terminal_events

from longboat.testing import Hang, Pause, Say

pytestmark = pytest.mark.acceptance

ACTIVE = 4


async def _load(site: Site) -> list[SessionClient]:
    """Several sessions, each with a run that never ends and one behind it; the first ends when its gate opens."""
    site.model.add([Say("x"), Hang()], name="hang", repeat=True)
    site.model.add([Say("almost "), Pause(site.model.gate("soon")), Say("done")], name="soon")
    directory = site.project()
    sessions = [await site.session(directory) for _ in range(ACTIVE)]
    for n, session in enumerate(sessions):
        await session.submit("[[hang]]" if n else "[[soon]]", f"active-{n}")
        await session.submit(f"prompt {n}", f"queued-{n}")
    await site.model.requests.wait(ACTIVE)
    await site.model.gate("soon").reached()
    return sessions


async def _stick(site: Site, session: SessionClient) -> asyncio.StreamReader:
    """A reader that asks for a long log and takes none of it: more than all buffers between hold."""
    site.model.add([Say("noise" * 800_000)], name="noise")
    noise = await SessionClient.create(session.http, session.workspace)
    await noise.submit("[[noise]]", "noise")
    assert await noise.outcome("noise") == "end_turn"
    reader, writer = await site.raw()
    token = "".join(f"{name}: {value}\r\n" for name, value in site.headers.items())
    target = f"{session.workspace}/events?client_id=stuck&after={noise.start}"
    writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{token}\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    site.clients.push_async_callback(_close, writer)
    return reader


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


@pytest.mark.parametrize("door", [*EVERY_STORE, "door"])
async def test_b5_under_load_it_drains_interrupts_ends_the_streams_and_leaves_the_queue_for_the_next(door: str) -> None:
    async with open_site(door, drain_s=1.5) as site:
        await site.serve()
        sessions = await _load(site)
        stuck = None if site.outlives else await _stick(site, sessions[0])
        async with sessions[0].watch("one") as one, sessions[1].watch("two") as two:
            await _terminate(site)
            site.model.gate("soon").open()
            assert await site.server.wait() == 0
            for watch in (one, two):
                await _check_end(site, watch)
                outcomes = {done.run_id: done.outcome.value for done in terminal_events(watch.events)}
                assert outcomes == {"active-0": "end_turn"} | {f"active-{n}": "interrupted" for n in range(1, ACTIVE)}
            assert one.frames[-20:] == two.frames[-20:]
        assert stuck is None or await _was_cut(stuck)
        await _check_after_restart(site, sessions)


async def _terminate(site: Site) -> None:
    """Ask the server to leave, and wait until it says that it does."""
    site.server.send_signal(signal.SIGTERM)
    at_socket = await site.client(Door.UNIX)
    while (await at_socket.get("/v1/health")).json()["status"] != "leaving":
        pass


async def _check_end(site: Site, watch: Watch) -> None:
    """Streams end as they should; those through a door stay (G9)."""
    if site.outlives:
        for n in range(ACTIVE):
            await watch.complete(f"active-{n}")
        assert not watch.closed
    else:
        await watch.end()
        assert watch.clean, "the stream was cut instead of ended"


async def _was_cut(stuck: asyncio.StreamReader) -> bool:
    """It was stuck until the end: what it can still read does not end as a stream should."""
    try:
        return not (await stuck.read()).endswith(b"0\r\n\r\n")
    except ConnectionError:
        return True


async def _check_after_restart(site: Site, sessions: list[SessionClient]) -> None:
    before = len(site.model.requests)
    await site.serve()
    for n, session in enumerate(sessions):
        back = await site.back_at(session)
        assert await back.outcome(f"queued-{n}") == "end_turn"
        ending = "interrupted" if n else "end_turn"
        assert await back.check_books() == {f"active-{n}": ending, f"queued-{n}": "end_turn"}
    assert len(site.model.requests) == before + ACTIVE
    assert '"level":"error"' not in site.log.read_text()
    assert "Traceback" not in site.log.read_text()


@pytest.mark.parametrize("door", EVERY_STORE)
async def test_b5_a_second_sigterm_skips_the_drain(door: str) -> None:
    async with open_site(door, drain_s=600) as site:
        await site.serve()
        sessions = await _load(site)
        async with sessions[0].watch() as watch:
            await _terminate(site)
            site.server.send_signal(signal.SIGTERM)
            assert await site.server.wait() == 0
            await watch.end()
            assert watch.clean
            assert {done.outcome.value for done in terminal_events(watch.events)} == {"interrupted"}
            assert len(terminal_events(watch.events)) == ACTIVE
