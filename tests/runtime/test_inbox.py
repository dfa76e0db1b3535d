"""The inbox: what waits and what has ended in all workspaces, for whom it is news, and its stream."""

import asyncio
import gc
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from crash import RESUME, restarted
from inboxes import follow_inbox
from running_app import TITLES_OFF, RunningApp, launch, settings_in
from scenario import Parts, call, open_scenario

from longboat.errors import AlreadyAnswered, ModelError
from longboat.runtime.app import App, open_app
from longboat.store.sqlite.store import SqliteStore
from longboat.testing import Fail, Gate, Pause, Say, ScriptedModel
from longboat.wire.asks import PermissionAnswer, Question
from longboat.wire.inbox import InboxChange, InboxKind, InboxPage, MarkSeen
from longboat.wire.models import Delivery, Outcome
from longboat.wire.requests import AnswerPermission, AnswerQuestion, Approve, CreateSession, Submit, UpdateSession
from longboat.wire.sse import HEARTBEAT

TOUCH = call("bash", command="touch made")
ASK = call("question", text="Which one?", choices=["a", "b"])


async def inbox(app: App, client_id: str = "ann:tui", **page: Any) -> InboxPage:
    return await app.inbox.page(client_id, before=page.get("before"), limit=page.get("limit", 50))


async def kinds(app: App, client_id: str = "ann:tui") -> list[str]:
    return [item.kind.value for item in (await inbox(app, client_id)).items]


@asynccontextmanager
async def two_workspaces(tmp_path: Path, *steps: Any) -> AsyncIterator[tuple[RunningApp, str, str]]:
    """A running app, and a second workspace of its app with a session that has its own model steps."""
    model = ScriptedModel(list(steps))
    async with launch(tmp_path, model) as running:
        other = tmp_path / "other"
        other.mkdir()
        workspace, _ = await running.app.join(str(other), None)
        session = await workspace.create_session(CreateSession(title="Elsewhere"))
        yield running, workspace.id, session.id


async def test_asks_of_all_workspaces_are_there_newest_first_with_what_is_needed_to_answer(tmp_path: Path) -> None:
    steps = [[TOUCH], [ASK], [Say("ok")], [Say("ok")]]
    async with two_workspaces(tmp_path, *steps) as (running, other_id, session_id), follow_inbox(running.app) as ann:
        await running.submit("first\nprompt", "r1", client_id="ben:cli")
        await ann.until(lambda mirror: mirror.waiting == 1)
        other = await running.app.workspace(other_id)
        await other.submit(Submit(session_id=session_id, prompt="second", run_id="r1"))
        mirror = await ann.until(lambda mirror: mirror.waiting == 2)
        question, permission = mirror.items
        assert [item.kind for item in mirror.items] == [InboxKind.QUESTION, InboxKind.PERMISSION]
        assert (question.workspace_id, question.workspace_path) == (other_id, str(tmp_path / "other"))
        assert (question.session_id, question.session_title) == (session_id, "Elsewhere")
        assert (permission.text, permission.client_id, permission.seen) == ("first\nprompt", "ben:cli", False)
        assert permission.permission is not None
        assert question.question is not None
        page = await inbox(running.app)
        assert (page.items, page.waiting, page.unseen, page.next) == ((question, permission), 2, 0, None)
        await other.asks.answer_question(question.question.id, AnswerQuestion(answer=("a",)))
        allow = AnswerPermission(answer=PermissionAnswer.ONCE)
        await running.workspace.asks.answer_permission(permission.permission.id, allow)
        mirror = await ann.until(lambda mirror: mirror.unseen == 2)
        assert {item.kind for item in mirror.items} == {InboxKind.FINISHED}
        assert mirror.waiting == 0
        with pytest.raises(AlreadyAnswered):
            await running.workspace.asks.answer_permission(permission.permission.id, allow)


async def test_a_workspace_that_is_closed_is_in_it_and_stays_closed(tmp_path: Path) -> None:
    async with two_workspaces(tmp_path, [Say("Done.")]) as (running, other_id, session_id):
        other = await running.app.workspace(other_id)
        await other.submit(Submit(session_id=session_id, prompt="go", run_id="r1"))
        await other.run("r1", wait_s=30)
        other.presence.claims.close()
        running.app.opened.close_unused(other)
        async with follow_inbox(running.app) as ann:
            item = ann.mirror.items[0]
            assert (item.kind, item.workspace_id, item.outcome) == (InboxKind.FINISHED, other_id, Outcome.END_TURN)
            await running.app.inbox.mark_seen(MarkSeen(client_id="ann:web", ids=(item.id,)))
            await ann.until(lambda mirror: mirror.unseen == 0)
        assert not running.app.is_open(other_id)


