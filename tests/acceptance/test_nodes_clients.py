"""Our own clients while servers of a cluster leave, die and come back (R3, R4, G5, G9)."""

import asyncio

import pytest
from cluster import SiteFleet, open_fleet
from processes import ended
from sessions import SessionClient

from longboat.client import Client
from longboat.errors import LongboatError
from longboat.testing import Hang, Say
from longboat.wire.models import Outcome, RunComplete

pytestmark = pytest.mark.acceptance

CANCELED = '"cancel_requested":true'


async def working(fleet: SiteFleet, *failpoint: str) -> SessionClient:
    """A session with an active run at the only node."""
    node = fleet["a"]
    node.model.add([Say("one "), Hang()], [Say("two "), Hang()], name="held")
    await node.serve(*failpoint)
    session = await node.session(fleet.project())
    async with session.watch() as watch:
        await session.submit("[[held]]", "r1")
        await watch.text("one ")
    return session


async def restarted(fleet: SiteFleet, session: SessionClient) -> SessionClient:
    await fleet["a"].died()
    await fleet.expire("a")
    await fleet["a"].serve()
    return await fleet["a"].back_at(session)


async def test_g5_a_cancel_that_a_client_repeats_after_its_server_died_covers_nothing_newer() -> None:
    """The server dies when it has written the cancel and nobody has heard of it."""
    async with open_fleet("a", serve=False) as fleet:
        session = await working(fleet, "--committed", CANCELED)
        workspace_id = session.workspace.rpartition("/")[2]
        async with Client(url=fleet.url("a"), token=fleet.token) as client:
            await client.health()
            asked = asyncio.create_task(client.cancel_session(workspace_id, session.session_id, give_up_after_s=60))
            await fleet["a"].died()
            fleet.links["a"].clients.reset()
            back = await restarted(fleet, session)
            async with back.watch() as watch:
                await back.submit("[[held]]", "r2")
                await watch.text("two ")
            fleet.links["a"].clients.heal()
            assert (await asked).canceled == ("r1",)
            assert (await back.run("r2"))["cancel_requested"] is False
            again = await client.cancel_session(workspace_id, session.session_id)
            assert again.canceled == ("r2",), "a cancel of its own"
        assert await back.outcome("r2") == "canceled"
        assert await back.check_books() == {"r1": "canceled", "r2": "canceled"}


@pytest.mark.parametrize("which", ["run", "session"])
async def test_g5_longboat_cancel_waits_for_the_next_server_if_its_own_dies(which: str) -> None:
    async with open_fleet("a", serve=False) as fleet:
        session = await working(fleet, "--committed", CANCELED)
        node = fleet["a"]
        node.environ |= {"LONGBOAT_URL": fleet.url("a"), "LONGBOAT_TOKEN": fleet.token}
        directory = (await session.http.get(session.workspace)).json()["path"]
        named = ["r1"] if which == "run" else ["--session", session.session_id]
        command = await node.longboat("cancel", *named, "--cwd", directory, cwd=node.path)
        back = await restarted(fleet, session)
        done = await ended(command)
        assert done.code == 0, done.err
        assert "r1 canceled" in done.out
        assert "Trying again" in done.err
        assert await back.check_books() == {"r1": "canceled"}


async def test_g9_a_prompt_waits_for_the_next_server_if_its_own_is_leaving() -> None:
    """The last node refuses prompts while it waits for its turns to end."""
    async with open_fleet("a", serve=False, drain_s=60) as fleet:
        session = await working(fleet)
        node, told = fleet["a"], asyncio.Queue[LongboatError | None]()
        async with Client(url=fleet.url("a"), token=fleet.token, on_outage=told.put_nowait) as client:
            node.server.terminate()
            while (await client.health()).status != "leaving":
                pass
            directory = (await session.http.get(session.workspace)).json()["path"]

            async def prompt() -> list[RunComplete]:
                run = client.run("ahoy", path=directory)
                return [event.payload async for event in run if isinstance(event.payload, RunComplete)]

            prompting = asyncio.create_task(prompt())
            lost = await told.get()
            assert lost is not None
            assert lost.code == "server_leaving"
            node.server.kill()
            await restarted(fleet, session)
            assert [end.outcome for end in await prompting] == [Outcome.END_TURN]
