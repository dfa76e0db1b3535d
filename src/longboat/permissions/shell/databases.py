"""Which calls of database clients delete data: what their SQL says, as far as it is written in the command.

Owns the names of the clients and the statements. Must not know how dangerous that is.
"""

import re
from collections.abc import Sequence

from longboat.permissions.shell.syntax import names

CLIENTS = names("clickhouse-client cockroach duckdb mariadb mycli mysql pgcli psql sqlcmd sqlite3")
_OTHER_CLIENTS = {
    "dropdb": re.compile(r""),
    "dropuser": re.compile(r""),
    "mongo": re.compile(r"\.(?:drop\w*|remove|delete\w+)\s*\("),
    "mongosh": re.compile(r"\.(?:drop\w*|remove|delete\w+)\s*\("),
    "mysqladmin": re.compile(r"\bdrop\b"),
    "redis-cli": re.compile(r"\b(?:flushall|flushdb)\b", re.IGNORECASE),
}
_SKIPPED = re.compile(r"--[^\n]*|/\*(?:.*?\*/|.*)", re.DOTALL)
_QUOTED = re.compile(r"'[^']*'?")
_DELETING = re.compile(
    r"\b(?:drop\s+(?:column|constraint|database|extension|function|index|keyspace|materialized|owned|policy"
    r"|procedure|role|schema|sequence|table|tablespace|trigger|type|user|view)|truncate)\b",
    re.IGNORECASE,
)
_ALL_ROWS = re.compile(r"\b(?:delete\s+from|update\s+\S+\s+set)\b", re.IGNORECASE)
_WHERE = re.compile(r"\bwhere\b", re.IGNORECASE)


def deletes_data(name: str, texts: Sequence[str]) -> bool:
    """Whether these words make the database client `name` delete data."""
    if other := _OTHER_CLIENTS.get(name):
        return other.search(" ".join(texts)) is not None
    return name in CLIENTS and any(is_deleting(_QUOTED.sub("''", text)) for text in texts)


def is_deleting(sql: str) -> bool:
    """Whether a statement drops or empties something, or changes every row of a table."""
    statements = _SKIPPED.sub(" ", sql).split(";")
    return any(_DELETING.search(each) or (_ALL_ROWS.search(each) and not _WHERE.search(each)) for each in statements)
