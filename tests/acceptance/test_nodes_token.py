"""Nodes that are given no token have one in common (G2), and the database alone does not tell it (G13)."""

import asyncio

import asyncpg
import httpx2
import pytest
from cluster import SiteFleet, open_fleet

pytestmark = pytest.mark.acceptance


async def all_rows(dsn: str) -> str:
    """Everything that is in the database, as text."""
    client = await asyncpg.connect(dsn)
    try:
        tables = await client.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        rows = [await client.fetch(f"SELECT each::text FROM {table['tablename']} AS each") for table in tables]
        return "\n".join(row["each"] for found in rows for row in found)
    finally:
        await client.close()


async def status_at(fleet: SiteFleet, name: str, token: str) -> int:
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}) as http:
        return (await http.get(f"{fleet[name].discovery().url}/v1/workspaces")).status_code


async def test_g2_nodes_that_are_given_no_token_have_the_one_of_the_store() -> None:
    async with open_fleet("a", "b", serve=False) as fleet:
        for site in fleet.nodes.values():
            del site.environ["LONGBOAT_TOKEN"]
        await asyncio.gather(*(site.serve() for site in fleet.nodes.values()))
        token = fleet["a"].discovery().token
        assert len(token) >= 32
        assert [await status_at(fleet, name, token) for name in ("a", "b")] == [200, 200]
        assert [await status_at(fleet, name, "wrong") for name in ("a", "b")] == [401, 401]
        kept = [(site.data / "token", site.discovery().token) for site in fleet.nodes.values()]
        assert [(file.read_text(), found, file.stat().st_mode & 0o777) for file, found in kept] == [
            (token, token, 0o600)
        ] * 2
        assert token not in await all_rows(fleet.dsn)
        session = await fleet["a"].session(fleet["a"].project())
        ben = await fleet.through("b", session)
        assert await ben.outcome(await ben.submit("ahoy")) == "end_turn"
        await fleet["a"].kill()
        await fleet["a"].serve()
        assert fleet["a"].discovery().token == token


async def test_g2_a_token_that_a_node_is_given_stays_its_own() -> None:
    async with open_fleet("a", "b", serve=False) as fleet:
        await fleet["a"].serve()
        assert fleet["a"].discovery().token == fleet.token
        del fleet["b"].environ["LONGBOAT_TOKEN"]
        process = await fleet["b"].launch()
        assert await process.wait() == 1
        assert "Set LONGBOAT_TOKEN to the same value on all of them" in fleet["b"].log.read_text()
