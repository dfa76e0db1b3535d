"""Named queries, read from a dialect's `.sql` file: `-- name:` and a purpose line above each."""

import re
from dataclasses import dataclass
from importlib import resources

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


def load_queries() -> dict[str, Query]:
    return parse_queries(resources.files("longboat.store.sqlite").joinpath("queries.sql").read_text("utf-8"))
