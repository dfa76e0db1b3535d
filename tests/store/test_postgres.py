"""The store in PostgreSQL, where it differs from SQLite: its connections, what it refuses, what it survives.

What both promise is in test_store.py.
"""

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest
from bench import (
    Bench,
    WriterGate,
    accepted,
    begins_transaction,
    entry,
    new_session,
    open_bench,
    record,
    said,
    unit,
)
from postgres import PostgresServer, database_of, new_database, shared_server

from longboat.errors import DataDirError, StoreLost, StoreUnavailable
from longboat.store.address import describe_dsn
from longboat.store.changes import insert_run
from longboat.store.postgres import connections, locking, schema, store, writer
from longboat.store.postgres.calls import MAX_CALLS
from longboat.store.postgres.nodes import Nodes
from longboat.store.postgres.readers import READERS, RESERVED
from longboat.store.postgres.schema import migrations
from longboat.store.postgres.search import mark_matches, match_expression, word_vector
from longboat.store.postgres.seqs import SEQS
from longboat.store.postgres.statements import Statement, compile_query, load_statements
from longboat.store.postgres.store import PostgresStore, open_postgres
from longboat.store.protocol import UniqueViolated, Unit, Write, WriteMissed
from longboat.store.queries import Reader
from longboat.store.search_text import parse_search
from longboat.store.sqlite.queries import load_queries
from longboat.wire.models import RunState
from longboat.wire.search import SearchPage


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_bench(tmp_path, "postgres") as opened:
        yield opened


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """One that a test may stop."""
    server = PostgresServer(Path(tempfile.mkdtemp(prefix="lb-pg-", dir="/tmp")), fsync=True)
    server.start()
    yield server
    server.remove()


# Queries


def test_both_dialects_have_the_same_queries() -> None:
    assert set(load_statements()) - set(load_queries()) == {"commit_count", "event_append_one", "seqs_reserve"}
    assert set(load_queries()) - set(load_statements()) == {"last_seq"}


async def test_every_query_is_understood_and_returns_the_columns_of_sqlite(bench: Bench) -> None:
    writer = connection_of(bench)
    for name, statement in load_statements().items():
        prepared = await writer.prepare(statement.sql)
        numeric = [column.name for column in prepared.get_attributes() if column.type.name == "numeric"]
        assert numeric == [], f"{name} returns Decimal"


def test_parameters_are_numbered_and_casts_are_left_alone() -> None:
    compiled = compile_query("SELECT :a::text, :b FROM t WHERE x = :a AND y = 'a::b';")
    assert compiled == Statement("SELECT $1::text, $2 FROM t WHERE x = $1 AND y = 'a::b'", ("a", "b"), False)


# Units


async def test_a_commit_that_fails_itself_fails_all_its_units(bench: Bench) -> None:
    """L15: a constraint that is checked only at COMMIT."""
    writer = connection_of(bench)
    await writer.execute(
        "CREATE TABLE promise (kept TEXT REFERENCES sessions (session_id) DEFERRABLE INITIALLY DEFERRED);"
        "CREATE FUNCTION break_it() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO promise VALUES ('never'); RETURN NULL; END $$;"
        "CREATE TRIGGER break_it AFTER INSERT ON sessions FOR EACH ROW WHEN (NEW.title = 'poison')"
        " EXECUTE FUNCTION break_it();"
    )
    gate = WriterGate(bench.store)
    futures = [bench.store.submit(said("first"))]
    await gate.reached()
    futures += [bench.store.submit(said(name)) for name in ("a", "poison", "b")]
    gate.open()
    outcomes = await asyncio.gather(*futures, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), *[StoreUnavailable] * 3]
    await bench.store.submit(said("after"))
    assert await bench.titles() == ["s", "first", "after"]
    assert bench.numbers == [1, 2], "the failed units used up no number"
    assert bench.store.problem is None


