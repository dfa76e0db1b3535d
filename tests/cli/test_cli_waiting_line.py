"""What `longboat run` shows at a terminal while nothing new comes: drawn by a terminal emulator, timed by hand."""

import io

import msgspec
import pyte
import pytest

from longboat.cli.activity import Activity
from longboat.cli.display import FinalText, LiveText, display_of
from longboat.cli.waiting_line import PLAIN_QUIET_S, QUIET_S, WaitingLine
from longboat.wire.asks import AskState, Question, QuestionNotification
from longboat.wire.events import Change, Event
from longboat.wire.models import (
    Delivery,
    Message,
    MessageDelta,
    Outcome,
    Part,
    Role,
    Run,
    RunComplete,
    RunState,
    TextPart,
    ToolResultPart,
)


class Screen(io.StringIO):
    """A terminal and the clock beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self._screen = pyte.Screen(60, 6)
        self._screen.set_mode(pyte.modes.LNM)  # as a real terminal's driver does with a newline
        self._stream = pyte.Stream(self._screen)

    def write(self, text: str) -> int:
        self._stream.feed(text)
        return len(text)

    @property
    def lines(self) -> list[str]:
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip("\n").split("\n")


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    made = Screen()
    for name, value in {"TERM": "xterm", "COLUMNS": "60", "LINES": "6"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return made


def line(screen: Screen, **environ: str) -> WaitingLine:
    return WaitingLine(screen, "mine/m", clock=lambda: screen.now, environ={"TERM": "xterm"} | environ)


def live(screen: Screen, **environ: str) -> LiveText:
    return LiveText(screen, Activity(), line(screen, **environ))


def message(*parts: Part, role: Role = Role.ASSISTANT) -> Event:
    payload = Message(id="m", session_id="s", run_id="r", seq=1, role=role, parts=parts, created_at="t")
    return Event("message", Change.UPDATED, payload)


def delta(offset: int, text: str) -> Event:
    payload = MessageDelta(message_id="m", session_id="s", run_id="r", part=0, offset=offset, text=text)
    return Event("message_delta", Change.UPDATED, payload)


def run(state: RunState) -> Event:
    payload = Run(
        run_id="r",
        seq=1,
        session_id="s",
        state=state,
        delivery=Delivery.QUEUE,
        prompt="p",
        position=1,
        accepted_at="t",
    )
    return Event("run", Change.UPDATED, payload)


def complete(text: str) -> Event:
    payload = RunComplete(run_id="r", session_id="s", message_id="m", text=text, outcome=Outcome.END_TURN)
    return Event("run_complete", Change.CREATED, payload)


def test_a_silent_model_is_told_with_a_time_that_grows_until_something_comes(screen: Screen) -> None:
    display = live(screen)
    screen.now += QUIET_S - 0.1
    display.tick()
    assert screen.lines == [""], "what is quick needs no line"
    screen.now += 0.1
    display.tick()
    assert screen.lines == ["Waiting for mine/m… 3 s"]
    screen.now += 72
    display.tick()
    assert screen.lines == ["Waiting for mine/m… 1 min 15 s"]
    display.show(message(TextPart(text="Hello")))
    assert screen.lines == ["Hello"]
    display.tick()
    assert screen.lines == ["Hello"], "it waits anew"


def test_an_answer_that_stops_in_the_middle_goes_on_where_it_stopped(screen: Screen) -> None:
    display = live(screen)
    text = "\n".join(f"- line {number}" for number in range(8))  # more than fits on the screen
    display.show(message(TextPart(text="")))
    display.show(delta(0, text))
    before = screen.lines
    screen.now += 5
    display.tick()
    assert screen.lines == [*before[1:], "Waiting for mine/m… 5 s"]
    display.show(delta(len(text), " and more"))
    assert screen.lines == [*before[1:-1], before[-1] + " and more"]
    display.show(complete(text + " and more"))
    screen.now += 5
    display.tick()
    assert screen.lines[-2:] == [before[-1] + " and more", "Waiting for mine/m… 5 s"]


def test_it_says_what_is_waited_for(screen: Screen) -> None:
    display = live(screen)

    def shown() -> str:
        screen.now += 4
        display.tick()
        return screen.lines[-1]

    display.show(run(RunState.QUEUED))
    assert shown() == "Queued… 4 s"
    display.show(run(RunState.ACTIVE))
    assert shown() == "Waiting for mine/m… 8 s"
    display.show(message(ToolResultPart(tool_call_id="c", name="bash", content="", finished=False), role=Role.TOOL))
    assert shown() == "Running bash… 4 s"
    ask = Question(
        id="q", session_id="s", run_id="r", tool_call_id="c", text="?", choices=(), multiple=False, asked_at="t"
    )
    display.show(Event("question_request", Change.CREATED, ask))
    assert shown() == "Waiting for an answer… 8 s"
    end = QuestionNotification(
        id="q", session_id="s", run_id="r", state=AskState.ANSWERED, answer=("x",), answered_by=None
    )
    display.show(Event("question_notification", Change.CREATED, end))
    display.show(message(ToolResultPart(tool_call_id="c", name="bash", content="[exit code 0]"), role=Role.TOOL))
    by_another = msgspec.structs.replace(message(TextPart(text="")).payload, provider="other", model="large")
    display.show(Event("message", Change.UPDATED, by_another))
    assert shown().startswith("Waiting for other/large… ")
    display.tick(doing="Reconnecting")
    assert screen.lines[-1].startswith("Reconnecting… ")


def test_nothing_is_drawn_while_a_person_is_asked_and_the_time_starts_after_that(screen: Screen) -> None:
    display = live(screen)
    screen.now += 60
    display.tick(asking=True)
    screen.now += 2
    display.tick()
    assert screen.lines == [""]
    screen.now += 2
    display.tick()
    assert screen.lines == ["Waiting for mine/m… 4 s"]
    display.clear()
    assert screen.lines == [""]


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_a_plain_terminal_is_told_once_and_never_in_the_middle_of_an_answer(
    screen: Screen, environ: dict[str, str]
) -> None:
    display = live(screen, **environ)
    screen.now += PLAIN_QUIET_S - 1
    display.tick()
    assert screen.lines == [""], "a line that stays there is worth it only after a while"
    for _ in range(3):
        screen.now += 5
        display.tick()
    assert screen.lines == ["Waiting for mine/m…"]
    display.show(message(TextPart(text="half")))
    screen.now += PLAIN_QUIET_S
    display.tick(doing="Canceling")
    assert screen.lines == ["Waiting for mine/m…", "half"]


def test_an_answer_that_comes_at_once_waits_with_a_line_too(screen: Screen) -> None:
    display = FinalText(screen, Activity(), line(screen))
    screen.now += 5
    display.tick()
    assert screen.lines == ["Waiting for mine/m… 5 s"]
    display.show(complete("{}"))
    assert screen.lines == ["{}"]


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_pipe_never_gets_the_line(
    style: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    display = display_of(style, model="mine/m")
    now = 60.0
    display.tick()
    assert capsys.readouterr() == ("", "")
