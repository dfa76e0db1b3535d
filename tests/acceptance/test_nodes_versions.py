"""Nodes of two builds on one PostgreSQL (G11): real processes of this build and of the next one."""

import asyncio
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from builds import NEWEST, NEXT, next_build
from cli_home import GIVE_UP_S
from cluster import SiteFleet, open_fleet
from load import open_load
from processes import ended
from sessions import SessionClient

from longboat import __version__
from longboat.client import Client
from longboat.testing import Gate, Pause, Say

pytestmark = pytest.mark.acceptance

THIS: dict[str, str] = {}
"""The environment of this build."""
RECONNECTING = {"Connection lost. Reconnecting…", "Reconnected."}


async def restart(fleet: SiteFleet, name: str, build: dict[str, str]) -> None:
    """Replace a node in order, by one of this build."""
    fleet[name].server.terminate()
    assert await fleet[name].server.wait() == 0
    await fleet[name].serve(environ=build)


async def versions(fleet: SiteFleet, door: str) -> dict[str, str]:
    """What this node says of all."""
    async with Client(url=fleet.url(door), token=fleet.token) as client:
        return {node.name: node.version for node in (await client.nodes()).items}


@asynccontextmanager
async def admin_of(fleet: SiteFleet) -> AsyncIterator[Any]:
    client = await asyncpg.connect(fleet.dsn)
    try:
        yield client
    finally:
        await client.close()


async def until_found(admin: Any, *rows: str) -> None:
    """Until the database has each of these. No event tells."""
    async with asyncio.timeout(GIVE_UP_S):
        for wanted in rows:
            while not await admin.fetchval(f"SELECT EXISTS (SELECT FROM {wanted})"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)


def waits_for(event: str) -> str:
    """A connection to this database that waits so."""
    return f"pg_stat_activity WHERE datname = current_database() AND wait_event = '{event}'"


async def schema_of(admin: Any) -> tuple[int, bool]:
    """The newest migration, and whether the next build's column is there."""
    column = "SELECT FROM information_schema.columns WHERE table_name = 'runs' AND column_name = 'later'"
    row = await admin.fetchrow(f"SELECT max(number) AS newest, EXISTS ({column}) AS changed FROM longboat_schema")
    return row["newest"], row["changed"]


async def is_ready(process: Process) -> bool:
    assert process.stdout is not None
    return f"Longboat {NEXT} is ready".encode() in await process.stdout.readline()


async def check_run(session: SessionClient, run_id: str) -> None:
    await session.submit("ahoy", run_id)
    assert await session.outcome(run_id) == "end_turn"


# Upgrades


async def test_g11_a_rolling_upgrade_under_load_loses_no_run_and_no_event(tmp_path: Path) -> None:
    """The first node of the next build migrates. Then one of this build is restarted, before it is upgraded, too."""
    new = next_build(tmp_path)
    running = dict.fromkeys(("a", "b", "c"), __version__)
    async with open_fleet(*running, drain_s=0.2) as fleet, open_load(fleet, home="b") as loads:
        for name, build in (("a", new), ("b", THIS), ("c", new), ("b", new)):
            await restart(fleet, name, build)
            running[name] = NEXT if build else __version__
            assert [await versions(fleet, door) for door in fleet.nodes] == [running] * 3
            for load in loads:
                await load.go_on()


async def test_g11_longboat_run_says_at_most_that_it_reconnects_while_every_node_is_upgraded(tmp_path: Path) -> None:
    """Its run goes on at the next node each time. A third command sees both versions."""
    new = next_build(tmp_path)
    async with open_fleet("a", "b", drain_s=0.2) as fleet:
        a, b, gate = fleet["a"], fleet["b"], Gate("long")
        a.model.add([Say("one "), Pause(gate), Say("two")], name="long", repeat=True)
        directory = fleet.project(on_restart="resume")
        environ = {"LONGBOAT_URL": fleet.url("b"), "LONGBOAT_TOKEN": fleet.token}
        running = await b.longboat("run", "[[long]]", "--cwd", str(directory), cwd=b.path, environ=environ)
        await gate.reached()
        for each in "ab":
            await restart(fleet, each, new)
            listed = await ended(await b.longboat("nodes", cwd=b.path, environ=environ))
            assert (NEXT in listed.out, __version__ in listed.out) == (True, each == "a"), listed.out
        gate.open()
        done = await ended(running)
        assert (done.code, done.out.endswith("two\n")) == (0, True), done
        assert set(done.err.splitlines()) <= RECONNECTING


# Migrations


