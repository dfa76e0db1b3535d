"""Forks: a second session that begins as the first one stands; and what goes with a session that is deleted."""

import json
from pathlib import Path
from typing import Any

import pytest
from checks import check_ends, check_requests, check_transcript, replayed
from running_app import RunningApp, launch

from longboat.core.history import calls_of
from longboat.errors import NotFound, SessionNotFound
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel, ScriptedTool, Use
from longboat.testing.scripted import last_prompt
from longboat.wire.models import Message, Outcome, Role, ToolCallPart
from longboat.wire.requests import Approve, Summarize

BIG = 100_000


def call(name: str, **arguments: Any) -> CallTool:
    return CallTool(name, json.dumps(arguments))


def said(messages: Any) -> list[tuple[Role, Any]]:
    return [(message.role, message.parts) for message in messages]


async def forked(running: RunningApp, message_id: str | None = None) -> tuple[str, list[Message]]:
    session = await running.workspace.archive.fork(running.session_id, message_id)
    return session.id, list(await running.messages(session.id))


async def test_a_fork_goes_on_from_the_same_transcript_and_leaves_its_origin_alone(tmp_path: Path) -> None:
    """The copies have ids of their own and the same order; the model is shown the same."""
    model = ScriptedModel([[Say("one")], [Say("fork")], [Say("origin")]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("Mend the boat", "r1")
        await running.completed("r1")
        before = await running.messages()
        session_id, messages = await forked(running)
        session = await running.workspace.session(session_id)
        assert (session.title, session.parent_id) == ("Fork of Mend the boat", None)
        assert said(messages) == said(before)
        assert [message.seq for message in messages] == [message.seq for message in before]
        assert not {message.id for message in messages} & {message.id for message in before}
        assert {message.run_id for message in messages}.isdisjoint({"r1"})
        await running.submit("go on", "r2", session_id=session_id)
        await running.completed("r2")
        assert await running.messages() == before
        await running.submit("go on too", "r3")
        await running.completed("r3")
        assert said(model.requests[1].messages[:2]) == said(model.requests[2].messages[:2])
        assert replayed(running.watcher.events, session_id) == list(await running.messages(session_id))
        check_requests(model.requests)
        await check_ends(running)


async def test_a_fork_leaves_out_the_turn_that_is_under_way(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Say("one")], [Say("half"), Pause(gate), Say(" done")]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("first", "r1")
        await running.completed("r1")
        before = await running.messages()
        await running.submit("second", "r2")
        await gate.reached()
        _, messages = await forked(running)
        assert said(messages) == said(before)
        check_transcript(messages)
        gate.open()
        await running.completed("r2")
        await check_ends(running)


async def test_a_fork_at_a_message_takes_the_results_of_its_calls_along(tmp_path: Path) -> None:
    """T3: no call is left without its result."""
    model = ScriptedModel([[CallTool("look")], [Say("seen")], [Say("on")]], context_window=BIG)
    async with launch(tmp_path, model, tools=[ScriptedTool("look")]) as running:
        await running.submit("look", "r1")
        await running.completed("r1")
        calling = next(m for m in await running.messages() if any(isinstance(p, ToolCallPart) for p in m.parts))
        session_id, messages = await forked(running, calling.id)
        assert [message.role for message in messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
        await running.submit("on", "r2", session_id=session_id)
        assert (await running.completed("r2")).text == "on"
        check_requests(model.requests)
        with pytest.raises(NotFound) as refused:
            await running.workspace.archive.fork(running.session_id, "nope")
        assert refused.value.code == "message_not_found"
        with pytest.raises(SessionNotFound):
            await running.workspace.archive.fork("nope")


async def test_a_fork_keeps_the_summary_and_the_plan_and_what_was_read_but_no_grant(tmp_path: Path) -> None:
    """A2, A3, A7."""
    model = ScriptedModel(
        [
            [call("view", path="a.txt"), call("todos", items=[{"text": "paint"}])],
            [Say("ready"), Use(input_tokens=1)],
            [Say("The sum.")],
            [call("edit", path="a.txt", old_text="old", new_text="new")],
            [Say("done")],
        ],
        context_window=BIG,
    )
    async with launch(tmp_path, model) as running:
        (running.workspace.directory / "a.txt").write_text("old\n")
        await running.submit("read it", "r1", approve=Approve.ALL)
        await running.completed("r1")
        await running.workspace.summarize_session(running.session_id, Summarize(run_id="s"))
        await running.completed("s")
        session_id, _ = await forked(running)
        assert running.watcher.of("todo")[-1].session_id == session_id
        await running.submit("change it", "r2", session_id=session_id, approve=Approve.ALL)
        assert (await running.completed("r2")).text == "done"
        assert (running.workspace.directory / "a.txt").read_text() == "new\n"
        shown = model.requests[3].messages
        assert "The sum." in str(shown[0].parts)
        assert "paint" in str(shown[0].parts)
        assert len(shown) == 2
        grants = await running.workspace.store.read(lambda reader: reader.fetch("grants_of", session_id=session_id))
        assert grants == []


async def test_undo_in_a_fork_takes_back_no_file_of_its_origin(tmp_path: Path) -> None:
    """A4: other sessions' edits are never touched."""
    model = ScriptedModel([[call("write", path="a.txt", content="mine\n")], [Say("ok")]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("write", "r1", approve=Approve.ALL)
        await running.completed("r1")
        session_id, _ = await forked(running)
        undone = await running.workspace.undo_turn(session_id)
        assert undone.files == ()
        assert (running.workspace.directory / "a.txt").read_text() == "mine\n"
        assert await running.messages(session_id) == ()
        assert len(await running.messages()) == 4


async def test_a_fork_takes_along_what_its_sub_agents_did(tmp_path: Path) -> None:
    """Those of the calls that it takes along, and no others; each copy is its own."""

    def answer(request: Any) -> Any:
        prompt = last_prompt(request)
        if prompt in ("bow", "stern"):
            return [Say(f"The {prompt} is fine.")]
        return [Say("Done.")] if request.messages[-1].role is Role.TOOL else [call("agent", prompt=prompt[-5:].strip())]

    async with launch(tmp_path, ScriptedModel(answer, context_window=BIG)) as running:
        for run_id, prompt in (("r1", "look at the  bow"), ("r2", "look at the stern")):
            await running.submit(prompt, run_id, approve=Approve.ALL)
            await running.completed(run_id)
        first = next(message for message in await running.messages() if message.run_id == "r1" and calls_of(message))
        for upto, titles in ((None, ["bow", "stern"]), (first.id, ["bow"])):
            session_id, messages = await forked(running, upto)
            page = await running.workspace.ledger.sessions(limit=50, after=None)
            children = {each.title: each for each in page.items if each.parent_id == session_id}
            assert sorted(children) == titles
            assert {each.parent_call_id for each in children.values()} == {
                part.id for message in messages for part in calls_of(message)
            }
            (origin,) = (each for each in page.items if each.parent_id == running.session_id and each.title == "bow")
            copy = await running.messages(children["bow"].id)
            assert said(copy) == said(await running.messages(origin.id))
            assert replayed(running.watcher.events, children["bow"].id) == list(copy)


async def test_a_deleted_session_takes_its_sub_agents_sessions_along(tmp_path: Path) -> None:
    """A1: also while they work; every run ends once."""
    gate = Gate()

    def answer(request: Any) -> Any:
        return [Pause(gate)] if last_prompt(request) == "look" else [call("agent", prompt="look")]

    async with launch(tmp_path, ScriptedModel(answer, context_window=BIG)) as running:
        await running.submit("send somebody", "r1")
        await gate.reached()
        page = await running.workspace.ledger.sessions(limit=10, after=None)
        assert {session.parent_id for session in page.items} == {None, running.session_id}
        child = next(run for run in running.watcher.of("run") if run.parent_run_id == "r1")
        await running.workspace.delete_session(running.session_id)
        assert (await running.completed("r1")).outcome is Outcome.CANCELED
        assert (await running.completed(child.run_id)).outcome is Outcome.CANCELED
        assert (await running.workspace.ledger.sessions(limit=10, after=None)).items == ()
        gone = [e.payload.id for e in running.watcher.events if e.type == "session" and e.change == "deleted"]
        assert gone == [child.session_id, running.session_id]
