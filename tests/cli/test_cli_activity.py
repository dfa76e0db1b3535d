"""What a person at a terminal sees of tool calls (F1)."""

from typing import Any

import msgspec
import pytest

from longboat.cli.activity import LAST_LINES, MAX_CHANGED, MAX_LINES, Activity
from longboat.tools.registry import built_in_traits
from longboat.wire.events import Change, Event
from longboat.wire.models import Message, MessageDelta, Part, Role, ToolCallPart, ToolResultPart
from longboat.wire.workspace_state import FileChange


def message(role: Role, *parts: Part) -> Event:
    name = f"m-{role}"
    payload = Message(id=name, session_id="s", run_id="r", seq=1, role=role, parts=parts, created_at="t")
    return Event("message", Change.UPDATED, payload)


def call(call_id: str, name: str, **arguments: Any) -> ToolCallPart:
    text = msgspec.json.encode(arguments).decode()
    return ToolCallPart(id=call_id, name=name, input=text, finished=True, traits=built_in_traits().get(name))


def calls(*parts: ToolCallPart) -> Event:
    return message(Role.ASSISTANT, *parts)


def running(call_id: str, shown: str = "") -> ToolResultPart:
    return ToolResultPart(tool_call_id=call_id, content=shown, finished=False)


def over(call_id: str, content: str, *, is_error: bool = False) -> ToolResultPart:
    return ToolResultPart(tool_call_id=call_id, content=content, is_error=is_error)


def results(*parts: ToolResultPart) -> Event:
    return message(Role.TOOL, *parts)


def output(part: int, offset: int, text: str) -> Event:
    delta = MessageDelta(message_id="m-tool", session_id="s", run_id="r", part=part, offset=offset, text=text)
    return Event("message_delta", Change.UPDATED, delta)


def changed(path: str, additions: int = 1, deletions: int = 0) -> Event:
    change = FileChange(session_id="s", run_id="r", path=path, additions=additions, deletions=deletions)
    return Event("file", Change.UPDATED, change)


@pytest.fixture
def seen(capsys: pytest.CaptureFixture[str]) -> Any:
    def show(*events: Event) -> list[str]:
        activity = Activity()
        for event in events:
            activity.show(event)
        return capsys.readouterr().err.splitlines()

    return show


DIFF = "Edited a.py: 1 replacement.\n\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n same\n"


def test_a_quick_call_is_one_line_when_it_is_over(seen: Any) -> None:
    before = [calls(call("c", "view", path="a.py")), results(running("c"))]
    assert seen(*before) == []
    assert seen(*before, results(over("c", "1 x")), results(over("c", "1 x"))) == ["● view a.py"]


def test_an_edit_has_its_counts_and_a_short_diff(seen: Any) -> None:
    events = [calls(call("c", "edit", path="./a.py")), results(running("c")), changed("a.py", 1, 1)]
    assert seen(*events, results(over("c", DIFF))) == ["● edit ./a.py +1 -1", "    -old", "    +new"]


def test_a_long_diff_is_cut(seen: Any) -> None:
    diff = "Created.\n\n--- /dev/null\n+++ b/a.py\n@@ -0,0 +1,30 @@\n" + "".join(f"+{n}\n" for n in range(30))
    lines = seen(
        calls(call("c", "write", path="a.py")), results(running("c")), changed("a.py", 30), results(over("c", diff))
    )
    assert len(lines) == 1 + MAX_CHANGED + 1
    assert lines[-1] == "    … 20 more"


def test_an_error_is_told_below_the_line(seen: Any) -> None:
    failed = over("c", "a.py has changed since it was read. View it again.\nmore", is_error=True)
    assert seen(calls(call("c", "edit", path="a.py")), results(running("c")), results(failed)) == [
        "● edit a.py",
        "  └ a.py has changed since it was read. View it again.",
    ]


def test_live_output_comes_by_whole_lines_and_the_result_brings_only_the_rest(seen: Any) -> None:
    events = [
        calls(call("c", "bash", command="make")),
        results(running("c")),
        output(0, 0, "one\ntw"),
        output(0, 3, "\ntw"),  # again
        output(0, 9, "gap"),
        output(0, 6, "o\n"),
        results(over("c", "one\ntwo\nthree\n[exit code 0 after 0.1 s]")),
    ]
    assert seen(*events) == ["● bash make", "    one", "    two", "    three"]