async def test_g11_a_node_that_is_killed_in_its_migration_leaves_the_schema_as_it_was(tmp_path: Path) -> None:
    """The migration has changed all tables and takes long. What other nodes do meanwhile waits for it, and is done as
    soon as PostgreSQL has noticed; the next start completes the migration."""
    new = next_build(tmp_path, then="SELECT pg_sleep(1000) FROM slow;")
    async with open_fleet("a", "b", serve=False) as fleet, admin_of(fleet) as admin:
        await fleet["a"].serve()
        session = await fleet["a"].session(fleet.project())
        await admin.execute("CREATE TABLE slow AS SELECT 1")
        process = await fleet["b"].launch(environ=new)
        await until_found(admin, waits_for("PgSleep"))
        waiting = asyncio.create_task(check_run(session, "r1"))
        await until_found(admin, waits_for("relation"))
        process.kill()
        await waiting
        assert await schema_of(admin) == (NEWEST, False)
        await admin.execute("DELETE FROM slow")
        await fleet["b"].serve(environ=new)
        assert await schema_of(admin) == (NEWEST + 1, True)
        await check_run(await fleet.through("b", session), "r2")
        assert await session.check_books() == {"r1": "end_turn", "r2": "end_turn"}


async def test_g11_of_two_new_nodes_that_start_at_once_one_migrates_while_a_run_goes_on(tmp_path: Path) -> None:
    """A backup is reading a table that the migration changes: the first waits for it, the second for the first."""
    new = next_build(tmp_path)
    async with open_fleet("a", "b", "c", serve=False) as fleet, admin_of(fleet) as backup, admin_of(fleet) as admin:
        await fleet["a"].serve()
        gate = fleet["a"].model.gate("held")
        fleet["a"].model.add([Say("one "), Pause(gate), Say("two")], name="held")
        session = await fleet["a"].session(fleet.project())
        async with session.watch() as watch, backup.transaction():
            await session.submit("[[held]]", "r1")
            await watch.text("one ")
            await backup.execute("LOCK TABLE runs IN ACCESS SHARE MODE")
            started = [await fleet[name].launch(environ=new) for name in "bc"]
            await until_found(admin, waits_for("relation"), waits_for("advisory"))
            assert (await session.ask("and now?", "r2", delivery="queue")).status_code == 202
            assert await schema_of(admin) == (NEWEST, False)
        assert [await is_ready(process) for process in started] == [True, True]
        assert await schema_of(admin) == (NEWEST + 1, True)
        assert await versions(fleet, "a") == {"a": __version__, "b": NEXT, "c": NEXT}
        gate.open()
        assert await session.outcome("r2") == "end_turn"
        assert ("assistant", "one two", "end_turn") in await session.transcript()
        assert await session.check_books() == {"r1": "end_turn", "r2": "end_turn"}


# The floor


async def test_g11_a_migration_that_raises_the_floor_waits_for_the_end_of_older_nodes_and_refuses_them_then(
    tmp_path: Path,
) -> None:
    new = next_build(tmp_path, floor=NEWEST + 1)
    async with open_fleet("a", "b", serve=False) as fleet, admin_of(fleet) as admin:
        a, b = fleet["a"], fleet["b"]
        await a.serve()
        session = await a.session(fleet.project())
        refused = await b.launch(environ=new)
        assert await refused.wait() == 1
        assert f"can no longer use it: a ({__version__}). Stop them first" in b.log.read_text()
        assert await schema_of(admin) == (NEWEST, False)
        await check_run(session, "r1")
        a.server.terminate()
        assert await a.server.wait() == 0
        await b.serve(environ=new)
        refused = await a.launch()
        assert await refused.wait() == 1
        assert f"(schema {NEWEST}) can no longer use it. Upgrade Longboat" in a.log.read_text()
        session = await fleet.through("b", session)
        await check_run(session, "r2")
        assert await session.check_books() == {"r1": "end_turn", "r2": "end_turn"}


async def test_g11_a_node_that_was_paused_while_the_floor_was_raised_above_it_does_nothing_more(tmp_path: Path) -> None:
    """It counts as gone, so the migration does not wait for it."""
    new = next_build(tmp_path, floor=NEWEST + 1)
    async with open_fleet("a", "b", serve=False, lease_s=3) as fleet, admin_of(fleet) as admin:
        a, b = fleet["a"], fleet["b"]
        await a.serve()
        session = await a.session(fleet.project())
        await check_run(session, "r1")
        a.pause()
        await until_found(admin, "nodes WHERE until <= clock_timestamp()")
        await b.serve(environ=new)
        a.resume()
        while (answer := (await session.ask("and now?", "r2")).json()).get("code") != "store_lost":  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # until it tries to renew, it hands on
        assert "this version is too old for it: upgrade" in answer["message"]
        ben = await fleet.through("b", session)
        await check_run(ben, "r3")
        assert set((await ben.check_books()).values()) == {"end_turn"}, "all that was accepted"
