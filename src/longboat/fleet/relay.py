"""Hands a request on to another node, and its answer back, without looking into either.

Owns the connections to the other nodes. Must not know who owns what.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult

from longboat.fleet.node import Node
from longboat.fleet.signature import HEADER, Relayed, digest_of
from longboat.models.http_client import Answer, DirectHttp, Timeouts

CONNECT_S = 3.0
ANSWER_S = 120.0
"""How long an answer may take to begin: a request may wait a minute for the end of a run."""

_NOT_HANDED_ON = frozenset(
    {
        *("authorization", "connection", "content-length", "cookie", "expect", "host", "keep-alive", "origin"),
        *("proxy-authorization", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    }
)
"""They concern one connection, or who may call: the door has checked that."""
_NOT_HANDED_BACK = frozenset(["connection", "date", "keep-alive", "server", "trailer", "transfer-encoding", "upgrade"])


class NoConnection(OSError):
    """The node was not reached: it has not seen the request."""


class _PeerHttp(DirectHttp):
    async def connect(self, target: SplitResult) -> Any:
        try:
            return await super().connect(target)
        except OSError as error:
            raise NoConnection(str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOn:
    """A request as it goes to another node."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""


def from_scope(scope: Any, body: bytes = b"", more: Mapping[str, str] = {}) -> HandedOn:
    """`more`: headers in the place of the client's."""
    query = scope["query_string"].decode("latin-1")
    target = scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    kept = {name: value for name, value in headers.items() if name not in _NOT_HANDED_ON}
    return HandedOn(method=scope["method"], target=target, headers={**kept, **more}, body=body)


class Relay:
    def __init__(self, node: Node, *, silent_s: float) -> None:
        """`silent_s`: how long an answer may pause."""
        self._node = node
        self._timeouts = Timeouts(connect_s=CONNECT_S, first_s=ANSWER_S, idle_s=silent_s)
        self._peers: dict[str, _PeerHttp] = {}

    async def send(self, url: str, request: HandedOn, *, again: bool) -> Answer:
        """Raises NoConnection if the node has not seen the request, another OSError if it may have. `again`: it does no
        harm if the node gets the request twice."""
        if url not in self._peers:
            self._peers[url] = _PeerHttp(url, self._timeouts)
        signed = Relayed(
            node=self._node.name,
            at=self._node.database_time(),
            method=request.method,
            target=request.target,
            body_digest=digest_of(request.body),
        ).sign(self._node.secret)
        headers = {**request.headers, HEADER: signed}
        return await self._peers[url].send(request.method, request.target, headers, request.body, again=again)


def back_headers(headers: Mapping[str, str]) -> Iterable[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items() if name not in _NOT_HANDED_BACK]
