"""How a run looks (R2)."""

import io
import json

import pytest

from longboat.cli.console import ago, one_line, safe, table_lines
from longboat.cli.display import FinalText, JsonLines, LiveText
from longboat.wire.events import Change, Event
from longboat.wire.models import (
    AgentEvent,
    AgentEventType,
    Delivery,
    Message,
    MessageDelta,
    Outcome,
    Part,
    ReasoningPart,
    Role,
    Run,
    RunComplete,
    RunState,
    TextPart,
)


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that can move its cursor, without colours. How Markdown looks there: test_cli_markdown.py."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")


def message(*parts: Part, message_id: str = "m", role: Role = Role.ASSISTANT) -> Event:
    payload = Message(id=message_id, session_id="s", run_id="r", seq=1, role=role, parts=parts, created_at="t")
    return Event("message", Change.UPDATED, payload)


def delta(offset: int, text: str, *, part: int = 0, message_id: str = "m") -> Event:
    payload = MessageDelta(message_id=message_id, session_id="s", run_id="r", part=part, offset=offset, text=text)
    return Event("message_delta", Change.UPDATED, payload)


def complete(text: str = "", *, message_id: str = "m") -> Event:
    payload = RunComplete(run_id="r", session_id="s", message_id=message_id, text=text, outcome=Outcome.END_TURN)
    return Event("run_complete", Change.CREATED, payload)


def queued(position: int) -> Event:
    run = Run(
        run_id="r",
        seq=1,
        session_id="s",
        state=RunState.QUEUED,
        delivery=Delivery.QUEUE,
        prompt="p",
        position=position,
        accepted_at="t",
    )
    return Event("run", Change.UPDATED, run)


def notice(kind: AgentEventType, text: str, run_id: str = "r") -> Event:
    return Event("agent_event", Change.CREATED, AgentEvent(type=kind, session_id="s", run_id=run_id, message=text))


EMPTY = TextPart(text="")


def live(*events: Event) -> str:
    out = io.StringIO()
    display = LiveText(out)
    for event in events:
        display.show(event)
    return out.getvalue()


def test_r2_live_text_comes_delta_by_delta_and_the_whole_message_adds_nothing() -> None:
    events = [message(EMPTY), delta(0, "Hel"), delta(3, "lo"), message(TextPart(text="Hello")), complete("Hello")]
    assert live(*events) == "Hello\n"


def test_a_repeated_delta_is_dropped_and_a_gap_is_filled_by_the_whole_message() -> None:
    assert live(message(EMPTY), delta(0, "ab"), delta(1, "bc"), complete("abc")) == "abc\n"
    events = [message(EMPTY), delta(0, "a"), delta(5, "f"), message(TextPart(text="abcdef")), complete("abcdef")]
    assert live(*events) == "abcdef\n"


def test_offsets_count_code_points() -> None:
    assert live(message(EMPTY), delta(0, "🚣‍♀️"), delta(4, "!"), complete("🚣‍♀️!")) == "🚣‍♀️!\n"


def test_reasoning_and_other_peoples_words_are_not_the_answer() -> None:
    events = [
        message(TextPart(text="my prompt"), message_id="u", role=Role.USER),
        message(ReasoningPart(text=""), EMPTY),
        delta(0, "hmm", part=0),
        delta(0, "yes", part=1),
        complete("yes"),
    ]
    assert live(*events) == "yes\n"


def test_the_messages_of_several_steps_are_set_apart() -> None:
    events = [message(EMPTY), delta(0, "one"), message(EMPTY, message_id="n"), delta(0, "two", message_id="n")]
    assert live(*events, complete("two", message_id="n")) == "one\n\ntwo\n"


def test_t7_a_withdrawn_text_is_begun_again_on_a_new_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert live(message(EMPTY), delta(0, "wrong"), message(EMPTY), delta(0, "right"), complete("right")) == (
        "wrong\nright\n"
    )
    assert "starts over" in capsys.readouterr().err


def test_a_text_known_only_from_the_terminal_event_is_shown_then() -> None:
    assert live(complete("all of it")) == "all of it\n"


def test_control_characters_never_reach_the_terminal() -> None:
    evil = "a\x1b]52;c;Zm9v\x07b\x9b2Jc\rd\te\n"
    assert live(message(EMPTY), delta(0, evil), complete(evil)) == "a␛]52;c;Zm9v␇b\ufffd2Jc␍d    e\n"
    assert safe("\x00\x7f") == "␀␡"