async def test_only_deltas_do_not_wait_for_the_disk(bench: Bench) -> None:
    gate = WriterGate(bench.store)
    gate.open()
    for durable in (False, True):
        await bench.store.submit(unit(entries=[entry("x")], durable=durable))
    begun = [statement for statement in gate.statements if begins_transaction(statement)]
    assert ["'synchronous_commit', 'off'" in statement for statement in begun] == [True, False]
    assert not any(statement.startswith("BEGIN") for statement in begun), "one message is enough"


async def test_writes_of_a_unit_are_made_in_their_order(bench: Bench) -> None:
    """Also those that are sent in one statement."""
    renames = [
        Write("session_title", {"session_id": "s", "title": title, "folded_title": "", "updated_at": ""}, rows=1)
        for title in map(str, range(50))
    ]
    await bench.store.submit(unit(new_session("t"), *renames, Write("session_delete", {"session_id": "t"}, rows=1)))
    assert await bench.titles() == ["49"]


async def test_a_unit_with_very_many_writes_is_all_or_nothing(bench: Bench) -> None:
    many = [new_session(f"t{number}") for number in range(MAX_CALLS + 1)]
    with pytest.raises(UniqueViolated, match="sessions"):
        await bench.store.submit(unit(*many, many[0], entries=[entry("x")]))
    assert await bench.titles() == ["s"]
    await bench.store.submit(unit(*many, entries=[entry("x")]))
    assert bench.numbers == [1]
    assert (await bench.rows("check_counts"))[0]["sessions"] == MAX_CALLS + 2


async def test_a_broken_constraint_is_a_defect_and_not_the_databases_fault(bench: Bench) -> None:
    lost = dict(insert_run(record("r", 1, RunState.ACCEPTED), "w").params) | {"session_id": "nobody"}
    with pytest.raises(WriteMissed, match="foreign key"):
        await bench.store.submit(unit(Write("run_insert", lost)))
    with pytest.raises(WriteMissed, match="check constraint"):
        await bench.store.submit(unit(accepted("r", 1, RunState.FINISHED)))
    assert bench.store.problem is None


async def test_any_text_comes_back_as_it_was(bench: Bench) -> None:
    for text in ("\0", "a\0b", "\U0010fffd", "\U0010fffd0\0\U0010fffd1", "é\U0001f6a3"):
        assert await connection_of(bench).fetchval("SELECT $1::text", text) == text


async def test_reads_do_not_wait_for_replays(bench: Bench) -> None:
    """E5."""
    on, stuck = asyncio.Event(), asyncio.Event()

    async def stand_still(reader: Any) -> str:
        stuck.set()
        await on.wait()
        (row,) = await reader.fetch("session_by_id", workspace_id="w", session_id="s")
        return str(row["title"])

    replays = [asyncio.ensure_future(bench.store.read(stand_still, replay=True)) for _ in range(20)]
    await stuck.wait()
    assert await bench.titles() == ["s"]
    on.set()
    assert await asyncio.gather(*replays) == ["s"] * 20


async def test_a_thread_gets_as_many_seqs_as_it_needs(bench: Bench) -> None:
    """An import reads its document on one."""
    taken = await asyncio.to_thread(lambda: [bench.store.next_seq() for _ in range(3 * SEQS)])
    taken.append(bench.store.next_seq())
    assert taken == sorted(set(taken))


async def test_seqs_do_not_run_out(bench: Bench) -> None:
    seqs = []
    for _ in range(5 * SEQS):
        seqs.append(bench.store.next_seq())
        if (taking := postgres_store(bench)._seqs._taking) is not None:
            await taking
    assert seqs == sorted(set(seqs))


# Connections that break


async def test_a_broken_connection_comes_back_and_nothing_is_lost(bench: Bench) -> None:
    await bench.store.submit(said("before"))
    await end_connections(bench)
    await bench.store.submit(said("after"))
    assert await bench.titles() == ["s", "before", "after"]
    assert bench.numbers == [1, 2]


async def test_the_lock_of_a_connection_that_is_only_half_gone_is_taken_back(bench: Bench) -> None:
    """The database has not noticed yet that the line was cut."""
    its = postgres_store(bench)._writer
    half_gone, its._connection = its._connection, None
    await bench.store.submit(said("after"))
    assert await bench.titles() == ["s", "after"]
    half_gone.terminate()


