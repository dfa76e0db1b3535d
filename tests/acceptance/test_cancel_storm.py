"""Cancels that come as early as they can: none is lost, none outlives its prompts (L3, L5–L7, T2, E1)."""

import asyncio
import random
from dataclasses import replace

import pytest
from processes import Door, Site, open_site
from sessions import SessionClient, check_request

from longboat.testing import Hang, Say

pytestmark = pytest.mark.acceptance

SESSIONS = 10
CANCELS_EACH = {"tcp": 50, "door": 8}


@pytest.mark.parametrize("door", CANCELS_EACH)
async def test_l3_l6_500_cancels_up_to_2_ms_after_202_lose_no_run_and_leave_the_next_prompt_alone(door: str) -> None:
    """Prompts and cancels of a session come each by one of two ways: the unix socket of its owner and TCP, which with
    "door" leads to another node."""
    async with open_site(door) as site:
        await site.serve()
        # It never ends by itself: a run whose cancel was lost would be found hanging.
        site.model.add([Say("x"), Hang()], name="hang", repeat=True)
        site.model.add([Say("fine")], name="fine", repeat=True)
        directory = site.project()
        sessions = [await site.session(directory) for _ in range(SESSIONS)]
        at_socket = await site.client(Door.UNIX)
        storms = [_Storm((session, replace(session, http=at_socket)), n) for n, session in enumerate(sessions)]
        await asyncio.gather(*(storm.run(CANCELS_EACH[door]) for storm in storms))
        for storm in storms:
            assert await storm.ways[0].check_books() == storm.expected
            await _check_transcript(storm.ways[0], CANCELS_EACH[door])
        await _check_model(site, sessions[0])


class _Storm:
    """What is done to one session."""

    def __init__(self, ways: tuple[SessionClient, ...], name: int) -> None:
        self.ways = ways
        self.expected: dict[str, str] = {}
        self._name = name
        self._dice = random.Random(name)

    @property
    def _session(self) -> SessionClient:
        return self._dice.choice(self.ways)

    async def run(self, cancels: int) -> None:
        """Each prompt is canceled at once, and another comes right behind the cancel."""
        for n in range(cancels):
            victim, following = f"victim-{self._name}-{n}", f"next-{self._name}-{n}"
            await self._dice.choice((self._cancel_after, self._cancel_before_the_answer))(victim)
            await self._session.submit("[[fine]]", following)
            assert await self._session.outcome(victim) == "canceled"
            assert await self._session.outcome(following) == "end_turn"
            self.expected |= {victim: "canceled", following: "end_turn"}

    async def _cancel_after(self, run_id: str) -> None:
        await self._session.submit("[[hang]]", run_id)
        await asyncio.sleep(self._dice.uniform(0, 0.002))
        await self._cancel(run_id)

    async def _cancel(self, run_id: str) -> None:
        if self._dice.random() < 0.5:
            assert run_id in await self._session.cancel()
        else:
            assert (await self._session.cancel_run(run_id))["cancel_requested"]

    async def _cancel_before_the_answer(self, run_id: str) -> None:
        """Sent while the prompt is on its way: a cancel that came first did nothing, and says so."""
        submitting = asyncio.create_task(self._session.submit("[[hang]]", run_id))
        await asyncio.sleep(self._dice.uniform(0, 0.001))
        reached = run_id in await self._session.cancel()
        await submitting
        if not reached:
            assert (await self._session.run(run_id))["cancel_requested"] is False
            await self._cancel(run_id)


async def _check_transcript(session: SessionClient, cancels: int) -> None:
    """T2: a canceled prompt is there once or, if it was canceled while queued, not at all; its answer says so."""
    turns: dict[str, list[tuple[str, str]]] = {}
    for message in await session.messages():
        finish = "".join(part["reason"] for part in message["parts"] if part["type"] == "finish")
        turns.setdefault(message["run_id"], []).append((message["role"], finish))
    for run_id, turn in turns.items():
        assert turn == [("user", ""), ("assistant", "canceled" if "victim" in run_id else "end_turn")]
    assert sum("next" in run_id for run_id in turns) == cancels


async def _check_model(site: Site, session: SessionClient) -> None:
    """T3: after all of this the model is still asked in a way it takes, and nothing streams for nobody."""
    await session.outcome(await session.submit("[[fine]]", "last"))
    check_request(site.model.requests[-1].body)
    async with asyncio.timeout(30):
        for exchange in site.model.requests:
            await exchange.ended.wait()
