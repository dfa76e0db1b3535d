"""Nodes trust each other by a signature over each request (G13)."""

from dataclasses import replace
from typing import Any

import pytest

from longboat.fleet.signature import VALID_S, Relayed, digest_of, verify

SECRET = b"secret"
SIGNED = Relayed(node="a", at=1000.5, method="POST", target="/v1/x?y=1", body_digest=digest_of(b"{}"), keys=("k", ""))


def check(header: str, **changes: Any) -> Relayed | None:
    asked: dict[str, Any] = {"method": "POST", "target": "/v1/x?y=1", "secret": SECRET, "now": 1010.0}
    asked["headers"] = {"idempotency-key": "k", "accept": "*/*"}
    return verify(header, **(asked | changes))


def test_a_signed_request_is_known() -> None:
    assert check(SIGNED.sign(SECRET)) == SIGNED


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "GET"},
        {"target": "/v1/x?y=2"},
        {"headers": {}},
        {"headers": {"idempotency-key": "other"}},
        {"headers": {"idempotency-key": "k", "last-event-id": "w/1/1"}},
        {"secret": b"another"},
        {"now": 1000.5 + VALID_S + 1},
        {"now": 1000.5 - VALID_S - 1},
    ],
)
def test_it_is_good_for_this_request_alone_and_for_a_moment(changes: dict[str, Any]) -> None:
    assert check(SIGNED.sign(SECRET), **changes) is None


@pytest.mark.parametrize("other", [{"node": "b"}, {"at": 1001.0}, {"body_digest": digest_of(b"[]")}])
def test_no_part_of_it_can_be_changed(other: dict[str, Any]) -> None:
    mac = SIGNED.sign(SECRET).rpartition(" ")[2]
    forged = replace(SIGNED, **other).sign(SECRET).rpartition(" ")[0]
    assert check(f"{forged} {mac}") is None


@pytest.mark.parametrize("header", ["", "a", "a b c d", "a 1 2", "a nan x y", "a 1 2 3 4", "a 1e999 x é"])
def test_nonsense_is_not_known(header: str) -> None:
    assert check(header) is None
