"""What a door makes of the answers of owners that come and go (G5, G9)."""

import asyncio
import dataclasses
import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from longboat.errors import LongboatError, OwnedElsewhere, ServerLeaving, StoreUnavailable
from longboat.fleet import owners
from longboat.fleet.door import DOUBT, KEY, Door
from longboat.fleet.node import Node
from longboat.fleet.relay import MISDIRECTED, HandedOn
from longboat.models.http_client import Answer
from longboat.runtime.app import App
from longboat.runtime.ownership import NODE_KEY
from longboat.store.postgres.nodes import Whereabouts
from longboat.wire.ids import repeated_key

OWNER = Whereabouts(home="", home_url=None, owner="a", owner_url="http://a", epoch=1, until=1.0, other_url=None)
NOBODY = dataclasses.replace(OWNER, owner=None, owner_url=None)

Told = tuple[int, str]
"""A status, and the code of a refusal."""
LOST, AWAY, ACCEPTED = (503, "owner_lost"), (503, "store_unavailable"), (202, "")
IN_DOUBT = "in doubt"
HANDS_OVER, LOST_THERE = (MISDIRECTED, ""), (MISDIRECTED, IN_DOUBT)


class Given:
    """An answer of another node."""

    def __init__(self, told: Told) -> None:
        self.status, code = told
        self.headers: Mapping[str, str] = {DOUBT: "1"} if code == IN_DOUBT else {}
        self._pieces = [json.dumps({"code": code, "message": "…"}).encode()]

    async def read(self) -> bytes:
        return self._pieces.pop() if self._pieces else b""

    async def aclose(self) -> None: ...


class StubNode:
    name = "b"
    url = "http://b"
    lease_s = 0.0
    leaving = False

    def __init__(self, whereabouts: Whereabouts) -> None:
        self.whereabouts = whereabouts

    def drop_expired(self) -> None: ...

    def when_peer_gone(self, told: Any) -> None: ...

    async def wait_leases_moved(self, timeout_s: float) -> None:
        await asyncio.sleep(0)

    async def find(self, workspace_id: str) -> Whereabouts:
        assert workspace_id == "w"
        return self.whereabouts


class TestedDoor(Door):
    """Its own routes, or the owner at another node, give these answers."""

    __test__ = False

    def __init__(self, *answers: Told, at: Whereabouts | None) -> None:
        self.left = list(answers)
        self.keys: list[str] = []
        self.node = StubNode(at or NOBODY)
        limits = SimpleNamespace(max_body_mb=1, max_import_mb=1)
        settings = SimpleNamespace(heartbeat_s=1.0, server=limits)
        app = SimpleNamespace(settings=settings, is_open=lambda _: at is None)
        super().__init__(self._answer_own, cast(App, app), cast(Node, self.node), refuse=self._refuse_with)

    async def ask_owner(self, url: str, workspace_id: str, request: HandedOn, *, again: bool) -> Answer:
        assert url == OWNER.owner_url
        self.keys.append(request.headers[KEY])
        return Given(self.left.pop(0))

    async def _answer_own(self, scope: Any, _receive: Any, send: Any) -> None:
        self.keys.append(dict(scope["headers"])[KEY.encode()].decode())
        status, code = self.left.pop(0)
        await self._tell(send, status, code)

    async def _refuse_with(self, error: LongboatError, send: Any) -> None:
        await self._tell(send, 503, error.code)

    async def _tell(self, send: Any, status: int, code: str) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps({"code": code, "message": "…"}).encode()})

    async def submit(self, *, leaves: bool = False) -> Told | None:
        """What a client is told that sends a prompt; None: nothing. `leaves`: it does not wait for the answer."""
        told: list[Any] = []
        come = iter([{"type": "http.request", "body": b"{}"}, *[{"type": "http.disconnect"}] * leaves])

        async def receive() -> Any:
            return next(come, None) or await asyncio.get_running_loop().create_future()

        async def send(message: Any) -> None:
            told.append(message)

        path = "/v1/workspaces/w/agent"
        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
        await self({**scope, "headers": []}, receive, send)
        if not told:
            return None
        body = json.loads(b"".join(each["body"] for each in told[1:]))
        return told[0]["status"], body["code"]


@pytest.mark.parametrize("at", [None, OWNER], ids=["here", "elsewhere"])
async def test_g5_a_store_that_cannot_be_written_proves_nothing_about_a_prompt_that_an_earlier_owner_had(
    at: Whereabouts | None,
) -> None:
    """The client would send it again, without a run_id, and have two runs."""
    door = TestedDoor(LOST if at is None else LOST_THERE, AWAY, AWAY, ACCEPTED, at=at)
    assert await door.submit() == ACCEPTED
    assert door.left == []
    first, *later = door.keys
    assert first.startswith(NODE_KEY)
    assert later == [repeated_key(first)] * 3, "each says that the request may have been done"


