"""How connections to PostgreSQL are opened: to which host, with which limits, and through which pooler.

Must not know the store's tables.

A pooler such as pgbouncer may run each transaction in another session of the database. Through one, nothing is left
in a session: no statement stays prepared, and every transaction sets its own limits. That is also right if the pooler
keeps one session for each client.
"""

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg
from asyncpg.transaction import Transaction

CONNECT_S = 5.0
"""How long to try all hosts of an address together."""
COMMAND_S = 15.0
"""No statement of ours takes longer, unless the server stands still."""
SERVER_SETTINGS = {
    "application_name": "longboat",
    "lock_timeout": "5000",
    "statement_timeout": "20000",  # longer than COMMAND_S: ends what a client has left behind
    "idle_in_transaction_session_timeout": "2500",  # below any lease: a stopped owner cannot hold off the next
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
_LIMITS = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
_DURABLE = "set_config('synchronous_commit', 'on', {local}) WHERE current_setting('synchronous_commit') = 'off'"
"""Units that need not be durable say so themselves."""


def limits() -> str:
    """The first statements of every transaction through a pooler."""
    values = [f"SET LOCAL {name} = {SERVER_SETTINGS[name]};" for name in _LIMITS]
    return " ".join([*values, f"SELECT {_DURABLE.format(local='true')};"])


class PooledConnection(asyncpg.Connection):  # type: ignore[misc]
    """A connection to a pooler: every transaction may run in another session."""

    __slots__ = ()

    def transaction(self, **options: Any) -> Transaction:
        made = {"isolation": None, "readonly": False, "deferrable": False, **options}
        return _LimitedTransaction(self, made["isolation"], made["readonly"], made["deferrable"])

    def get_reset_query(self) -> str:
        return ""  # we left nothing in the session, and by now it belongs to another client


class _LimitedTransaction(Transaction):  # type: ignore[misc]
    async def start(self) -> None:
        await super().start()
        if not self._nested:
            await self._connection.execute(limits())


async def is_pooled(dsn: str) -> bool:
    """Whether a pooler answers at this address: it invents the process that it names when a client connects."""
    connection = await _connect(dsn, statement_cache_size=0, server_settings={"application_name": "longboat"})
    try:
        actual: int = await connection.fetchval("SELECT pg_backend_pid()")
        named: int = connection.get_server_pid()
        return actual != named
    finally:
        await connection.close(timeout=CONNECT_S)


async def connect(dsn: str, *, pooled: bool) -> Any:
    """A new connection that reads and writes, with our limits and our text."""
    if pooled:
        settings = {"application_name": SERVER_SETTINGS["application_name"]}
        options = {"connection_class": PooledConnection, "statement_cache_size": 0, "server_settings": settings}
        connection = await _connect(dsn, **options)
    else:
        connection = await _connect(dsn, server_settings=SERVER_SETTINGS)
    try:
        if not pooled:
            await connection.execute(f"SELECT {_DURABLE.format(local='false')}")
        await connection.set_type_codec(
            "text", schema="pg_catalog", encoder=_encode_text, decoder=_decode_text, format="binary"
        )
    except BaseException:
        connection.terminate()
        raise
    return connection


async def _connect(dsn: str, **options: Any) -> Any:
    """Ask one host after the other for a session that can write. One that does not answer costs only its share of the
    time, so that a failover to the next one succeeds."""
    hosts = hosts_of(dsn, os.environ) or [{}]
    options |= {"target_session_attrs": "read-write", "command_timeout": COMMAND_S}
    for host in hosts:
        try:
            return await asyncpg.connect(dsn, timeout=CONNECT_S / len(hosts), **host, **options)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InternalClientError) as error:
            failure: Exception = error
            if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
                break  # the other hosts have the same users and passwords
    raise failure


def is_by_socket(dsn: str, environ: Mapping[str, str]) -> bool:
    """Whether the address is that of a unix socket."""
    parts = urlsplit(dsn)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    host = unquote(parts.netloc.rpartition("@")[2]) or query.get("host") or environ.get("PGHOST", "")
    return not host or host.startswith("/")


def hosts_of(dsn: str, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """The hosts of an address that names several; empty: it names one or none."""
    parts = urlsplit(dsn)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    named = unquote(parts.netloc.rpartition("@")[2]) or query.get("host") or environ.get("PGHOST", "")
    ports = (query.get("port") or environ.get("PGPORT") or "5432").split(",")
    hosts = named.split(",")
    if len(hosts) < 2:
        return []
    found = []
    for place, each in enumerate(hosts):
        name, colon, port = each.rpartition(":")
        if not colon or port.endswith("]"):  # no port, or an IPv6 address
            name, port = each, ports[place] if len(ports) == len(hosts) else ports[0]
        found.append({"host": name.removeprefix("[").removesuffix("]"), "port": int(port)})
    return found


# PostgreSQL's text has no NUL, and a prompt may. It is stored behind a private character that nobody writes.
_ESCAPE = "\U0010fffd"


def _encode_text(text: str) -> bytes:
    if "\0" in text or _ESCAPE in text:
        text = text.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")
    return text.encode()


def _decode_text(data: Any) -> str:
    text = bytes(data).decode()
    if _ESCAPE in text:
        text = text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE)
    return text
