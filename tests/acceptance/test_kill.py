"""kill -9 at every place that matters, then a restart: nothing accepted is lost, nothing ends twice (E2, B6, L15).

With "door", only the owner is killed: the door of its clients lives on, keeps their streams, and asks again for what
was not answered. `test_nodes_kill.py` also kills doors, and lets other nodes take over.
"""

import asyncio
from contextlib import suppress

import httpx2
import pytest
from processes import AROUND, Site, open_site
from sessions import SessionClient, Watch, check_request, shared, terminal_events

from longboat.core.commands import CANCEL_BATCH
from longboat.core.prompts import GO_ON
from longboat.testing import CallTool, Hang, Pause, Say, words

pytestmark = pytest.mark.acceptance

around = pytest.mark.parametrize("door", AROUND)

ACCEPTED = '"state":"accepted"'
ACTIVE = '"state":"active"'
QUEUED = '"state":"queued"'
CANCEL_REQUESTED = '"cancel_requested":true'
COMPLETE = "event: run_complete"


async def _restart(site: Site, session: SessionClient) -> SessionClient:
    await site.serve()
    return await site.back_at(session)


async def _ask_in_vain(site: Site, session: SessionClient, prompt: str, run_id: str) -> SessionClient:
    """A prompt whose server dies before it answers, and starts again. Only a door has an answer then."""
    asked = asyncio.create_task(session.submit(prompt, run_id))
    await site.died()
    back = await _restart(site, session)
    if site.outlives:
        assert await asked == run_id
    else:
        with pytest.raises(httpx2.TransportError):
            await asked
    return back


async def _check_cut(site: Site, watch: Watch) -> None:
    """The stream of a killed server ends; through a door it goes on (G4)."""
    if site.outlives:
        assert not watch.closed
    else:
        await watch.end()


# At accept


@around
async def test_b6_killed_between_accept_and_202_the_same_run_id_finds_the_same_run_and_one_end(door: str) -> None:
    async with open_site(door) as site:
        await site.serve("--committed", ACCEPTED)
        session = await site.session(site.project())
        session = await _ask_in_vain(site, session, "hello", "r1")
        again = (await session.ask("hello", "r1")).json()
        assert (again["run_id"], again["seq"]) == ("r1", (await session.run("r1"))["seq"])
        assert (await session.ask("something else", "r1")).json()["code"] == "run_id_taken"
        assert await session.outcome("r1") == "end_turn"
        assert await session.check_books() == {"r1": "end_turn"}
        assert len(site.model.requests) == 1, "it ran twice"


@around
async def test_l15_killed_just_before_the_commit_of_an_accept_nothing_is_there_and_the_resend_is_new(door: str) -> None:
    async with open_site(door) as site:
        await site.serve("--uncommitted", ACCEPTED)
        session = await site.session(site.project())
        session = await _ask_in_vain(site, session, "hello", "r1")
        if not site.outlives:  # the door has sent it again
            assert await session.ledger() == []
            assert await session.messages() == []
            assert (await session.http.get(f"{session.workspace}/runs/r1")).status_code == 404
            await session.submit("hello", "r1")
        assert await session.outcome("r1") == "end_turn"
        assert await session.check_books() == {"r1": "end_turn"}
        assert len(site.model.requests) == 1, "it ran twice"


@pytest.mark.parametrize("place", [("--committed", ACTIVE), ("--uncommitted", ACTIVE)])
async def test_b6_killed_while_it_enters_an_accepted_run_ends_once(place: tuple[str, str]) -> None:
    async with open_site() as site:
        await site.serve(*place)
        session = await site.session(site.project())
        await asyncio.wait([asyncio.create_task(session.ask("hello", "r1"))])
        await site.died()
        session = await _restart(site, session)
        if place[0] == "--uncommitted":
            assert await session.ledger() == []  # accept and start are one commit
            await session.submit("hello", "r1")
        assert await session.outcome("r1") == "end_turn"
        assert await session.check_books() == {"r1": "end_turn"}
        assert len(site.model.requests) == 1
        assert [role for role, _, _ in await session.transcript()] == ["user", "assistant"]