@pytest.mark.parametrize("at", [None, OWNER], ids=["here", "elsewhere"])
async def test_g5_a_prompt_whose_fate_stays_unknown_is_not_called_refused(
    at: Whereabouts | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "SUCCESSOR_WAIT_S", 0.0)
    assert await TestedDoor(LOST if at is None else LOST_THERE, at=at).submit() == LOST


@pytest.mark.parametrize("error", [OwnedElsewhere("w"), ServerLeaving(), StoreUnavailable("away")])
async def test_g5_nor_if_no_next_owner_is_found_in_time(error: LongboatError, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by chaos: it was refused as owned elsewhere, and ran."""
    door = TestedDoor(LOST_THERE, at=OWNER)

    async def find(_workspace_id: str) -> Whereabouts:
        if not door.left:
            raise error
        return OWNER

    monkeypatch.setattr(door.node, "find", find)
    monkeypatch.setattr(door.node, "lease_s", 1.0)
    monkeypatch.setattr(owners, "SUCCESSOR_WAIT_S", -0.9)
    assert await door.submit() == LOST


@pytest.mark.parametrize("at", [None, OWNER], ids=["here", "elsewhere"])
async def test_g10_a_prompt_that_no_owner_before_has_seen_is_refused_at_once(at: Whereabouts | None) -> None:
    door = TestedDoor(AWAY, ACCEPTED, at=at)
    assert await door.submit() == AWAY
    assert door.left == [ACCEPTED]


def be_late(door: TestedDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner's drain has taken longer than a lease already."""
    monkeypatch.setattr(owners, "SUCCESSOR_WAIT_S", 60.0)
    search = door.owners.search("w")
    search._deadline = 0.0
    monkeypatch.setattr(door.owners, "search", lambda _: search)


async def test_g9_a_prompt_waits_longer_than_a_lease_for_an_owner_that_lets_its_turns_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door = TestedDoor(*[HANDS_OVER] * 5, ACCEPTED, at=OWNER)
    be_late(door, monkeypatch)
    assert await door.submit() == ACCEPTED


async def test_g9_the_owner_itself_waits_as_long_as_other_doors(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answered `owner_lost` after a lease, although nothing had been done."""
    door = TestedDoor(*[(409, "workspace_closing")] * 5, ACCEPTED, at=None)
    door.node.whereabouts = OWNER
    be_late(door, monkeypatch)
    assert await door.submit() == ACCEPTED


@pytest.mark.parametrize("hopeless", [False, True])
async def test_g9_it_does_not_wait_for_ever(hopeless: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for an owner that takes too long, nor for one whose lease is over and that nobody replaces."""
    monkeypatch.setattr(owners, "SUCCESSOR_WAIT_S", 60.0 if hopeless else 0.0)
    if hopeless:
        monkeypatch.setattr(owners, "HAND_OVER_S", 0.0)
    door = TestedDoor(*[HANDS_OVER] * 3, at=OWNER)
    if not hopeless:
        answers = iter([OWNER, NOBODY])

        async def find(_workspace_id: str) -> Whereabouts:
            return next(answers)

        monkeypatch.setattr(door.node, "find", find)
    assert await door.submit() == (503, "owner_unreachable")
    assert len(door.left) == 2


async def test_g9_the_usual_patience_begins_when_the_owner_has_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    door = TestedDoor(*[HANDS_OVER] * 3, ACCEPTED, at=OWNER)
    find = door.node.find
    be_late(door, monkeypatch)

    async def find_after_hand_over(workspace_id: str) -> Whereabouts:
        """The lease is free when the door looks who has it after the second answer."""
        found = await find(workspace_id)
        is_free = len(door.left) == 2 and not free.append(True) and len(free) == 1
        return NOBODY if is_free else found

    free: list[bool] = []
    monkeypatch.setattr(door.node, "find", find_after_hand_over)
    assert await door.submit() == ACCEPTED
    assert free


async def test_g5_a_prompt_whose_client_has_left_is_not_tried_again() -> None:
    """It asks again, perhaps without a key: there would be two runs."""
    door = TestedDoor(*[HANDS_OVER] * 3, ACCEPTED, at=OWNER)
    door.node.lease_s = 60.0
    assert await door.submit(leaves=True) is None
    assert ACCEPTED in door.left