async def test_failed_runs_say_why_and_canceled_ones_are_not_news(tmp_path: Path) -> None:
    held = Gate("model")
    steps = [[Fail(ModelError("No luck."))], [Pause(held)], [Say("ok")]]
    async with launch(tmp_path, ScriptedModel(steps)) as running:
        await running.submit("fails", "r1")
        await running.completed("r1")
        await running.submit("waits", "r2")
        await held.reached()
        await running.workspace.cancel_session(running.session_id)
        await running.completed("r2")
        (item,) = (await inbox(running.app)).items
        assert (item.kind, item.run_id, item.outcome) == (InboxKind.FAILED, "r1", Outcome.ERROR)
        assert item.error


async def test_prompts_that_were_folded_are_no_items_of_their_own(tmp_path: Path) -> None:
    held = Gate("model")
    async with launch(tmp_path, ScriptedModel([[Pause(held), TOUCH], [Say("ok")]])) as running:
        await running.submit("first", "r1", approve=Approve.ALL)
        await held.reached()
        await running.submit("and this", "r2", delivery=Delivery.STEER)
        held.open()
        await running.completed("r1")
        await running.completed("r2")
        assert [item.run_id for item in (await inbox(running.app)).items] == ["r1"]


async def test_what_a_sub_agent_asks_is_shown_in_the_session_that_people_know_and_its_run_is_not(
    tmp_path: Path,
) -> None:
    agent = "---\ndescription: Does things.\nread_only: false\n---\nDo it.\n"
    parts = {
        "share": [[call("agent", prompt="dig", agent="hand")], [Say("All done.")]],
        "dig": [[TOUCH], [Say("Dug.")]],
    }
    files = {".agents/agents/hand.md": agent}
    async with open_scenario(tmp_path, Parts(parts), files=files) as scene, follow_inbox(scene.running.app) as ann:
        await scene.start("share", ask=True)
        mirror = await ann.until(lambda mirror: mirror.waiting == 1)
        (item,) = mirror.items
        assert item.session_id == scene.running.session_id
        assert item.permission is not None
        assert item.permission.session_id != scene.running.session_id
        await scene.answer(item.permission, PermissionAnswer.ONCE)
        await scene.running.completed("r1")
        mirror = await ann.until(lambda mirror: mirror.unseen == 1)
        assert [item.run_id for item in mirror.items] == ["r1"]


async def ended_runs(running: RunningApp, count: int) -> None:
    for number in range(count):
        await running.submit("go", f"r{number}")
        await running.completed(f"r{number}")


async def test_what_one_client_of_a_person_has_seen_the_others_have_and_other_people_have_not(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("ok")]] * 3)) as running:
        await ended_runs(running, 3)
        items = (await inbox(running.app)).items
        await running.app.inbox.mark_seen(MarkSeen(client_id="ann:web", ids=(items[0].id,)))
        assert [item.seen for item in (await inbox(running.app, "ann:tui-1")).items] == [True, False, False]
        assert (await inbox(running.app, "ann")).unseen == 2
        assert (await inbox(running.app, "ben:web")).unseen == 3
        await running.app.inbox.mark_seen(MarkSeen(client_id="ann:tui-1", up_to=items[1].id))
        page = await inbox(running.app, "ann:web")
        assert ([item.seen for item in page.items], page.unseen) == ([True, True, True], 0)


async def test_it_is_read_page_by_page(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("ok")]] * 3)) as running:
        await ended_runs(running, 3)
        first = await inbox(running.app, limit=2)
        rest = await inbox(running.app, limit=2, before=first.next)
        assert [item.run_id for item in (*first.items, *rest.items)] == ["r2", "r1", "r0"]
        assert rest.next is None


