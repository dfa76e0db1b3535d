"""Clients that wait while their server dies and comes back, and runs that are taken up again (B6, R1, R3)."""

import asyncio
from pathlib import Path

import pytest
from processes import AROUND, Door, Site, ended, open_site
from sessions import SessionClient, check_request

from longboat.client import Client
from longboat.testing import Pause, Say, words
from longboat.wire.models import RunComplete

pytestmark = pytest.mark.acceptance

doors = pytest.mark.parametrize("door", AROUND)


def _twice(site: Site) -> None:
    """An answer that is cut off at the gate "hold" the first time, and whole the second."""
    site.model.add([Say("half "), Pause(site.model.gate("hold"))], words("the whole answer"), name="twice")


@doors
async def test_b6_a_resumed_run_withdraws_its_half_answer_and_ends_once_under_its_own_id(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        _twice(site)
        session = await site.session(site.project(on_restart="resume"))
        async with session.watch() as before:
            await session.submit("[[twice]]", "r1")
            await session.submit("behind", "r2")
            await before.text("half")
            await before.state("r2", "queued")
            await site.kill()
        await site.serve()
        session = await site.back_at(session)
        async with session.watch(after=before.cursor) as after:
            first, second = [await after.complete(run_id) for run_id in ("r1", "r2")]
        assert (first.outcome, first.text, first.error) == ("end_turn", "the whole answer", "")
        assert (second.outcome, second.text) == ("end_turn", "echo: behind")
        assert await session.check_books() == {"r1": "end_turn", "r2": "end_turn"}
        assert check_request(site.model.requests[1].body) == [("user", "[[twice]]")]
        assert await session.transcript() == [
            ("user", "[[twice]]", ""),
            ("assistant", "the whole answer", "end_turn"),
            ("user", "behind", ""),
            ("assistant", "echo: behind", "end_turn"),
        ]


@doors
async def test_b6_a_run_that_takes_the_server_down_each_time_is_resumed_three_times_and_no_more(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        site.model.add([Say("deadly"), Pause(site.model.gate("never"))], name="deadly", repeat=True)
        session = await site.session(site.project(on_restart="resume"))
        await session.submit("[[deadly]]", "r1")
        for crashes in range(1, 5):
            await site.model.requests.wait(crashes)
            await site.kill()
            await site.serve()
        session = await site.back_at(session)
        assert await session.outcome("r1") == "interrupted"
        assert len(site.model.requests) == 4
        assert await session.check_books() == {"r1": "interrupted"}


# Clients that wait


def _sdk(site: Site) -> Client:
    if site.door is Door.TCP:
        found = site.front.discovery()
        return Client(url=found.url, token=found.token)
    return Client(socket=site.socket)


async def _wait_for(client: Client, session: SessionClient, prompt: str, run_id: str) -> RunComplete:
    workspace_id = session.workspace.rpartition("/")[2]
    last = None
    async for event in client.run(prompt, workspace_id=workspace_id, session_id=session.session_id, run_id=run_id):
        last = event
    assert last is not None
    assert isinstance(last.payload, RunComplete)
    return last.payload


@doors
async def test_r3_sdk_clients_that_wait_get_their_terminal_events_through_their_own_reconnect(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        _twice(site)
        session = await site.session(site.project())
        async with session.watch() as watch, _sdk(site) as anna, _sdk(site) as ben:
            active = asyncio.create_task(_wait_for(anna, session, "[[twice]]", "active"))
            await watch.text("half")
            queued = asyncio.create_task(_wait_for(ben, session, "behind", "queued"))
            await watch.state("queued", "queued")
            await site.kill()
            await site.serve()
            first, second = await asyncio.gather(active, queued)
        assert (first.run_id, first.outcome, first.text) == ("active", "interrupted", "half ")
        assert (second.run_id, second.outcome, second.text) == ("queued", "end_turn", "echo: behind")


async def _running(site: Site, directory: Path, prompt: str, *, failpoint: tuple[str, ...] = ()) -> tuple[int, str]:
    """`longboat run` through one death of the server at the failpoint: its exit code and output."""
    await site.serve(*failpoint)
    process = await site.longboat("run", prompt, cwd=directory)
    await site.died()
    await site.serve()
    done = await ended(process)
    return done.code, done.out


ACCEPTED, ACTIVE, COMPLETE = '"state":"accepted"', '"state":"active"', "event: run_complete"


@pytest.mark.parametrize(
    ("door", "failpoint"),
    [
        ("unix", ("--committed", ACCEPTED)),
        ("unix", ("--uncommitted", ACCEPTED)),
        ("unix", ("--uncommitted", ACTIVE)),
        ("unix", ("--committed", COMPLETE)),
        ("door", ("--committed", ACCEPTED)),
        ("door", ("--committed", COMPLETE)),
    ],
)
async def test_r3_longboat_run_sees_its_answer_through_wherever_the_server_dies(
    door: str, failpoint: tuple[str, str]
) -> None:
    async with open_site(door) as site:
        code, out = await _running(site, site.project(), "hello", failpoint=failpoint)
        assert (code, out) == (0, "echo: hello\n")
        assert len(site.model.requests) == 1


@doors
async def test_r3_longboat_run_prints_the_resumed_answer_once_and_exits_0(door: str) -> None:
    async with open_site(door) as site:
        _twice(site)
        directory = site.project(on_restart="resume")
        await site.serve()
        process = await site.longboat("run", "[[twice]]", cwd=directory)
        async with asyncio.timeout(60):
            await site.model.gate("hold").reached()
        await site.kill()
        await site.serve()
        done = await ended(process)
        assert (done.code, done.out) == (0, "the whole answer\n")
