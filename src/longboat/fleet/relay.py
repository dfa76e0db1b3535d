"""Hands a request on to another node, and its answer back, without looking into either.

Owns the connections to the other nodes. Must not know who owns what.
"""

import asyncio
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult
from weakref import WeakSet

from longboat.backoff import Backoff
from longboat.fleet.node import Node
from longboat.fleet.signature import HEADER, Relayed, digest_of, signed_headers
from longboat.models.http_client import Answer, DirectHttp, Timeouts

RETRY = Backoff(base_s=0.05, ceiling_s=0.5)
MISDIRECTED = 421
"""The status by which a node tells a door that it is not the owner."""
REFUSED = 401
CONNECT_S = 3.0
SIGN_S = 30
"""After how long a connection breaks whose other end acknowledges nothing."""

_NOT_HANDED_ON = frozenset(
    {
        *("authorization", "connection", "content-length", "cookie", "expect", "host", "keep-alive", "origin"),
        *("proxy-authorization", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    }
)
"""Headers that concern one connection, or who may call: the door has checked that."""
_NOT_HANDED_BACK = frozenset(["connection", "date", "keep-alive", "server", "trailer", "transfer-encoding", "upgrade"])


class NoConnection(OSError):
    """The node was not reached: it has not seen the request."""


class _PeerHttp(DirectHttp):
    def __init__(self, url: str, timeouts: Timeouts) -> None:
        super().__init__(url, timeouts)
        self._connections: WeakSet[Any] = WeakSet()

    async def connect(self, target: SplitResult) -> Any:
        try:
            connection = await super().connect(target)
        except OSError as error:
            raise NoConnection(str(error)) from error
        connection.expect_signs(SIGN_S)
        self._connections.add(connection)
        return connection

    def break_off(self) -> None:
        """Close the connections: the node is gone without closing them."""
        for connection in list(self._connections):
            connection.break_off("the node is gone")


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
        """`silent_s`: how long an answer may pause once it has begun. Until then, only who asks knows how long to wait:
        a request takes the owner as long as it takes."""
        self._node = node
        self._timeouts = Timeouts(connect_s=CONNECT_S, first_s=math.inf, idle_s=silent_s)
        self._peers: dict[str, _PeerHttp] = {}
        node.when_peer_gone(self._break_off)

    def _break_off(self, url: str) -> None:
        """A node that is stopped or cut off does not close its connections. Its successor answers instead."""
        if url in self._peers:
            self._peers[url].break_off()

    async def send(self, url: str, request: HandedOn, *, again: bool) -> Answer:
        """Raises NoConnection if the node has not seen the request or refuses our signature, another OSError if it may
        have. `again`: it does no harm if the node gets the request twice. Waits for the answer without a limit."""
        if url not in self._peers:
            self._peers[url] = _PeerHttp(url, self._timeouts)
        self._node.relayed += 1
        return await self._send_signed(self._peers[url], request, again=again)

    async def _send_signed(self, peer: _PeerHttp, request: HandedOn, *, again: bool) -> Answer:
        headers = self._signed(request)
        answer = await peer.send(request.method, request.target, headers, request.body, again=again)
        if answer.status == REFUSED:
            # Its clock stood still for long, or it is no node of ours. The client's own token was checked here.
            await answer.aclose()
            raise NoConnection("the node refuses the signature")
        return answer

    def _signed(self, request: HandedOn) -> dict[str, str]:
        """The headers of the request, with its signature."""
        signed = Relayed(
            node=self._node.name,
            at=self._node.database_time(),
            method=request.method,
            target=request.target,
            body_digest=digest_of(request.body),
            keys=signed_headers(request.headers),
        ).sign(self._node.secret)
        return {**request.headers, HEADER: signed}

    async def probe(self, url: str) -> None:
        """Raises OSError unless the node answers soon, on a connection of its own: one that was kept may be dead."""
        asked = HandedOn(method="GET", target="/v1/version", headers={})
        try:
            async with asyncio.timeout(CONNECT_S):
                answer = await self._send_signed(_PeerHttp(url, self._timeouts), asked, again=False)
                await answer.aclose()
        except TimeoutError as error:
            raise ConnectionError(f"{url} does not answer") from error


def back_headers(headers: Mapping[str, str]) -> Iterable[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items() if name not in _NOT_HANDED_BACK]
