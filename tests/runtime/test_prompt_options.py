"""The options of a prompt, effort and a schema; and images that tools show (A6)."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from running_app import launch

from longboat.models.protocol import Abilities
from longboat.testing import CallTool, Say, ScriptedModel
from longboat.wire.models import Message, Outcome, Role, ToolResultPart

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def said(request: Any) -> list[tuple[Role, str]]:
    return [
        (message.role, "".join(getattr(part, "text", "") for part in message.parts)) for message in request.messages
    ]


def result_in(messages: Sequence[Message]) -> ToolResultPart:
    (result,) = (part for message in messages for part in message.parts if isinstance(part, ToolResultPart))
    return result


async def test_an_answer_that_does_not_fit_is_sent_back_and_the_json_alone_comes_out(tmp_path: Path) -> None:
    """A6: two tries more, told to the model and to nobody else."""
    model = ScriptedModel(
        [
            [CallTool("ls", {})],
            [Say("There are three.")],
            [Say('{"n": "three"}')],
            [Say('```json\n{"n": 3}\n```')],
            [Say("later")],
        ]
    )
    async with launch(tmp_path, model) as running:
        await running.submit("How many?", "r1", schema=SCHEMA)
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text, complete.error) == (Outcome.END_TURN, '{"n": 3}', "")
        roles = [message.role for message in await running.messages()]
        assert roles.count(Role.USER) == 1
        await running.submit("And now?", "r2")
        assert (await running.completed("r2")).text == "later"
    first, *_, third, fourth, later = model.requests
    assert first.schema == SCHEMA
    assert '"additionalProperties":false' in first.system
    assert "It is not JSON" in said(third)[-1][1]
    assert "at n:" in said(fourth)[-1][1]
    assert (later.schema, "JSON Schema" in later.system) == (None, False)
    assert "It is not JSON" not in str(said(later))


async def test_a_model_that_never_fits_ends_the_run_in_an_error(tmp_path: Path) -> None:
    """A6"""
    model = ScriptedModel([[Say("no")]], repeat=True)
    async with launch(tmp_path, model) as running:
        await running.submit("How many?", "r1", schema=SCHEMA)
        complete = await running.completed("r1")
        assert complete.outcome is Outcome.ERROR
        assert complete.error.startswith("The answer does not match its schema: Tried 3 times")
        assert len(model.requests) == 3
        await running.submit("Never mind.", "r2")
        assert (await running.completed("r2")).text == "no"


async def test_the_effort_reaches_the_model_or_a_notice_says_why_not(tmp_path: Path) -> None:
    """A6"""
    model = ScriptedModel([[Say("ok")]], repeat=True)
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1", effort="high")
        await running.completed("r1")
    assert model.requests[0].effort == "high"
    plain = ScriptedModel([[Say("ok")]], repeat=True, abilities=Abilities(effort=False))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with launch(elsewhere, plain) as running:
        await running.submit("go", "r1", effort="high")
        assert (await running.completed("r1")).outcome is Outcome.END_TURN
        notices = [event.message for event in running.watcher.of("agent_event") if event.type == "notice"]
    assert notices == ["scripted/scripted has no reasoning effort setting; high is ignored."]
    assert plain.requests[0].effort is None


async def test_an_image_that_view_reads_is_in_the_transcript_and_before_the_model(tmp_path: Path) -> None:
    """A1, A6"""
    model = ScriptedModel([[CallTool("view", {"path": "dot.png"})], [Say("A dot.")]])
    async with launch(tmp_path, model) as running:
        (tmp_path / "project" / "dot.png").write_bytes(PNG)
        await running.submit("What is it?", "r1")
        assert (await running.completed("r1")).text == "A dot."
        result = result_in(await running.messages())
    assert [(image.media_type, base64.b64decode(image.data)) for image in result.images] == [("image/png", PNG)]
    shown = model.requests[1].messages[-1].parts[0]
    assert isinstance(shown, ToolResultPart)
    assert shown.images == result.images


async def test_a_model_with_a_small_window_has_few_tools_in_few_words(tmp_path: Path) -> None:
    """A6"""
    model = ScriptedModel([[CallTool("ls", {})], [Say("ok")]], context_window=8_000)
    async with launch(tmp_path, model) as running:
        (tmp_path / "project" / "here.txt").touch()
        await running.submit("What is here?", "r1")
        assert (await running.completed("r1")).text == "ok"
        result = result_in(await running.messages())
    assert "here.txt" in result.content
    tools = {tool.name: tool.description for tool in model.requests[0].tools}
    assert set(tools) == {"view", "ls", "grep", "edit", "write", "bash"}
    assert all(len(words) < 60 for words in tools.values())
    fields = {tool.name: set(tool.schema["properties"]) for tool in model.requests[0].tools}
    assert fields == {
        "view": {"path", "offset"},
        "ls": {"path"},
        "grep": {"pattern", "path"},
        "edit": {"path", "old_text", "new_text"},
        "write": {"path", "content"},
        "bash": {"command"},
    }


async def test_a_model_with_a_small_window_is_told_to_work_unless_it_can_only_talk(tmp_path: Path) -> None:
    """A6"""
    systems: list[str] = []
    for agent in (True, False):
        model = ScriptedModel([[Say("ok")]], context_window=8_000, abilities=Abilities(agent=agent))
        directory = tmp_path / str(agent)
        directory.mkdir()
        async with launch(directory, model) as running:
            await running.submit("hi", "r1")
            await running.completed("r1")
        systems.append(model.requests[0].system)
    works, talks = systems
    assert "coding agent" in works
    assert "Look first" in works
    assert len(works) < 1_500
    assert "plain sentences" in talks
    assert "coding agent" not in talks


@pytest.mark.parametrize(("window", "told"), [(4_000, 0), (8_000, 2_000), (15_000, 5_500)])
async def test_a_model_with_a_small_window_is_told_as_much_of_the_instructions_as_there_is_room_for(
    tmp_path: Path, window: int, told: int
) -> None:
    """A5, A6: an eighth of the window at most, and the file that has the rest."""
    model = ScriptedModel([[Say("ok")]], context_window=window)
    async with launch(tmp_path, model) as running:
        (tmp_path / "project" / "AGENTS.md").write_text("Use tabs. " + "§" * 10_000)
        await running.submit("hi", "r1")
        await running.completed("r1")
    system = model.requests[0].system
    assert ("Use tabs." in system, system.count("§")) == (told > 0, max(0, told - len("Use tabs. ")))
    assert (f"[cut: {10_010 - told} more characters in" in system) is (told > 0)
    assert len(system) < 1_800 + told


async def test_a_model_that_calls_no_tools_is_given_none(tmp_path: Path) -> None:
    """A6"""
    for window in (8_000, 100_000):
        model = ScriptedModel([[Say("ok")]], context_window=window, abilities=Abilities(tools=False))
        directory = tmp_path / str(window)
        directory.mkdir()
        async with launch(directory, model) as running:
            await running.submit("hi", "r1")
            await running.completed("r1")
        assert model.requests[0].tools == ()
        assert "You have no tools here" in model.requests[0].system
