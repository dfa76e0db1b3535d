"""Many writes in one message to PostgreSQL: a statement that calls a function for each of them.

The functions belong to the connection (`pg_temp`) and are made from the named queries when they are first needed.
PostgreSQL plans what is in them once. Owns their text; must not know what the queries mean.

A statement that is not inside a transaction is one by itself, so a whole commit takes one round trip.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from longboat.store.postgres.statements import WRONG_ROWS, Statement

MAX_CALLS = 500
"""How many calls one statement may have; PostgreSQL allows 1664 columns."""

Call = tuple[str, Sequence[Any], int | None]
"""A query, its arguments, and how many rows it must change."""

_FUNCTION = """
CREATE OR REPLACE FUNCTION pg_temp.{name}({types}) RETURNS void LANGUAGE plpgsql AS $longboat$
DECLARE
    changed_rows BIGINT;
BEGIN
    {sql};
    GET DIAGNOSTICS changed_rows = ROW_COUNT;
    IF changed_rows != {rows} THEN
        RAISE EXCEPTION '{name} changed % rows instead of %', changed_rows, {rows} USING ERRCODE = '{code}';
    END IF;
END $longboat$"""


class Functions:
    """The functions that one connection has made."""

    def __init__(self, statements: Mapping[str, Statement]) -> None:
        self._statements = statements
        self._made: set[str] = set()

    async def make(self, connection: Any, names: Iterable[str]) -> None:
        """Create the missing functions. Not inside a transaction: a rollback would remove them."""
        for name in dict.fromkeys(names):
            if name not in self._made:
                sql = self._statements[name].sql
                types = [each.name for each in (await connection.prepare(sql)).get_parameters()]
                await connection.execute(_define(name, sql, types))
                self._made.add(name)


def _define(name: str, sql: str, types: Sequence[str]) -> str:
    rows = f"${len(types) + 1}"
    return _FUNCTION.format(name=name, types=", ".join([*types, "bigint"]), sql=sql, rows=rows, code=WRONG_ROWS)


async def call_all(connection: Any, calls: Sequence[Call], *, first: str = "", arguments: Sequence[Any] = ()) -> None:
    """Make the calls in this order. `first`: what is evaluated before them, with its own arguments."""
    shape = tuple((name, len(values) + 1) for name, values, _ in calls)
    given = [value for _, values, rows in calls for value in (*values, rows)]
    await connection.execute(_statement(first, len(arguments), shape), *arguments, *given)


@lru_cache(maxsize=256)
def _statement(first: str, taken: int, shape: tuple[tuple[str, int], ...]) -> str:
    """PostgreSQL evaluates the columns of a row from left to right."""
    columns = [first] if first else []
    for name, count in shape:
        numbers = ", ".join(f"${number}" for number in range(taken + 1, taken + count + 1))
        columns.append(f"pg_temp.{name}({numbers})")
        taken += count
    return f"SELECT {', '.join(columns)}"