def test_r2_piped_only_the_final_text_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    display = FinalText(out)
    for event in (message(EMPTY), delta(0, "dra"), delta(3, "ft"), complete("final\n")):
        display.show(event)
    assert out.getvalue() == "final\n"
    assert capsys.readouterr().err == ""


def test_notices_go_to_stderr_each_once(capsys: pytest.CaptureFixture[str]) -> None:
    display = FinalText(io.StringIO())
    for event in (
        queued(2),
        queued(2),
        queued(1),
        notice(AgentEventType.LOADING, "Loading the local model."),
        notice(AgentEventType.RETRYING, "Trying again in 1 s."),
        notice(AgentEventType.SUMMARIZING, ""),
        notice(AgentEventType.ERROR, "comes with run_complete"),
        notice(AgentEventType.ERROR, "of the session", run_id=""),
    ):
        display.show(event)
    assert capsys.readouterr().err.splitlines() == [
        "queued: 2 prompts ahead",
        "queued: runs next",
        "Loading the local model.",
        "Trying again in 1 s.",
        "The context window is nearly full: summarizing…",
        "of the session",
    ]


def test_r2_json_lines_are_as_on_the_wire() -> None:
    out = io.StringIO()
    JsonLines(out).show(complete("x"))
    line = json.loads(out.getvalue())
    assert (line["type"], line["payload"]["type"], line["payload"]["payload"]["text"]) == (
        "run_complete",
        "created",
        "x",
    )


def test_what_is_said_meanwhile_has_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    display = LiveText(out)
    for event in (message(EMPTY), delta(0, "half an ans")):
        display.show(event)
    display.say("Canceling…")
    display.show(delta(11, "wer"))
    assert (out.getvalue(), capsys.readouterr().err) == ("half an ans\nwer", "Canceling…\n")


ROWS = [
    ("RUN", "STATE", "ACCEPTED", "PROMPT"),
    ("0198c2f4-91ab-7000-8000-0123456789ab", "queued #1", "59 min ago", "Tell me a very long story about the sea."),
    ("mine", "done", "just now", "hi"),
]


def test_a_table_that_is_no_terminals_is_whole() -> None:
    assert list(table_lines(ROWS, None)) == [
        "RUN                                   STATE      ACCEPTED    PROMPT",
        "0198c2f4-91ab-7000-8000-0123456789ab  queued #1  59 min ago  Tell me a very long story about the sea.",
        "mine                                  done       just now    hi",
    ]


def test_on_a_terminal_the_last_column_gives_way_first() -> None:
    lines = list(table_lines(ROWS, 80))
    assert max(map(len, lines)) == 80
    assert lines[1] == "0198c2f4-91ab-7000-8000-0123456789ab  queued #1  59 min ago  Tell me a very lon…"


def test_on_a_narrow_terminal_ids_are_cut_to_a_beginning_that_commands_take() -> None:
    lines = list(table_lines(ROWS, 40))
    assert max(map(len, lines)) == 40
    assert lines[1] == "0198c2f4-91ab…  queued #1  59 min ago  …"
    assert max(len(line) for line in table_lines([("A", "B"), ("x" * 50, "y" * 50)], 40)) == 40


WIDER = [
    ("RUN", "STATE", "TOOK", "COST", "PROMPT"),
    ("0198c2f4-91ab", "done", "33 ms", "unknown", "Tell me a very long story about the sea."),
]


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (54, "0198c2f4-91ab  done   33 ms  unknown  Tell me a very …"),
        (53, "0198c2f4-91ab  done   33 ms  Tell me a very long sto…"),
        (43, "0198c2f4-91ab  done   Tell me a very long …"),
        (25, "0198c2f4-91ab  done   Te…"),
        (12, "0198c2f4-91…"),
    ],
)
def test_on_a_narrow_terminal_columns_that_can_be_spared_are_left_out(width: int, line: str) -> None:
    assert list(table_lines(WIDER, width, ("COST", "TOOK")))[1] == line


def test_a_table_with_too_many_columns_is_cut_at_the_terminals_edge() -> None:
    assert max(map(len, table_lines([("HEADING",) * 9, ("content",) * 9], 40))) == 40


def test_a_long_text_is_cut_to_one_line() -> None:
    assert one_line("a\n b\tc", 10) == "a b c"
    assert one_line("abcdef", 4) == "abc…"


def test_times_are_told_in_one_unit() -> None:
    assert ago("2020-01-01T00:00:00.000000Z").endswith(" d ago")