async def test_a_listener_that_fails_does_not_end_the_writer(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    failed = asyncio.Event()

    def fail(_: object) -> None:
        failed.set()
        raise RuntimeError("a defect")

    bench.store.listen("w", fail)
    await bench.store.submit(said("first"))
    assert failed.is_set()
    bench.store.listen("w", None)
    await bench.store.submit(said("second"))
    assert await bench.titles() == ["s", "first", "second"]
    assert "a defect" in caplog.text


@pytest.mark.parametrize("was_done", [True, False])
async def test_a_commit_whose_answer_is_lost_is_looked_up(bench: Bench, was_done: bool) -> None:
    """L15: what was done is not done again, and what was not is."""
    its = postgres_store(bench)._writer
    its._connection = Losing(its._connection, does=was_done)
    await bench.store.submit(said("in doubt"))
    await bench.store.submit(said("after"))
    assert await bench.titles() == ["s", "in doubt", "after"]
    assert bench.numbers == [1, 2]


@pytest.mark.parametrize("error", [asyncpg.TooManyConnectionsError("full"), asyncpg.InvalidPasswordError("no")])
async def test_a_commit_in_doubt_is_asked_about_whatever_the_database_says_first(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """L15: answered only when it is known."""
    its = postgres_store(bench)._writer
    connect = store.connect
    refusals = [error, error]

    async def refuse_first(dsn: str, *, pooled: bool) -> Any:
        if refusals:
            raise refusals.pop()
        return await connect(dsn, pooled=pooled)

    monkeypatch.setattr(store, "connect", refuse_first)
    its._connection = Losing(its._connection, does=True)
    await bench.store.submit(said("in doubt"))
    await bench.store.submit(said("after"))
    assert await bench.titles() == ["s", "in doubt", "after"]
    assert bench.numbers == [1, 2]


async def test_seqs_come_back_when_the_database_does(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = postgres_store(bench)

    async def fail() -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(opened._seqs, "take", fail)
    while opened._seqs._blocks:
        opened.next_seq()
        await asyncio.sleep(0)
    monkeypatch.undo()
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable, match="did not respond in time"):
        opened.next_seq()
    assert opened._seqs._taking is not None
    await opened._seqs._taking
    assert opened.next_seq() > 0


async def test_a_database_that_stands_still_does_not_hold_up_the_end(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B5: bounded, and the unit that was on its way is refused."""
    monkeypatch.setattr(writer, "CLOSE_S", 0.05)
    async with open_postgres(own_server.dsn()) as opened:
        await make_workspace(opened)
        backend = psutil.Process(opened._writer._connection.get_server_pid())
        backend.suspend()
        stuck = opened.submit(said("stuck"))
        await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable):
        await stuck
    backend.resume()


async def test_a_database_that_restarts_is_waited_for(own_server: PostgresServer, tmp_path: Path) -> None:
    """G10: refused while it is away, and by itself again when it is back."""
    async with open_postgres(own_server.dsn()) as opened:
        await make_workspace(opened)
        await asyncio.to_thread(own_server.stop)
        with pytest.raises(StoreUnavailable):
            await opened.submit(said("away"))
        assert opened.problem is not None
        await asyncio.to_thread(own_server.start)
        await opened.submit(said("back"))
        assert opened.problem is None
        rows = await opened.read(lambda reader: reader.fetch("sessions_page", workspace_id="w", before=2**62, limit=9))
        assert [row["title"] for row in rows] == ["back"]


async def test_a_database_that_lost_its_last_writes_is_refused(own_server: PostgresServer) -> None:
    """What clients have seen is gone: only a new start can tell them."""
    gone = asyncio.Event()
    async with open_postgres(own_server.dsn()) as opened:
        opened.when_gone(gone.set)
        await make_workspace(opened)
        opened._writer._commits += 1  # as if one more had been answered
        await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
        await asyncio.to_thread(own_server.start)
        for name in ("first", "second"):
            with pytest.raises(StoreLost, match="lost what was written last"):
                await opened.submit(said(name))
        assert gone.is_set()
        assert "Stop the server and start it again" in (opened.problem or "")


# What is refused


async def test_one_server_at_a_time(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locking, "LOCK_S", 0)
    with pytest.raises(DataDirError, match="Another Longboat server uses") as refused:
        async with open_postgres(database_of(tmp_path)):
            pass
    assert refused.value.code == "store_in_use"


async def test_a_server_that_is_replaced_gives_up(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "LOCK_S", 0)
    other = await asyncpg.connect(database_of(tmp_path))
    try:
        waiting = asyncio.ensure_future(other.execute("SELECT pg_advisory_lock($1)", locking.SERVER_LOCK))
        await end_connections(bench)
        await waiting
        for name in ("first", "second"):
            with pytest.raises(StoreLost, match="another server uses it now"):
                await bench.store.submit(said(name))
    finally:
        await other.close()


@pytest.mark.parametrize(
    ("dsn", "code"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "store_unreachable"),
        ("postgresql://postgres@/missing?host={sockets}", "store_unreachable"),
        ("postgresql://postgres@/p?host={sockets}&sslmode=never", "store_unreachable"),
    ],
)
async def test_a_database_that_cannot_be_reached_is_named_without_its_password(dsn: str, code: str) -> None:
    address = dsn.replace("{sockets}", str(shared_server().sockets))
    with pytest.raises(DataDirError, match="Cannot open the store postgresql://") as refused:
        async with open_postgres(address):
            pass
    assert refused.value.code == code


class Waits(Exception):
    """What a server would wait for."""


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", Waits),
        ("postgresql://nobody@/none?host=/tmp/nowhere", Waits),
        ("postgresql://nobody@127.0.0.1:1,127.0.0.1:2/none", Waits),
        ("postgresql://nobody@127.0.0.1:1/none?sslmode=verify-full&sslrootcert=/nowhere.pem", DataDirError),
        ("postgresql://postgres@/missing?host={sockets}", DataDirError),
        ("postgresql://postgres@/p?host={sockets}&sslmode=never", DataDirError),
    ],
)
async def test_g10_a_server_waits_for_a_database_that_is_away_and_not_for_a_wrong_address(
    dsn: str, expected: type[Exception]
) -> None:
    def wait(problem: str) -> None:
        raise Waits(problem)

    with pytest.raises(expected, match="Cannot open the store"):
        async with open_postgres(dsn.replace("{sockets}", str(shared_server().sockets)), on_wait=wait):
            pass


def test_a_password_is_not_shown() -> None:
    assert describe_dsn("postgresql://ann:s3cret@db:5432/boat?sslmode=require") == "postgresql://ann@db:5432/boat"


async def test_what_cannot_hold_a_store_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async with new_database() as dsn:
        admin = await asyncpg.connect(dsn)
        try:
            await admin.execute("CREATE ROLE guest LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
            assert await refusal(dsn.replace("postgres@", "guest@")) == "store_no_rights"
        finally:
            await admin.execute("DROP ROLE guest")
            await admin.close()
        monkeypatch.setattr(schema, "OLDEST", 99)
        assert await refusal(dsn) == "store_too_old"
        monkeypatch.undo()
        async with open_postgres(dsn) as opened:
            await opened._writer._connection.execute("INSERT INTO longboat_schema VALUES (9999, 9999)")
        assert await refusal(dsn) == "store_newer"


async def test_no_statement_goes_on_without_end_but_a_migration(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "CREATE TABLE seen AS SELECT current_setting('statement_timeout') AS during_migration"
    made = [*schema.migrations(), schema.Migration(number=9999, floor=1, sql=sql)]
    monkeypatch.setattr(schema, "migrations", lambda: made)
    async with new_database() as dsn, open_postgres(dsn) as opened:
        async with opened.borrow() as reader:
            assert await reader.fetchval("SHOW statement_timeout") == "20s"
            assert await reader.fetchval("SELECT during_migration FROM seen") == "0"
        assert await opened._writer._connection.fetchval("SHOW statement_timeout") == "20s"


async def test_a_database_in_another_encoding_is_refused_with_what_to_do() -> None:
    async with new_database(options="ENCODING 'LATIN1'") as dsn:
        with pytest.raises(DataDirError, match="createdb --encoding UTF8") as refused:
            async with open_postgres(dsn):
                pass
    assert refused.value.code == "store_encoding"


async def refusal(dsn: str) -> str:
    with pytest.raises(DataDirError) as refused:
        async with open_postgres(dsn):
            pass
    return refused.value.code


# Words


def test_words_are_folded_and_keep_their_places() -> None:
    assert word_vector("The Café, the CAFÉ!") == "'the':1,3 'cafe':2,4"
    assert match_expression(parse_search('"the cafe" ca')) == "('the' <-> 'cafe') & ('ca':*)"


async def test_nothing_that_is_typed_is_an_error(bench: Bench) -> None:
    for typed in ("' OR 1=1 --", "a:b & !c | (d)", r"back\slash 'quote'", "<->", ":* x", "\u202e\u200b word", "' ' '"):
        page = await bench.store.reads.search(typed, workspace_id=None, before=None, limit=5)
        assert page.items == (), typed


async def test_a_text_that_is_too_much_for_the_index_costs_no_other(bench: Bench) -> None:
    vast = " ".join("\ufdfa" * 26 + chr(0x4E00 + number) for number in range(2300))
    for name, title in (("vast", vast), ("small", "a keel")):
        await bench.store.submit(unit(Write("session_insert", dict(new_session(name).params) | {"title": title})))
    page = await bench.store.reads.search("keel", workspace_id=None, before=None, limit=5)
    assert [hit.session_title for hit in page.items] == ["a keel"]
    assert page.complete


async def test_a_word_is_found_behind_many_newer_texts_and_page_by_page(bench: Bench) -> None:
    """Common words are looked for among the newest texts first."""
    names = ["a needle in hay", *(f"hay {number}" for number in range(600))]
    await bench.store.submit(unit(*map(new_session, names)))

    async def found(typed: str, before: str | None = None) -> SearchPage:
        start = None if before is None else int(before)
        while not (page := await bench.store.reads.search(typed, workspace_id="w", before=start, limit=50)).complete:
            pass  # the index has not taken everything yet
        return page

    assert [hit.session_title for hit in (await found("needle")).items] == [names[0]]
    assert (await found("no such word")).items == ()
    page = await found("hay")
    titles = [hit.session_title for hit in page.items]
    while page.next is not None:
        page = await found("hay", page.next)
        titles += [hit.session_title for hit in page.items]
    assert titles == names[::-1]


def test_a_snippet_is_around_the_first_match() -> None:
    text = " ".join(f"w{number}" for number in range(100))
    marked = mark_matches(text, parse_search('"w50 w51" w52'))
    assert marked.startswith("…w44 ")
    assert marked.endswith("…")
    assert "\x01w50 w51\x02 \x01w52\x02 w53" in marked
    assert mark_matches("", parse_search("x")) == ""


# Helpers


def postgres_store(bench: Bench) -> PostgresStore:
    assert isinstance(bench.store, PostgresStore)
    return bench.store


def connection_of(bench: Bench) -> Any:
    return postgres_store(bench)._writer._connection


class Losing:
    """A connection that loses the answer to the next transaction, or the transaction itself."""

    def __init__(self, real: Any, *, does: bool) -> None:
        self._real = real
        self._does = does

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def execute(self, sql: str, *args: Any) -> Any:
        if not begins_transaction(sql):
            return await self._real.execute(sql, *args)
        if self._does:
            await self._real.execute(sql, *args)
        raise ConnectionResetError("the line is cut")


async def end_connections(bench: Bench) -> None:
    """As an administrator would."""
    admin = await asyncpg.connect(postgres_store(bench)._dsn)
    try:
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'longboat' AND pid != pg_backend_pid()"
        )
    finally:
        await admin.close()


async def make_workspace(opened: PostgresStore) -> None:
    place = {"workspace_id": "w", "home": "", "path": "/w", "created_at": ""}
    await opened.submit(unit(Write("workspace_insert", place)))


def test_migrations_are_numbered_without_a_gap_and_say_which_servers_they_leave_working() -> None:
    known = migrations()
    assert [migration.number for migration in known] == list(range(1, len(known) + 1))
    assert all(1 <= migration.floor <= migration.number for migration in known)
    assert sorted(migration.floor for migration in known) == [migration.floor for migration in known]


async def test_g3_reads_leave_connections_for_the_renewal_of_leases() -> None:
    over, reading = asyncio.Event(), asyncio.Semaphore(0)

    async def read_for_long(reader: Reader) -> None:
        reading.release()
        await over.wait()

    async with new_database() as dsn, open_postgres(dsn) as store:
        reads = [asyncio.ensure_future(store.read(read_for_long)) for _ in range(READERS + 1)]
        for _ in range(READERS - RESERVED):
            await reading.acquire()
        async with store.borrow() as connection:
            assert await connection.fetchval("SELECT 1") == 1
        over.set()
        await asyncio.gather(*reads)


async def test_g3_searches_leave_connections_for_the_renewal_of_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections.SERVER_SETTINGS, "lock_timeout", "0")
    async with new_database() as dsn, open_postgres(dsn, node="a") as store:
        place = {"workspace_id": "w", "home": "", "path": "/w", "created_at": ""}
        await store.submit(Unit(workspace_id="", writes=[Write("workspace_insert", place), new_session("keel")]))
        while not (await search(store)).complete:
            pass
        nodes, begun = Nodes(store.borrow, "a", instance=store.instance, lease_s=60), noted_searches(store, monkeypatch)
        await nodes.register(disk="a", url="", version="", secret="", token="", started_at="")
        async with documents_locked(dsn):
            searches = [asyncio.ensure_future(search(store)) for _ in range(READERS + 1)]
            for _ in searches:
                await begun.acquire()
            checking = asyncio.ensure_future(store.check(limit_s=60))
            renewed = await nodes.confirm({})
            assert renewed.kept == frozenset()
            assert not any(each.done() for each in searches), "they were under way all the time"
        pages = await asyncio.gather(*searches)
        await checking
    assert {len(page.items) for page in pages} == {1}


async def test_a_search_that_nobody_waits_for_gives_its_connection_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections.SERVER_SETTINGS, "lock_timeout", "0")
    async with new_database() as dsn, open_postgres(dsn) as store:
        begun = noted_searches(store, monkeypatch)
        async with documents_locked(dsn) as other:
            for _ in range(READERS + 1):
                left = asyncio.ensure_future(search(store))
                await begun.acquire()
                await wait_until(other, "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)")
                left.cancel()
                await asyncio.wait([left])
            assert await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted") == 0


async def search(opened: PostgresStore) -> SearchPage:
    return await opened.reads.search("keel", workspace_id=None, before=None, limit=5)


def noted_searches(opened: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> asyncio.Semaphore:
    """Released by each search that is about to ask the index."""
    begun, catch_up = asyncio.Semaphore(0), opened._search._catch_up

    async def noted() -> bool:
        complete = await catch_up()
        begun.release()
        return complete

    monkeypatch.setattr(opened._search, "_catch_up", noted)
    return begun


@asynccontextmanager
async def documents_locked(dsn: str) -> AsyncIterator[Any]:
    """Nobody can ask the search index; gives the connection that holds it."""
    other = await asyncpg.connect(dsn)
    try:
        await other.execute("BEGIN; LOCK TABLE documents IN ACCESS EXCLUSIVE MODE")
        yield other
    finally:
        await other.close()


async def wait_until(connection: Any, query: str) -> None:
    """Until the database says so."""
    while not await connection.fetchval(query):
        pass