def test_how_a_command_failed_or_where_it_went_on_is_told(seen: Any) -> None:
    begin = [calls(call("c", "bash", command="false")), results(running("c"))]
    failed = over("c", "[no output; exit code 1 after 0.1 s]", is_error=True)
    assert seen(*begin, results(failed)) == ["● bash false", "  └ exit code 1 after 0.1 s"]
    gone = over("c", "[no output; running in the background as job-1: read on with job_output]")
    assert seen(*begin, results(gone))[1].startswith("  └ running in the background as job-1")


def test_the_output_of_calls_side_by_side_is_told_apart(seen: Any) -> None:
    events = [
        calls(call("a", "bash", command="one"), call("b", "bash", command="two")),
        results(running("a"), running("b")),
        output(0, 0, "1\n"),
        output(1, 0, "2\n"),
        output(1, 2, "22\n"),
    ]
    assert seen(*events) == ["● bash one", "● bash two", "● bash one", "    1", "● bash two", "    2", "    22"]


def test_endless_output_is_bounded_and_cannot_move_the_cursor(seen: Any) -> None:
    events = [calls(call("c", "bash", command="yes")), results(running("c")), output(0, 0, "\x1b[2Jy\n" * 1_000)]
    lines = seen(*events)
    assert len(lines) == 1 + MAX_LINES + 1
    assert (lines[1], lines[-1]) == ("    ␛[2Jy", "    … (more)")


def test_a_change_of_a_file_that_no_call_named_is_told_by_itself(seen: Any) -> None:
    assert seen(calls(call("c", "agent", prompt="Do it.")), results(running("c")), changed("b.py", 2, 1)) == [
        "● agent Do it.",
        "  b.py +2 -1",
    ]


def test_who_comes_in_the_middle_of_a_call_sees_its_output(seen: Any) -> None:
    assert seen(results(running("c", "one\n"))) == ["● tool call", "    one"]


def test_the_answer_ends_its_line_before_each_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    closed: list[str] = []
    activity = Activity()
    for event in (calls(call("c", "bash", command="x")), results(running("c")), output(0, 0, "1\n")):
        activity.show(event, lambda: closed.append(capsys.readouterr().err))
    assert closed == ["", "● bash x\n"]


def test_an_output_that_was_too_long_ends_with_a_count_and_its_last_lines(seen: Any) -> None:
    text = "".join(f"{number}\n" for number in range(1_000))
    begin = [calls(call("c", "bash", command="seq")), results(running("c")), output(0, 0, text)]
    lines = seen(*begin, results(over("c", f"{text}[exit code 0 after 1 s]")))
    more = 1_000 - MAX_LINES - LAST_LINES
    assert lines[1 + MAX_LINES :] == [
        "    … (more)",
        f"    … {more:,} more lines, then:",
        *(f"    {number}" for number in range(1_000 - LAST_LINES, 1_000)),
    ]


def test_calls_side_by_side_that_say_one_line_at_a_time_are_bounded_too(seen: Any) -> None:
    """The name of a call that speaks again counts as a line of its own."""
    two = calls(call("a", "bash", command="one"), call("b", "bash", command="two"))
    speech = [output(part, 2 * number, "x\n") for number in range(200) for part in (0, 1)]
    assert len(seen(two, results(running("a"), running("b")), *speech)) <= 2 * (1 + MAX_LINES + 1)


def test_a_line_is_cut_by_columns_and_not_by_characters(seen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    begin = [calls(call("c", "bash", command="x")), results(running("c"))]
    assert seen(*begin, output(0, 0, "漢" * 100 + "\n"))[1] == "    " + "漢" * 12 + "…"
    assert seen(*begin, output(0, 0, "e\u0301" * 26 + "\n"))[1] == "    " + "e\u0301" * 26


def test_a_plan_that_was_refused_does_not_tell_of_itself(seen: Any) -> None:
    plan = calls(call("c", "todos", items=[{"text": "a", "state": "done"}]))
    assert seen(plan, results(over("c", "Invalid input for todos.", is_error=True)))[0] == "● todos failed"