# Queued and in mid-stream


async def _load(site: Site, session: SessionClient) -> None:
    """One run in mid-stream at the gate "hold", three behind it."""
    site.model.add([*words("half an answer"), Pause(site.model.gate("hold")), Say("!")], name="half", repeat=True)
    await session.submit("[[half]]", "active")
    await site.model.gate("hold").reached()
    for name in "ABC":
        await session.submit(f"prompt {name}", name)


@pytest.mark.parametrize("door", [*AROUND, "postgres"])
async def test_b6_killed_in_mid_stream_the_active_run_is_repaired_and_the_queue_runs_in_order(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await site.session(site.project())
        async with session.watch() as before:
            await _load(site, session)
            await before.text("answer")
            await before.state("C", "queued")
            await site.kill()
            await _check_cut(site, before)
        session = await _restart(site, session)
        async with session.watch(after=before.cursor) as after:
            completes = [await after.complete(name) for name in ("active", "A", "B", "C")]
        assert [done.outcome for done in completes] == ["interrupted", *["end_turn"] * 3]
        assert completes[0].text == "half an answer"
        assert completes[0].error
        assert [done.run_id for done in terminal_events(after.events)] == ["active", "A", "B", "C"]
        whole = await session.replay()
        seen, replayed = shared(before, whole)
        assert seen == replayed, "the log changed what a client had already seen"
        seen, replayed = shared(after, whole)
        assert seen == replayed
        assert list((await session.check_books()).values()) == ["interrupted", *["end_turn"] * 3]
        assert (await session.transcript())[:2] == [
            ("user", "[[half]]", ""),
            ("assistant", "half an answer", "interrupted"),
        ]
        first = check_request(site.model.requests[1].body)
        assert first == [("user", "[[half]]"), ("assistant", "half an answer"), ("user", "prompt A")]
        assert [exchange.prompt for exchange in site.model.requests[1:]] == ["prompt A", "prompt B", "prompt C"]


@around
async def test_t3_killed_in_the_middle_of_a_tool_call_the_next_request_has_its_result(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        site.model.add([Say("I look"), CallTool("look", {"at": "x"}), Pause(site.model.gate("hold"))], name="tool")
        session = await site.session(site.project())
        async with session.watch() as watch:
            await session.submit("[[tool]]", "r1")
            await site.model.gate("hold").reached()
            await watch.text('"x"}')
            await site.kill()
        session = await _restart(site, session)
        assert await session.outcome("r1") == "interrupted"
        await session.submit("go on", "r2")
        assert await session.outcome("r2") == "end_turn"
        roles = [role for role, _ in check_request(site.model.requests[-1].body)]
        assert roles == ["user", "assistant", "tool", "user"]
        await session.check_books()


@around
async def test_b6_folded_runs_end_with_their_host(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        site.model.add([CallTool("nothing"), Pause(site.model.gate("hold"))], name="host")
        site.model.add([Say("both"), Hang()], name="deep")
        session = await site.session(site.project())
        async with session.watch() as watch:
            await session.submit("[[host]]", "host")
            await site.model.gate("hold").reached()
            await session.submit("[[deep]]", "folded", delivery="steer")
            await watch.state("folded", "queued")
            site.model.gate("hold").open()
            await watch.state("folded", "folded")
            await watch.text("both")
            await site.kill()
        session = await _restart(site, session)
        assert await session.check_books() == {"host": "interrupted", "folded": "interrupted"}
        assert (await session.run("folded"))["folded_into"] == "host"


@around
async def test_b6_killed_between_the_two_restarts_recovery_itself_can_be_repeated(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await site.session(site.project())
        async with session.watch() as watch:
            await _load(site, session)
            await watch.state("C", "queued")
            await site.kill()
        for place in ("--uncommitted", "--committed"):  # the commit that settles the active run and starts the next
            process = await site.launch(place, COMPLETE)
            await process.wait()
        session = await _restart(site, session)
        for name in "ABC":
            await session.outcome(name)
        outcomes = await session.check_books()
        # The second start had settled "active" and made A active. It had done nothing yet: the third started it again.
        assert outcomes == {"active": "interrupted", "A": "end_turn", "B": "end_turn", "C": "end_turn"}


# The end


@around
async def test_e2_killed_between_the_terminal_commit_and_its_publishing_replay_delivers_it(door: str) -> None:
    async with open_site(door) as site:
        await site.serve("--committed", COMPLETE)
        session = await site.session(site.project())
        async with session.watch() as before:
            await session.submit("hello", "r1")
            await site.died()
            await _check_cut(site, before)
        assert terminal_events(before.events) == []
        session = await _restart(site, session)
        async with session.watch(after=before.cursor) as after:
            complete = await after.complete("r1")
        assert (complete.outcome, complete.text) == ("end_turn", "echo: hello")
        assert await session.check_books() == {"r1": "end_turn"}
        assert len(site.model.requests) == 1


@around
async def test_e2_killed_just_before_the_terminal_commit_the_run_is_settled_by_the_next_start(door: str) -> None:
    async with open_site(door) as site:
        await site.serve("--uncommitted", COMPLETE)
        session = await site.session(site.project())
        await session.submit("hello", "r1")
        await site.died()
        session = await _restart(site, session)
        assert await session.check_books() == {"r1": "interrupted"}
        role, text, finish = (await session.transcript())[-1]
        assert (role, finish) == ("assistant", "interrupted")
        assert "echo: hello".startswith(text), "words that nobody had seen yet may go down with the commit"


# Cancels


@pytest.mark.parametrize(
    ("door", "policy", "place"),
    [
        ("unix", "interrupt", ("--committed", CANCEL_REQUESTED)),
        ("unix", "interrupt", ("--uncommitted", COMPLETE)),
        ("unix", "resume", ("--committed", CANCEL_REQUESTED)),
        ("unix", "resume", ("--uncommitted", COMPLETE)),
        ("door", "interrupt", ("--uncommitted", COMPLETE)),
        ("door", "resume", ("--committed", CANCEL_REQUESTED)),
    ],
)
async def test_b6_a_cancel_on_disk_holds_after_the_crash_and_is_never_resumed(
    door: str, policy: str, place: tuple[str, str]
) -> None:
    async with open_site(door) as site:
        await site.serve(*place)
        site.model.add([Say("so far"), Hang()], name="hang", repeat=True)
        session = await site.session(site.project(on_restart=policy))
        async with session.watch() as watch:
            await session.submit("[[hang]]", "r1")
            await watch.text("so far")
            # The server dies on it: before the answer, or while the turn unwinds.
            asked = asyncio.create_task(session.http.post(f"{session.workspace}/runs/r1/cancel"))
            await site.died()
        session = await _restart(site, session)
        await asyncio.wait([asked])
        assert await session.check_books() == {"r1": "canceled"}
        assert (await session.transcript())[-1] == ("assistant", "so far", "canceled")
        assert len(site.model.requests) == 1


@around
async def test_b6_a_cancel_of_the_session_that_was_answered_covers_active_and_queued_after_the_crash(door: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await site.session(site.project())
        async with session.watch() as watch:
            await _load(site, session)
            await watch.state("C", "queued")
            canceled = await session.cancel()
            await site.kill()
        assert sorted(canceled) == ["A", "B", "C", "active"]
        session = await _restart(site, session)
        assert await session.check_books() == dict.fromkeys(("active", "A", "B", "C"), "canceled")
        assert len(site.model.requests) == 1


# Summarizing


async def _long_session(site: Site, **config: str) -> SessionClient:
    """A session whose next prompt has to be preceded by a summary."""
    site.model.add([Say("much " * 700)], name="long")
    session = await site.session(site.project(context_window=1000, **config))
    await session.submit("[[long]]", "long")
    assert await session.outcome("long") == "end_turn"
    return session


@pytest.mark.parametrize(("door", "policy"), [("unix", "interrupt"), ("unix", "resume"), ("door", "resume")])
async def test_t8_killed_during_summarizing_the_session_goes_on(door: str, policy: str) -> None:
    async with open_site(door) as site:
        await site.serve()
        session = await _long_session(site, on_restart=policy)
        site.model.add(
            [Say("half a sum"), Pause(site.model.gate("hold"))],
            [Say("the summary")],
            [Say("the answer")],
            name="next",
        )
        async with session.watch() as watch:
            await session.submit("[[next]]", "r1")
            await site.model.gate("hold").reached()
            await watch.text("half a sum")
            assert [e.payload.type for e in watch.events if e.type == "agent_event"][-1] == "summarizing"
            await site.kill()
        session = await _restart(site, session)
        assert await session.outcome("r1") == ("end_turn" if policy == "resume" else "interrupted")
        if policy == "interrupt":
            await session.submit("[[next]] please", "r2")
            assert await session.outcome("r2") == "end_turn"
        await session.check_books()
        summarizing, answering = (check_request(exchange.body) for exchange in site.model.requests[-2:])
        assert "much much" in summarizing[1][1]
        assert len(answering) == 1
        assert "the summary" in answering[0][1]
        assert "[[next]]" in answering[0][1], "the request it is working on is part of the summary"
        assert (await session.transcript())[-1] == ("assistant", "the answer", "end_turn")


@around
async def test_t8_killed_right_after_the_summary_was_committed_the_next_request_begins_with_it(door: str) -> None:
    async with open_site(door) as site:
        await site.serve("--committed", GO_ON.strip())
        session = await _long_session(site)
        site.model.add([Say("the summary")], name="next")
        site.model.add([Say("fine")], name="now")
        await session.submit("[[next]]", "r1")
        await site.died()
        session = await _restart(site, session)
        assert await session.outcome("r1") == "interrupted"
        await session.submit("[[now]]", "r2")
        assert await session.outcome("r2") == "end_turn"
        request = check_request(site.model.requests[-1].body)
        assert "the summary" in request[0][1]
        assert not any("much much" in text for _, text in request)
        await session.check_books()


# Between the batches of a large cancel


@pytest.mark.parametrize(
    ("door", "policy", "place"),
    [
        ("unix", "interrupt", "--committed"),
        ("unix", "interrupt", "--uncommitted"),
        ("unix", "resume", "--committed"),
        ("unix", "resume", "--uncommitted"),
        ("door", "interrupt", "--uncommitted"),
        ("door", "resume", "--committed"),
    ],
)
async def test_b6_l9_d11_killed_after_the_first_commit_of_a_large_cancel_nothing_that_it_covers_runs(
    door: str, policy: str, place: str
) -> None:
    async with open_site(door) as site:
        await site.serve(place, '"outcome":"canceled"', "--nth", "2")
        site.model.add([Say("busy"), Hang()], name="hang")
        session = await site.session(site.project(on_restart=policy))
        queued = [f"q{number}" for number in range(3 * CANCEL_BATCH)]
        await session.submit("[[hang]]", "active")
        for run_id in queued:
            await session.submit("never", run_id)
        canceled = asyncio.create_task(session.cancel())
        await site.died()
        asked = len(site.model.requests)
        session = await _restart(site, session)
        # The second commit may come before the answer is out. A door asks again, and is given the first answer.
        with suppress(*() if site.outlives else (httpx2.TransportError,)):
            assert await canceled == ["active", *queued]
        assert await session.outcome(queued[-1]) == "canceled"
        assert await session.check_books() == dict.fromkeys(("active", *queued), "canceled")
        await session.submit("hello", "later")
        assert await session.outcome("later") == "end_turn"
        assert len(site.model.requests) == asked + 1
