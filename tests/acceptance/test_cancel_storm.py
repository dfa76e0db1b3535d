"""Cancels that come as early as they can: none is lost, none outlives its prompts (L3, L5–L7, T2, E1)."""

import asyncio
import random

import pytest
from processes import Door, Site, open_site
from sessions import SessionClient, check_request

from longboat.testing import Hang, Say

pytestmark = pytest.mark.acceptance

SESSIONS_EACH_DOOR = 5
CANCELS_EACH = 50


async def test_l3_l6_500_cancels_up_to_2_ms_after_202_lose_no_run_and_leave_the_next_prompt_alone() -> None:
    async with open_site("tcp") as site:
        await site.serve()
        # It never ends by itself: a run whose cancel was lost would be found hanging.
        site.model.add([Say("x"), Hang()], name="hang", repeat=True)
        site.model.add([Say("fine")], name="fine", repeat=True)
        directory = site.project()
        sessions = [await site.session(directory, door) for door in Door for _ in range(SESSIONS_EACH_DOOR)]
        await asyncio.gather(*(_storm(session, name) for name, session in enumerate(sessions)))
        for name, session in enumerate(sessions):
            assert await session.check_books() == _expected(name)
            await _check_transcript(session)
        await _check_model(site, sessions[0])


def _expected(name: int) -> dict[str, str]:
    ends = {"victim": "canceled", "next": "end_turn"}
    return {f"{role}-{name}-{n}": outcome for n in range(CANCELS_EACH) for role, outcome in ends.items()}


async def _storm(session: SessionClient, name: int) -> None:
    """Each prompt is canceled at once, and another comes right behind the cancel."""
    dice = random.Random(name)
    for n in range(CANCELS_EACH):
        victim, following = f"victim-{name}-{n}", f"next-{name}-{n}"
        await dice.choice((_cancel_after, _cancel_before_the_answer))(session, victim, dice)
        await session.submit("[[fine]]", following)
        assert await session.outcome(victim) == "canceled"
        assert await session.outcome(following) == "end_turn"


async def _cancel_after(session: SessionClient, run_id: str, dice: random.Random) -> None:
    await session.submit("[[hang]]", run_id)
    await asyncio.sleep(dice.uniform(0, 0.002))
    await _cancel(session, run_id, dice)


async def _cancel(session: SessionClient, run_id: str, dice: random.Random) -> None:
    if dice.random() < 0.5:
        assert run_id in await session.cancel()
    else:
        assert (await session.cancel_run(run_id))["cancel_requested"]


async def _cancel_before_the_answer(session: SessionClient, run_id: str, dice: random.Random) -> None:
    """Sent while the prompt is on its way: a cancel that came first did nothing, and says so."""
    submitting = asyncio.create_task(session.submit("[[hang]]", run_id))
    await asyncio.sleep(dice.uniform(0, 0.001))
    reached = run_id in await session.cancel()
    await submitting
    if not reached:
        assert (await session.run(run_id))["cancel_requested"] is False
        await _cancel(session, run_id, dice)


async def _check_transcript(session: SessionClient) -> None:
    """T2: a canceled prompt is there once or, if it was canceled while queued, not at all; its answer says so."""
    turns: dict[str, list[tuple[str, str]]] = {}
    for message in await session.messages():
        finish = "".join(part["reason"] for part in message["parts"] if part["type"] == "finish")
        turns.setdefault(message["run_id"], []).append((message["role"], finish))
    for run_id, turn in turns.items():
        assert turn == [("user", ""), ("assistant", "canceled" if "victim" in run_id else "end_turn")]
    assert sum("next" in run_id for run_id in turns) == CANCELS_EACH


async def _check_model(site: Site, session: SessionClient) -> None:
    """T3: after all of this the model is still asked in a way it takes, and nothing streams for nobody."""
    await session.outcome(await session.submit("[[fine]]", "last"))
    check_request(site.model.requests[-1].body)
    async with asyncio.timeout(30):
        for exchange in site.model.requests:
            await exchange.ended.wait()
