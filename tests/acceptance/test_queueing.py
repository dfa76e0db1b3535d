"""Prompts that find their session busy: queued in order, or taken into the running turn (L2, L8–L12)."""

import asyncio

import pytest
from processes import AROUND, Site, open_site
from sessions import SessionClient, check_request

from longboat.testing import CallTool, Pause, Say

pytestmark = [pytest.mark.acceptance, pytest.mark.parametrize("door", AROUND)]


async def _busy(site: Site, *after_the_gate: CallTool) -> SessionClient:
    """A session whose run "first" stands at the gate "hold"."""
    site.model.add([Say("first"), Pause(site.model.gate("hold")), *after_the_gate], name="first")
    session = await site.session(site.project())
    await session.submit("[[first]]", "first")
    await site.model.gate("hold").reached()
    return session


def _queue(session: SessionClient) -> str:
    return f"{session.workspace}/agent/sessions/{session.session_id}/prompts"


async def test_l2_a_cancel_of_an_idle_session_is_a_no_op_that_the_next_prompt_never_feels(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await site.session(site.project())
        for n in range(10):
            assert await session.cancel() == []
            await session.submit(f"prompt {n}", f"r{n}")
            assert await session.outcome(f"r{n}") == "end_turn"
        assert set((await session.check_books()).values()) == {"end_turn"}


async def test_l8_prompts_with_run_ids_wait_in_order_of_accept_and_run_as_turns_of_their_own(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await _busy(site)
        async with session.watch() as watch:
            answers = [(await session.ask(f"prompt {name}", name)).json() for name in "ABC"]
            assert [answer["position"] for answer in answers] == [1, 2, 3]
            for name in "ABC":
                await watch.state(name, "queued")
            waiting = (await session.http.get(f"{_queue(session)}/queued")).json()["items"]
            assert [(run["run_id"], run["position"]) for run in waiting] == [("A", 1), ("B", 2), ("C", 3)]
            site.model.gate("hold").open()
            completes = [await watch.complete(name) for name in ("first", "A", "B", "C")]
        assert [done.text for done in completes] == ["first", *(f"echo: prompt {name}" for name in "ABC")]
        assert [done.folded_into for done in completes] == [None] * 4
        assert [exchange.prompt for exchange in site.model.requests] == ["[[first]]", *(f"prompt {n}" for n in "ABC")]
        assert list(await session.check_books()) == ["first", "A", "B", "C"]


async def test_l9_l10_prompts_without_a_run_id_are_folded_into_the_running_turn_in_order(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await _busy(site, CallTool("nothing"))
        async with session.watch() as watch:
            steering = [await session.submit(f"prompt {name}") for name in "ABC"]
            for run_id in steering:
                await watch.state(run_id, "queued")
            site.model.gate("hold").open()
            completes = [await watch.complete(run_id) for run_id in ("first", *steering)]
        together = "prompt A\n\nprompt B\n\nprompt C"
        assert {(done.text, done.outcome) for done in completes} == {(f"echo: {together}", "end_turn")}
        assert [done.folded_into for done in completes] == [None, "first", "first", "first"]
        assert len(site.model.requests) == 2
        *_, tool, folded = check_request(site.model.requests[1].body)
        assert tool[0] == "tool"
        assert folded == ("user", together)
        assert list((await session.check_books()).values()) == ["end_turn"] * 4


async def test_l10_a_steering_prompt_that_finds_no_further_step_runs_as_its_own_turn(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await _busy(site)
        steering = [await session.submit(f"prompt {name}") for name in "AB"]
        queued = await session.submit("prompt C", "C")
        site.model.gate("hold").open()
        assert [await session.outcome(run_id) for run_id in (*steering, queued)] == ["end_turn"] * 3
        assert site.model.requests[0].prompt == "[[first]]"
        assert "prompt C" in site.model.requests[-1].prompt
        ledger = await session.ledger()
        assert [run["run_id"] for run in ledger] == ["first", *steering, queued]
        assert ledger[1]["folded_into"] is None
        await session.check_books()


async def test_l12_cancel_and_clear_reach_what_is_queued_and_only_what_they_name(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await _busy(site)
        for name in "ABC":
            await session.submit(f"prompt {name}", name)
        assert (await session.cancel_run("B"))["outcome"] == "canceled"
        assert (await session.http.post(f"{_queue(session)}/clear")).json() == {"canceled": ["A", "C"]}
        assert (await session.run("first"))["state"] == "active"
        await session.submit("prompt D", "D")
        site.model.gate("hold").open()
        assert [await session.outcome(name) for name in ("first", "D")] == ["end_turn", "end_turn"]
        expected = {"first": "end_turn", "A": "canceled", "B": "canceled", "C": "canceled", "D": "end_turn"}
        assert await session.check_books() == expected
        assert (await session.cancel_run("A"))["outcome"] == "canceled", "a second cancel reports how it ended"
        assert [text for _, text, _ in await session.transcript()] == [
            *("[[first]]", "first"),
            *("prompt D", "echo: prompt D"),
        ]


async def test_l12_once_the_step_of_a_folded_prompt_is_sent_it_is_too_late_to_cancel_it_alone(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        site.model.add(
            [CallTool("nothing"), Pause(site.model.gate("hold"))],
            [Say("with both"), Pause(site.model.gate("sent"))],
            name="first",
        )
        session = await site.session(site.project())
        await session.submit("[[first]]", "first")
        await site.model.gate("hold").reached()
        folded = await session.submit("[[first]] and this", "folded", delivery="steer")
        site.model.gate("hold").open()
        async with asyncio.timeout(60):
            await site.model.gate("sent").reached()
        late = await session.http.post(f"{session.workspace}/runs/{folded}/cancel")
        assert (late.status_code, late.json()["code"]) == (409, "too_late")
        assert "first" in late.json()["message"]
        assert await session.cancel_run("first")
        assert [await session.outcome(run_id) for run_id in ("first", folded)] == ["canceled", "canceled"]
        await session.check_books()
