"""Two nodes on one database, without their servers."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from bench import AT, new_session, unit

from longboat.config.settings import ServerSection, Settings
from longboat.fleet.node import Node
from longboat.store.changes import add_workspace
from longboat.store.postgres.store import PostgresStore, open_postgres
from longboat.store.protocol import Unit
from longboat.store.records import WorkspaceRecord
from longboat.wire.asks import Question

QUESTION = Question(
    id="q", session_id="s", run_id="r", tool_call_id="", text="Which?", choices=(), multiple=False, asked_at=AT
)
Pair = tuple[tuple[Node, PostgresStore], tuple[Node, PostgresStore]]


@asynccontextmanager
async def open_node(dsn: str, name: str) -> AsyncIterator[tuple[Node, PostgresStore]]:
    settings = Settings(
        data_dir=Path("/"),
        runtime_dir=Path("/"),
        socket=None,
        token="t",
        node=name,
        cluster_secret="s",
        server=ServerSection(lease_s=60),
    )
    async with open_postgres(dsn, node=name) as store:
        node = Node(settings, store, url=f"http://{name}")
        await node.join(name)
        yield node, store


@asynccontextmanager
async def open_pair(dsn: str) -> AsyncIterator[Pair]:
    """The first one owns a workspace with a session."""
    async with AsyncExitStack() as stack:
        a, b = [await stack.enter_async_context(open_node(dsn, name)) for name in "ab"]
        shared = WorkspaceRecord(workspace_id="w", home="", path="/w", created_at=AT)
        await a[1].submit(Unit(workspace_id="", writes=[add_workspace(shared)]))
        await a[0].acquire("w")
        await a[1].submit(unit(new_session("s")))
        yield a, b
