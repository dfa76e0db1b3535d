"""Nodes trust each other by a secret that all of them have: a relayed request carries a signature over itself.

Pure. The time is the database's, so the clocks of the nodes do not matter.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

HEADER = "longboat-relay"
VALID_S = 30.0
"""How old a signature may be, and how far in the future: nodes estimate the database's time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relayed:
    """What a node says about a request that it hands on."""

    node: str
    at: float
    method: str
    target: str
    body_digest: str
    keys: tuple[str, ...]
    """What `signed_headers` found in the request."""

    def sign(self, secret: bytes) -> str:
        return f"{self.node} {self.at:.3f} {self.body_digest} {self._mac(secret)}"

    def _mac(self, secret: bytes) -> str:
        signed = "\n".join((self.node, f"{self.at:.3f}", self.body_digest, self.method, self.target, *self.keys))
        return hmac.digest(secret, signed.encode(), hashlib.sha256).hex()


def signed_headers(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The headers that decide what a request does: which change it repeats, and where a stream continues."""
    return tuple(headers.get(name, "") for name in ("idempotency-key", "last-event-id"))


def verify(
    header: str, *, method: str, target: str, headers: Mapping[str, str], secret: bytes, now: float
) -> Relayed | None:
    """The request as its node has signed it; None if another has, or for another request, or too long ago. The body is
    not here yet: compare it with the digest."""
    try:
        node, at, digest, mac = header.split(" ")
        relayed = Relayed(
            node=node,
            at=float(at),
            method=method,
            target=target,
            body_digest=digest,
            keys=signed_headers(headers),
        )
    except ValueError:
        return None
    known = hmac.compare_digest(mac.encode(), relayed._mac(secret).encode())
    return relayed if known and abs(now - relayed.at) <= VALID_S else None


def digest_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
