"""Every list and the full-text search over 10,000 messages: in PostgreSQL, against the same in SQLite."""

import msgspec

from benchmarks.documents import document
from benchmarks.fleet import Database, postgres
from benchmarks.harness import Row, RunningServer, compare, longboat, milliseconds, scripted_endpoint, timed
from benchmarks.rows.inbox import asks_of, fill
from benchmarks.wires import RUN_COMPLETE

ROUNDS, ASKS = 9, 20
SESSIONS, MESSAGES, RUNS, WORKSPACES = 100, 100, 100, 20
"""Sessions, messages of each, runs that were really made, and workspaces."""
_INSERT = "INSERT INTO permissions (permission_id, workspace_id, session_id, run_id, state, body) VALUES"


def measure() -> list[Row]:
    with postgres() as database, scripted_endpoint() as url:
        dsn = database.new()
        with longboat(f"{url}/v1") as lite, longboat(f"{url}/v1", store=dsn) as other:
            for server in (lite, other):
                _work(server)
            fill(lite)
            _fill(other, database, dsn)
            sessions = [_last_session(server) for server in (lite, other)]
            return [_compare(name, target, (lite, other), sessions) for name, target in LISTS.items()]


LISTS = {
    "sessions": "{workspace}/sessions",
    "messages": "{workspace}/sessions/{session}/messages",
    "runs": "{workspace}/runs",
    "queue": "{workspace}/agent/sessions/{session}/prompts/queued",
    "permissions": "{workspace}/permissions",
    "questions": "{workspace}/questions",
    "workspaces": "/v1/workspaces",
    "nodes": "/v1/nodes",
    "inbox": "/v1/inbox?client_id=bench",
    "statistics": "/v1/stats",
    "search": "/v1/search?q=weigh",
}


def _compare(name: str, target: str, servers: tuple[RunningServer, RunningServer], sessions: list[str]) -> Row:
    lite, other = (
        target.format(workspace=server.workspace, session=session)
        for server, session in zip(servers, sessions, strict=True)
    )
    rounds = [(_read(servers[0], lite), _read(servers[1], other)) for _ in range(ROUNDS + 1)][1:]
    work = f"PostgreSQL: GET {name}, {SESSIONS * MESSAGES:,} messages, floor: SQLite"
    return compare(work, rounds, milliseconds, at_most=2)


def _read(server: RunningServer, target: str) -> float:
    return timed(lambda: [server.wire.ask("GET", target) for _ in range(ASKS)]) / ASKS


def _work(server: RunningServer) -> None:
    """A past: imported sessions, runs, and workspaces."""
    for _ in range(SESSIONS):
        server.wire.ask("POST", f"{server.workspace}/sessions/import", document(MESSAGES))
    with server.subscriber() as events:
        for _ in range(RUNS):
            body = {"session_id": server.new_session(), "prompt": "Say something short."}
            server.wire.ask("POST", f"{server.workspace}/agent", body)
            events.wait_for(RUN_COMPLETE)
    for number in range(1, WORKSPACES):
        server.opened(server.project.with_name(f"work-{number}"))


def _fill(server: RunningServer, database: Database, dsn: str) -> None:
    """The inbox, as the row `inbox` does it in SQLite."""
    workspace_id = server.workspace.rpartition("/")[2]
    rows = ", ".join(
        f"('{ask.id}', '{workspace_id}', '{ask.session_id}', '{ask.run_id}', 'pending',"
        f" '\\x{msgspec.json.encode(ask).hex()}')"
        for ask in asks_of(server.new_session())
    )
    database.ask(dsn, f"{_INSERT} {rows};")


def _last_session(server: RunningServer) -> str:
    """One of those that were imported."""
    items = server.wire.ask("GET", f"{server.workspace}/sessions?limit=500")["items"]
    return str(items[-1]["id"])
