"""What a person at a terminal sees of sub-agents (F1)."""

from typing import Any

import msgspec
import pytest

from longboat.cli.activity import Activity
from longboat.tools.registry import built_in_traits
from longboat.wire.events import Change, Event
from longboat.wire.models import (
    Delivery,
    Message,
    Outcome,
    Part,
    Role,
    Run,
    RunComplete,
    RunState,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def sent(run_id: str, task: str, **changes: Any) -> Event:
    run = Run(
        run_id=run_id,
        seq=1,
        session_id=f"s-{run_id}",
        state=RunState.ACTIVE,
        delivery=Delivery.QUEUE,
        prompt=task,
        accepted_at="2026-01-01T00:00:00Z",
        started_at="2026-01-01T00:00:01Z",
        parent_run_id="mine",
    )
    return _event("run", msgspec.structs.replace(run, **changes))


def message(run_id: str, role: Role, *parts: Part) -> Event:
    name, session_id = f"{run_id}-{role}", f"s-{run_id}"
    said = Message(id=name, session_id=session_id, run_id=run_id, seq=1, role=role, parts=parts, created_at="t")
    return _event("message", said)


def call(call_id: str, name: str, **arguments: Any) -> ToolCallPart:
    text = msgspec.json.encode(arguments).decode()
    return ToolCallPart(id=call_id, name=name, input=text, finished=True, traits=built_in_traits().get(name))


def result(call_id: str, content: str = "", **changes: Any) -> ToolResultPart:
    return ToolResultPart(tool_call_id=call_id, content=content, **changes)


def ended(run_id: str, outcome: Outcome = Outcome.END_TURN, *, text: str = "", error: str = "") -> Event:
    complete = RunComplete(run_id=run_id, session_id=f"s-{run_id}", outcome=outcome, text=text, error=error)
    return _event("run_complete", complete)


def _event(name: str, payload: Any) -> Event:
    return Event(name, Change.UPDATED, payload, parent_session_id="s")


@pytest.fixture
def seen(capsys: pytest.CaptureFixture[str]) -> Any:
    def show(*events: Event) -> list[str]:
        activity = Activity()
        for event in events:
            activity.show_sub_agent(event)
        return capsys.readouterr().err.splitlines()

    return show


def test_each_call_that_is_over_is_a_short_line_and_its_end_is_told(seen: Any) -> None:
    assert seen(
        sent("a", "look"),
        message(
            "a",
            Role.ASSISTANT,
            TextPart(text="I look."),
            call("1", "view", path="a.py"),
            call("2", "bash", command="make"),
        ),
        message("a", Role.TOOL, result("1", "x"), result("2", "building\n", finished=False)),
        message("a", Role.TOOL, result("1", "x"), result("2", "[exit code 2]", is_error=True)),
        sent("a", "look", state=RunState.FINISHED, finished_at="2026-01-01T00:00:05Z"),
        ended("a", text="It is\nbroken."),
    ) == ["    view a.py", "    bash make: failed", "    done (2 calls, 4 s): It is broken."]


def test_those_side_by_side_are_told_apart_by_their_tasks(seen: Any) -> None:
    lines = seen(
        sent("a", "look here"),
        sent("b", "look there"),
        message("a", Role.ASSISTANT, call("1", "ls", path=".")),
        message("b", Role.ASSISTANT, call("1", "grep", pattern="x")),
        message("b", Role.TOOL, result("1")),
        message("a", Role.TOOL, result("1")),
        ended("a"),
        ended("b", Outcome.ERROR, error="no key"),
    )
    assert lines == [
        "  ↳ look there",
        "    grep x",
        "  ↳ look here",
        "    ls .",
        "    done (1 call)",
        "  ↳ look there",
        "    failed (1 call): no key",
    ]


def test_a_call_that_was_made_before_we_came_has_at_least_its_name(seen: Any) -> None:
    assert seen(message("a", Role.TOOL, result("1", name="view"))) == ["    view"]


def test_what_it_writes_cannot_move_the_cursor_and_stays_on_its_line(seen: Any) -> None:
    (line,) = seen(
        message("a", Role.ASSISTANT, call("1", "bash", command="echo \x1b[2J\necho " + "x" * 500)),
        message("a", Role.TOOL, result("1")),
    )
    assert "\x1b" not in line
    assert len(line) <= 80
