"""Two clients at one session: both see everything, in one order, and either may cancel (B2, E1, E4)."""

import asyncio

import pytest
from processes import AROUND, open_site
from sessions import SessionClient, shared, terminal_events

from longboat.testing import Pause, Say, words
from longboat.wire.models import Outcome

pytestmark = [pytest.mark.acceptance, pytest.mark.parametrize("door", AROUND)]


async def test_e4_a_run_that_the_other_client_cancels_ends_for_both_with_the_same_bytes(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        site.model.add([*words("so far so good"), Pause(site.model.gate("hold")), Say(" never said")], name="long")
        anna = await site.session(site.project())
        ben = await site.back_at(anna)
        async with anna.watch("anna") as hers, ben.watch("ben") as his:
            await anna.submit("[[long]]", "r1")
            await site.model.gate("hold").reached()
            await his.text("good")
            assert await ben.cancel() == ["r1"]
            for watch in (hers, his):
                complete = await watch.complete("r1")
                assert (complete.outcome, complete.cancelled, complete.error) == (Outcome.CANCELED, True, "")
                assert complete.text == "so far so good"
                assert not [e for e in watch.events if e.type == "agent_event" and e.payload.type == "error"]
            await site.model.requests[0].ended.wait()
            assert site.model.requests[0].state == "abandoned", "the provider still streams for nobody"
            mine, theirs = shared(hers, his)
            assert mine == theirs
            assert b"run_complete" in mine[-1]
        assert await anna.check_books() == {"r1": "canceled"}


async def test_both_see_the_same_events_in_the_same_order_byte_for_byte_whoever_prompts(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        anna = await site.session(site.project())
        ben = await site.back_at(anna)
        other = await SessionClient.create(anna.http, anna.workspace)
        async with anna.watch("anna") as hers, ben.watch("ben") as his:
            both = [anna.submit(f"[[burst:300:{n + 1}]]", f"a{n}") for n in range(4)]
            both += [ben.submit(f"ben {n}", f"b{n}") for n in range(4)]
            both += [other.submit("[[burst:200]]", f"c{n}") for n in range(4)]
            runs = await asyncio.gather(*both)
            for run_id in runs:
                await hers.complete(run_id)
                await his.complete(run_id)
            mine, theirs = shared(hers, his)
            assert mine == theirs
            assert sorted(done.run_id for done in terminal_events(his.events)) == sorted(runs)
        assert set((await anna.check_books()).values()) == {"end_turn"}
        assert set((await other.check_books()).values()) == {"end_turn"}