async def test_what_was_seen_and_what_waits_survives_a_restart(tmp_path: Path) -> None:
    steps = [[Say("ok")], [TOUCH], [Say("ok")]]
    async with launch(tmp_path, ScriptedModel(steps), config='{"titles": false, "on_restart": "resume"}') as running:
        session_id = running.session_id
        await ended_runs(running, 1)
        (item,) = (await inbox(running.app)).items
        await running.app.inbox.mark_seen(MarkSeen(client_id="ann", ids=(item.id,)))
    async with launch(tmp_path, ScriptedModel([[Say("ok")]]), session_id=session_id) as running:
        assert [(item.run_id, item.seen) for item in (await inbox(running.app)).items] == [("r0", True)]


async def test_a_run_that_is_undone_is_no_news_and_redo_does_not_make_it_news_again(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("ok")], [Say("ok")]])) as running:
        await ended_runs(running, 2)
        async with follow_inbox(running.app) as ann:
            assert ann.mirror.unseen == 2
            await running.workspace.undo_turn(running.session_id)
            mirror = await ann.until(lambda mirror: mirror.unseen == 1)
            assert [item.run_id for item in mirror.items] == ["r0"]
            await running.workspace.redo_turn(running.session_id)
            page = await inbox(running.app)
            assert ([item.run_id for item in page.items], page.unseen) == (["r0"], 1)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM inbox",
        "DELETE FROM inbox WHERE ask_id IS NOT NULL",
        "INSERT INTO inbox (kind, workspace_id, session_id, run_id, ask_id, added_s)"
        " SELECT 'question', workspace_id, session_id, run_id, 'gone', added_s FROM inbox LIMIT 1",
        "UPDATE inbox SET ask_id = 'gone' WHERE ask_id IS NOT NULL",
    ],
)
async def test_what_waits_is_recounted_from_the_asks_of_a_damaged_or_restored_store(
    tmp_path: Path, damage: str
) -> None:
    async with launch(tmp_path, ScriptedModel([[TOUCH]])) as running:
        await running.submit("ask", "r1")
        await running.watcher.until(lambda event: event.type == "permission_request")
        store = running.workspace.store
        assert isinstance(store, SqliteStore)
        await asyncio.to_thread(_change, store._path, damage)
        async with follow_inbox(running.app) as ann:
            await running.app.inbox.prune()
            mirror = await ann.until(lambda mirror: [item.kind for item in mirror.items] == [InboxKind.PERMISSION])
            assert mirror.waiting == 1


@pytest.mark.parametrize("ask", [TOUCH, ASK], ids=["permission", "question"])
@pytest.mark.parametrize("config", [TITLES_OFF, RESUME], ids=["interrupt", "resume"])
async def test_after_a_kill_the_counts_are_those_of_what_still_waits(tmp_path: Path, config: str, ask: Any) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("ok")], [ask]]), config=config) as running:
        await ended_runs(running, 1)
        async with follow_inbox(running.app) as ann:
            await running.submit("ask", "r1")
            before = await ann.until(lambda mirror: mirror.waiting == 1)
            asked = before.items[0]
        async with (
            restarted(running, ScriptedModel([[Say("ok")]]), config=config) as again,
            follow_inbox(again.app) as ben,
        ):
            if config == RESUME:
                assert (ben.mirror.items[0].id, ben.mirror.waiting, ben.mirror.unseen) == (asked.id, 1, 1)
            else:
                mirror = await ben.until(lambda mirror: mirror.unseen == 2)
                assert (mirror.waiting, mirror.items[0].outcome) == (0, Outcome.INTERRUPTED)
            page = await inbox(again.app)
            assert page.items == tuple(ben.mirror.items)
            assert page.waiting == sum(item.kind.waits for item in page.items)
            await again.workspace.cancel_session(again.session_id)
            await ben.until(lambda mirror: mirror.waiting == 0)


async def test_a_session_that_is_renamed_is_updated_and_one_that_is_deleted_is_removed(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("ok")]])) as running:
        await ended_runs(running, 1)
        async with follow_inbox(running.app) as ann:
            await running.workspace.update_session(running.session_id, UpdateSession(title="New name"))
            await ann.until(lambda mirror: mirror.items[0].session_title == "New name")
            await running.workspace.delete_session(running.session_id)
            await ann.until(lambda mirror: not mirror.items)
            assert isinstance(ann.events[-1], InboxChange)
            assert ann.mirror.unseen == 0


