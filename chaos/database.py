"""The PostgreSQL of a site, which restarts and crashes, and what it knows of who owned which workspace when."""

import asyncio
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import asyncpg

_SUPPORT = Path(__file__).parents[1] / "tests" / "support"
_WATCH_OWNERS = """
CREATE TABLE chaos_owners (workspace_id TEXT, owner TEXT, at DOUBLE PRECISION);
CREATE FUNCTION chaos_note_owner() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO chaos_owners VALUES (NEW.workspace_id, NEW.owner, extract(epoch FROM clock_timestamp()));
    RETURN NULL;
END $$;
CREATE TRIGGER chaos_note_claim AFTER INSERT ON leases FOR EACH ROW EXECUTE FUNCTION chaos_note_owner();
CREATE TRIGGER chaos_note_takeover AFTER UPDATE ON leases FOR EACH ROW WHEN (OLD.epoch != NEW.epoch)
    EXECUTE FUNCTION chaos_note_owner();
"""


class Database:
    def __init__(self, directory: Path) -> None:
        directory.parent.chmod(0o755)  # PostgreSQL may run as another user
        directory.mkdir()
        if str(_SUPPORT) not in sys.path:
            sys.path.append(str(_SUPPORT))
        self._server: Any = import_module("postgres").PostgresServer(directory)
        self.up = asyncio.Event()
        self.outages = 0
        """How often it was stopped or crashed."""
        self.crashes = 0

    @property
    def dsn(self) -> str:
        return str(self._server.dsn())

    async def start(self) -> None:
        await asyncio.to_thread(self._server.start)
        self.up.set()

    async def stop(self, *, crash: bool = False) -> None:
        """In order, or as in a crash, which loses what was committed without waiting for the disk."""
        self.up.clear()
        self.outages += 1
        self.crashes += crash
        await asyncio.to_thread(self._server.stop, signal.SIGQUIT if crash else signal.SIGINT)

    async def close(self) -> None:
        self.up.clear()
        await asyncio.to_thread(self._server.stop, signal.SIGQUIT)

    async def watch_owners(self) -> None:
        """Note each change of owner from now on. The tables have to be there."""
        await self._query(_WATCH_OWNERS)

    async def owners(self) -> dict[str, list[tuple[float, str]]]:
        """By workspace: each claim, when and by which server."""
        found: dict[str, list[tuple[float, str]]] = {}
        for row in await self._query("SELECT workspace_id, owner, at FROM chaos_owners ORDER BY at"):
            found.setdefault(row["workspace_id"], []).append((row["at"], row["owner"]))
        return found

    async def living_leases(self) -> list[str]:
        rows = await self._query(
            "SELECT workspace_id, owner, until FROM leases WHERE owner IS NOT NULL AND until > clock_timestamp()"
        )
        return [str(dict(row)) for row in rows]

    async def _query(self, sql: str) -> list[Any]:
        connection = await asyncpg.connect(self.dsn)
        try:
            return await connection.fetch(sql) if sql.startswith("SELECT") else [await connection.execute(sql)]
        finally:
            await connection.close()
