"""A session's history in memory: the next turn reads nothing, and gets what the store has, whatever came between.

That both agree is checked in every turn of every test (`running_app.check_histories`). Here: when nothing is read, and
that what happened in between is in the next request.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from running_app import RunningApp, launch
from scenario import Scene, call, open_scenario

from longboat.core.history import text_of
from longboat.store.reading import reads
from longboat.store.records import SessionHistory
from longboat.testing import Say, ScriptedModel
from longboat.wire.models import Role
from longboat.wire.requests import CreateSession, Summarize, UpdateSession


@contextmanager
def count_reads(monkeypatch: pytest.MonkeyPatch, running: RunningApp) -> Iterator[list[str]]:
    """The sessions whose histories turns read from the store."""
    histories = running.app._store._publisher.histories  # type: ignore[attr-defined]
    read_history, read = reads.read_history, list[str]()

    async def counted(reader: Any, session_id: str, *, after: int) -> SessionHistory:
        read.append(session_id)
        return await read_history(reader, session_id, after=after)

    with monkeypatch.context() as patch:
        patch.setattr(reads, "read_history", counted)
        patch.setattr(histories, "get", type(histories).get.__get__(histories))  # without the check, which reads
        yield read


def prompts(model: ScriptedModel) -> list[list[str]]:
    """What each request showed the model: the texts of its messages, without notes."""
    return [[text_of(message) for message in request.messages] for request in model.requests]


async def test_the_turns_of_a_session_read_nothing_from_its_creation_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel.echo()
    async with launch(tmp_path, model) as running:
        with count_reads(monkeypatch, running) as read:
            for number in ("1", "2", "3"):
                await running.submit(number, number)
                await running.completed(number)
        assert read == []
        roles = [[message.role for message in request.messages] for request in model.requests]
        assert roles == [[Role.USER, Role.ASSISTANT] * number + [Role.USER] for number in range(3)]


async def test_a_session_of_an_earlier_start_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        session_id = running.session_id
        await running.submit("1", "1")
        await running.completed("1")
    model = ScriptedModel.echo()
    async with launch(tmp_path, model, session_id=session_id) as running:
        with count_reads(monkeypatch, running) as read:
            for number in ("2", "3"):
                await running.submit(number, number)
                await running.completed(number)
        assert read == [session_id]
        assert prompts(model)[-1] == ["1", "echo: 1", "2", "echo: 2", "3"]


async def test_a_turn_that_edited_files_leaves_its_history_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [[call("write", path="a.txt", content="1\n")], [Say("written")], [Say("two")]]
    async with open_scenario(tmp_path, steps) as scene:
        with count_reads(monkeypatch, scene.running) as read:
            await scene.turn("write", "r1")
            await scene.turn("go on", "r2")
        assert read == []
        await scene.check()


async def _undo(scene: Scene) -> None:
    await scene.running.workspace.undo_turn(scene.running.session_id)


async def _undo_and_redo(scene: Scene) -> None:
    await _undo(scene)
    await scene.running.workspace.redo_turn(scene.running.session_id)


async def _rename(scene: Scene) -> None:
    await scene.running.workspace.update_session(scene.running.session_id, UpdateSession(title="other"))


@pytest.mark.parametrize(
    ("between", "seen"),
    [
        (_undo, ["one", "1", "three"]),
        (_undo_and_redo, ["one", "1", "two", "2", "three"]),
        (_rename, ["one", "1", "two", "2", "three"]),
    ],
)
async def test_a_turn_sees_what_was_done_to_the_session_since(tmp_path: Path, between: Any, seen: list[str]) -> None:
    async with open_scenario(tmp_path, [[Say("1")], [Say("2")], [Say("3")]]) as scene:
        await scene.turn("one", "r1")
        await scene.turn("two", "r2")
        await between(scene)
        await scene.turn("three", "r3")
        assert prompts(scene.model)[-1] == seen


async def test_a_turn_sees_a_summary_instead_of_what_came_before_it(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("1")], [Say("in short")], [Say("2")], [Say("3")]])
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        await running.workspace.summarize_session(running.session_id, Summarize(run_id="r2"))
        await running.completed("r2")
        for prompt, run_id in (("two", "r3"), ("three", "r4")):
            await running.submit(prompt, run_id)
            await running.completed(run_id)
        assert [texts[1:] for texts in prompts(model)[-2:]] == [["two"], ["two", "2", "three"]]
        assert all("in short" in texts[0] for texts in prompts(model)[-2:])


async def test_a_fork_has_a_history_of_its_own(tmp_path: Path) -> None:
    model = ScriptedModel.echo()
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        fork = await running.workspace.archive.fork(running.session_id)
        for session_id, prompt in ((fork.id, "theirs"), (running.session_id, "ours"), (fork.id, "theirs-again")):
            await running.submit(prompt, prompt, session_id=session_id)
            await running.completed(prompt)
        assert prompts(model)[1:] == [
            ["one", "echo: one", "theirs"],
            ["one", "echo: one", "ours"],
            ["one", "echo: one", "theirs", "echo: theirs", "theirs-again"],
        ]


async def test_sessions_do_not_see_each_other(tmp_path: Path) -> None:
    model = ScriptedModel.echo()
    async with launch(tmp_path, model) as running:
        other = await running.workspace.create_session(CreateSession())
        for prompt, session_id in (("a", running.session_id), ("b", other.id), ("c", running.session_id)):
            await running.submit(prompt, prompt, session_id=session_id)
            await running.completed(prompt)
        assert prompts(model) == [["a"], ["b"], ["a", "echo: a", "c"]]