async def test_runs_leave_it_after_seven_days_and_asks_do_not(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("ok")], [TOUCH]])) as running:
        await ended_runs(running, 1)
        async with follow_inbox(running.app) as ann:
            await running.submit("ask", "r1")
            await ann.until(lambda mirror: mirror.waiting == 1)
            store = running.workspace.store
            assert isinstance(store, SqliteStore)
            await asyncio.to_thread(_age, store._path)
            await running.app.prune_once()
            mirror = await ann.until(lambda mirror: mirror.unseen == 0)
            assert [item.kind for item in mirror.items] == [InboxKind.PERMISSION]


def _age(path: Path) -> None:
    """Let everything have happened eight days earlier."""
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE inbox SET added_s = added_s - 8 * 86400")
    connection.close()


# The stream


async def test_a_commit_while_the_inbox_is_read_is_told_with_the_next_read(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("ok")]] * 2)) as running, follow_inbox(running.app) as ann:
        store = running.workspace.store
        assert isinstance(store, SqliteStore)
        reading, go_on = asyncio.Event(), asyncio.Event()
        real = store.reads.inbox_since

        async def held(*given: Any, **named: Any) -> Any:
            found = await real(*given, **named)
            reading.set()
            await go_on.wait()
            return found

        store.reads.inbox_since = held  # type: ignore[method-assign]
        await running.submit("one", "r0")
        await running.completed("r0")
        await reading.wait()
        await running.submit("two", "r1")  # committed after the read, before its end
        await running.completed("r1")
        go_on.set()
        mirror = await ann.until(lambda mirror: mirror.unseen == 2)
        assert [item.run_id for item in mirror.items] == ["r1", "r0"]


async def test_an_ask_that_is_answered_before_it_could_be_told_is_never_told(tmp_path: Path) -> None:
    """Several changes while a reader is slow are one: it never sees what is over."""
    async with launch(tmp_path, ScriptedModel([[TOUCH], [Say("ok")]])) as running:
        await running.submit("go", "r0")
        event = await running.watcher.until(lambda event: event.type == "permission_request")
        async with running.app.inbox.stream("slow") as chunks:
            first = await anext(chunks)
            assert b'"waiting":1' in first
            allow = AnswerPermission(answer=PermissionAnswer.ONCE)
            await running.workspace.asks.answer_permission(event.payload.id, allow)
            await running.completed("r0")
            second = await anext(chunks)
            assert second.startswith(b"event: inbox_change")
            assert second.count(b"\n\n") == 1
            assert b'"waiting":0,"unseen":1' in second


