"""Named queries, read from a dialect's `.sql` file: `-- name:` and a purpose line above each.

Owns their names and parameters. Must not know a database: `Reader` is how the reads ask one.
"""

import re
from dataclasses import dataclass
from importlib import resources
from typing import Any, Protocol

from longboat.store.protocol import Row

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Query:
    """`numbered`: it needs `:number`, the newest event number of its unit, which only the writer knows."""

    name: str
    purpose: str
    sql: str
    numbered: bool


def parse_queries(text: str) -> dict[str, Query]:
    pieces = _NAME.split(text)[1:]
    return {name: _parse(name, body) for name, body in zip(pieces[::2], pieces[1::2], strict=True)}


def _parse(name: str, body: str) -> Query:
    first, _, sql = body.strip().partition("\n")
    if not first.startswith("-- "):
        raise ValueError(f"query {name} has no purpose line")
    return Query(name, first.removeprefix("-- "), sql.strip(), ":number" in sql)


def load_queries(dialect: str) -> dict[str, Query]:
    """`dialect`: the package that holds a `queries.sql`."""
    return parse_queries(resources.files(dialect).joinpath("queries.sql").read_text("utf-8"))


class Reader(Protocol):
    """Named queries on one connection, for the length of one transaction: they all see the same state."""

    async def fetch(self, query: str, **params: Any) -> list[Row]: ...
