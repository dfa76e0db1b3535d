"""The named queries: each has a purpose, parses against the schema, and is used."""

import ast
import inspect
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import longboat
from cases import for_each
from longboat.errors import DataDirError
from longboat.store import changes
from longboat.store.queries import Query, parse_queries
from longboat.store.sqlite.migrations import migrate, migrations
from longboat.store.sqlite.queries import load_queries
from longboat.wire.plain import fold_case

QUERIES = load_queries()


def names_in_code() -> set[str]:
    """Every string in the source: the names under which queries are called are among them."""
    sources = Path(longboat.__file__).parent.rglob("*.py")
    trees = (ast.parse(source.read_text("utf-8")) for source in sources)
    return {
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@pytest.fixture(scope="module")
def schema() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.create_function("folded", 1, fold_case)
    migrate(connection, "memory")
    return connection


@for_each("query", QUERIES.values())
def test_a_query_parses_and_says_what_it_is_for(query: Query, schema: sqlite3.Connection) -> None:
    params = dict.fromkeys(re.findall(r":(\w+)", query.sql), 1)
    assert schema.execute(f"EXPLAIN {query.sql}", params).fetchall()
    assert query.purpose.endswith(".")
    assert query.numbered == ("number" in params)


def test_every_query_is_used() -> None:
    assert set(QUERIES) <= names_in_code()


def names_written() -> Iterator[str]:
    """The name of every `Write` that `changes.py` makes."""
    tree = ast.parse(inspect.getsource(changes))
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Write"), args=[ast.Constant(value=str(name)), *_]):
                yield name
            case ast.Call(func=ast.Name(id="Write"), args=[ast.Subscript(value=ast.Name(id=table)), *_]):
                yield from vars(changes)[table].values()
            case ast.Call(func=ast.Name(id="Write"), args=[ast.Name(id=variable), *_]):
                loops = [each for each in ast.walk(tree) if isinstance(each, ast.comprehension)]
                (values,) = (ast.literal_eval(each.iter) for each in loops if ast.unparse(each.target) == variable)
                yield from values
            case ast.Call(func=ast.Name(id="Write")):
                raise AssertionError(f"changes.py:{node.lineno}: which name is this?")


def test_every_change_has_a_statement() -> None:
    """A `Write` without one would fail only when it is committed."""
    names = set(names_written())
    assert len(names) > 40
    assert names - set(QUERIES) == set()


def test_a_query_is_named_once() -> None:
    text = (Path(longboat.__file__).parent / "store" / "sqlite" / "queries.sql").read_text("utf-8")
    assert re.findall(r"^-- name: (\w+)$", text, re.MULTILINE) == list(QUERIES)


def test_a_query_without_a_purpose_is_refused() -> None:
    with pytest.raises(ValueError, match="query lost has no purpose line"):
        parse_queries("-- name: lost\nSELECT 1;\n")


def test_only_the_newest_number_of_the_unit_makes_a_query_numbered() -> None:
    """`:number` is filled in by the writer; readers bring their own."""
    parsed = parse_queries("-- name: a\n-- One.\nSELECT :number;\n\n-- name: b\n-- Two.\nSELECT :n;\n")
    assert parsed == {"a": Query("a", "One.", "SELECT :number;", True), "b": Query("b", "Two.", "SELECT :n;", False)}


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


def test_migrating_twice_changes_nothing(schema: sqlite3.Connection) -> None:
    before = schema.execute("SELECT sql FROM sqlite_schema ORDER BY name").fetchall()
    migrate(schema, "memory")
    assert schema.execute("SELECT sql FROM sqlite_schema ORDER BY name").fetchall() == before


def test_a_store_of_a_newer_version_is_refused_and_left_alone() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("PRAGMA user_version = 999")
    with pytest.raises(DataDirError, match=r"newer Longboat .schema 999; this version supports") as refused:
        migrate(connection, "/data/longboat.db")
    assert refused.value.code == "data_dir_newer"
    assert connection.execute("SELECT * FROM sqlite_schema").fetchall() == []


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "longboat.db"
    broken = [*migrations(), (len(migrations()) + 1, "CREATE TABLE half (way INTEGER); SELECT no_such_function();")]
    monkeypatch.setattr("longboat.store.sqlite.migrations.migrations", lambda: broken)
    connection = sqlite3.connect(file, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, str(file))
    connection.close()
    again = sqlite3.connect(file)
    assert again.execute("PRAGMA user_version").fetchone() == (len(broken) - 1,)
    assert again.execute("SELECT * FROM sqlite_schema WHERE name = 'half'").fetchall() == []
    again.close()