async def test_a_commit_in_the_instant_of_a_heartbeat_ends_no_stream(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        inbox, loop = running.app.inbox, asyncio.get_running_loop()
        waiting = asyncio.create_task(inbox.wait_news(inbox.version, 0, 0.01))
        await asyncio.sleep(0)
        deadline = loop.time() + 0.01
        loop.call_at(deadline, inbox.wake)
        while loop.time() <= deadline + 0.001:  # so that both are due before the waiting task goes on
            pass
        assert await waiting in (True, False)


async def test_who_stops_listening_leaves_nothing_behind(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        inbox = running.app.inbox
        before = _futures()
        for _ in range(200):
            waiting = asyncio.create_task(inbox.wait_changed(inbox.version))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        assert _futures() < before + 100


def _futures() -> int:
    gc.collect()
    return sum(isinstance(each, asyncio.Future) for each in gc.get_objects())


async def test_a_silent_stream_has_heartbeats(tmp_path: Path) -> None:
    async with (
        launch(tmp_path, ScriptedModel(), heartbeat_s=0.01) as running,
        running.app.inbox.stream("ann") as chunks,
    ):
        assert (await anext(chunks)).startswith(b"event: inbox\n")
        assert await anext(chunks) == HEARTBEAT


async def test_while_nobody_listens_no_commit_is_looked_at(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        store = running.workspace.store
        assert isinstance(store, SqliteStore)
        assert store._publisher._watcher is None
        async with follow_inbox(running.app):
            assert store._publisher._watcher is not None
        assert store._publisher._watcher is None


async def test_deltas_do_not_make_it_read_again(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("a lot of words " * 50)]])
    async with launch(tmp_path, model) as running, follow_inbox(running.app) as ann:
        before = running.app.inbox.version
        await running.submit("go", "r0")
        await running.completed("r0")
        await ann.until(lambda mirror: mirror.unseen == 1)
        assert running.app.inbox.version - before == 2, "once for the session's title, once for the end"


async def test_a_thousand_items_are_sent_as_one_page(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel()) as running:
        store = running.workspace.store
        assert isinstance(store, SqliteStore)
        await asyncio.to_thread(_fill, store._path, running.workspace.id, running.session_id)
        async with follow_inbox(running.app) as ann:
            assert (len(ann.mirror.items), ann.mirror.waiting) == (50, 1000)
            await running.app.inbox.mark_seen(MarkSeen(client_id="ann", up_to=ann.mirror.items[0].id))
            await ann.until(lambda mirror: all(item.seen for item in mirror.items))
            assert isinstance(ann.events[-1], InboxPage)


async def test_many_streams_read_one_after_the_other_and_what_came_meanwhile_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E5. With sixty of them, a prompt was accepted in 400 ms instead of 1."""
    reading = most = reads = 0
    gate = Gate("read")
    monkeypatch.setattr("longboat.runtime.inbox.REST", 0)
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        real = running.workspace.store.reads.inbox_since

        async def counted(*args: Any, **more: Any) -> Any:
            nonlocal reading, most, reads
            reading, reads = reading + 1, reads + 1
            most = max(most, reading)
            await gate.arrive()
            found = await real(*args, **more)
            reading -= 1
            return found

        async with AsyncExitStack() as stack:
            streams = [await stack.enter_async_context(follow_inbox(running.app, f"p{number}")) for number in range(5)]
            monkeypatch.setattr(running.workspace.store.reads, "inbox_since", counted)
            for number in range(20):
                await running.submit("hi", f"r{number}")
                await running.completed(f"r{number}")
            gate.open()
            for stream in streams:
                await stream.until(lambda mirror: mirror.unseen == 20)
    assert most == 1
    assert reads <= 2 * len(streams), "one before the gate, at most, and one for all that came meanwhile"


async def test_streams_rest_between_their_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E5. Longer than they read: on a slow machine both take longer, so this does not depend on the clock."""
    spans: list[tuple[float, float]] = []
    clock = asyncio.get_running_loop().time
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        real = running.workspace.store.reads.inbox_since

        async def timed(*args: Any, **more: Any) -> Any:
            began = clock()
            found = await real(*args, **more)
            spans.append((began, clock()))
            return found

        monkeypatch.setattr(running.workspace.store.reads, "inbox_since", timed)
        async with follow_inbox(running.app, "ann"), follow_inbox(running.app, "ben") as last:
            await running.submit("hi", "r1")
            await last.until(lambda mirror: mirror.unseen == 1)
    assert len(spans) > 2
    assert all(after - ended > 3 * (ended - began) for (began, ended), (after, _) in pairwise(spans))


def _fill(path: Path, workspace_id: str, session_id: str) -> None:
    with sqlite3.connect(path) as connection:
        for number in range(1000):
            ask = Question(
                id=f"q{number}",
                session_id=session_id,
                run_id="r",
                tool_call_id="c",
                text="?",
                choices=(),
                multiple=False,
                asked_at="2026-01-01T00:00:00.000000Z",
            )
            row = (ask.id, workspace_id, session_id, "r", "pending", msgspec.json.encode(ask))
            connection.execute(
                "INSERT INTO questions (question_id, workspace_id, session_id, run_id, state, body)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
    connection.close()


async def test_its_streams_end_when_the_server_leaves(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel()) as running, follow_inbox(running.app) as ann:
        await running.app.leave(drain_s=0, hurry=asyncio.Event())
        await ann.ended.wait()


async def test_a_stream_of_the_inbox_keeps_an_idle_server_running(tmp_path: Path) -> None:
    async with open_app(settings_in(tmp_path, idle_exit_s=600)) as app:
        async with follow_inbox(app):
            assert app._idle_exit is None
        assert app._idle_exit is not None


async def test_damaged_items_are_left_out_and_not_counted(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("ok")], [TOUCH]])) as running:
        await ended_runs(running, 1)
        await running.submit("ask", "r1")
        await running.watcher.until(lambda event: event.type == "permission_request")
        store = running.workspace.store
        assert isinstance(store, SqliteStore)
        for body in ("x'ff'", "'{}'", "'null'", "''"):
            await asyncio.to_thread(_change, store._path, f"UPDATE permissions SET body = {body}")
            page = await inbox(running.app)
            assert ([item.kind for item in page.items], page.waiting) == ([InboxKind.FINISHED], 0)


def _change(path: Path, sql: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(sql)
    connection.close()
