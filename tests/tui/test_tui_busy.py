"""The terminal app on a machine so busy that Textual's own timers are lost (F2).

A timer of Textual that is late the moment it starts never fires; and after one that was to tell of a new size, no later
size is told of either. What such a timer was to end is ended by the clock, or looked for again and again.
"""

from pathlib import Path

import pytest
from textual.timer import Timer
from tui_deck import aboard, harbour

from longboat.testing import Gate, Pause, Say, ScriptedModel
from longboat.tui import textual_fixes
from longboat.tui.app_exit import WARNED_S
from longboat.tui.stopping import SECOND_S


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process was put aside for longer than a timer's time between its two looks at the clock."""
    run = Timer._run

    async def unless_once(timer: Timer) -> None:
        if timer._repeat != 0:
            await run(timer)

    monkeypatch.setattr(Timer, "_run", unless_once)


@pytest.mark.usefixtures("late")
async def test_text_that_streams_is_shown_all_the_same(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Say("first "), Pause(gate), Say("second")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("hello")
        await gate.reached()
        await deck.until(lambda: deck.answers == ["first "])
        gate.open()
        await deck.until(lambda: deck.answers == ["first second"])


async def test_a_new_size_of_the_terminal_is_not_lost(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    async with harbour(tmp_path, ScriptedModel([[Say("wide")]])).serving() as port, aboard(port, size=(80, 24)) as deck:
        request.getfixturevalue("late")
        await deck.pilot.resize_terminal(120, 40)
        await deck.until(lambda: [line.cell_length for line in deck.lines] == [120] * 40)
        assert "enter send" in deck.lines[-2].text
        assert "Idle" in deck.lines[-1].text


@pytest.mark.usefixtures("late")
async def test_a_single_ctrl_c_does_not_leave_when_the_warning_is_long_over(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        now = 100.0
        deck.app.leaving.clock = lambda: now
        await deck.pilot.press("ctrl+c")
        now += WARNED_S
        await deck.pilot.press("ctrl+c")
        assert not deck.app._exit
        now += WARNED_S - 0.1
        await deck.pilot.press("ctrl+c")
        await deck.until(lambda: deck.app._exit)


@pytest.mark.usefixtures("late")
async def test_a_single_esc_cancels_one_run_when_the_last_one_is_long_over(tmp_path: Path) -> None:
    gates = [Gate(), Gate()]
    model = ScriptedModel([[Say("one"), Pause(gates[0])], [Say("two"), Pause(gates[1])], [Say("three")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        now = 100.0
        deck.app.interrupting.clock = lambda: now
        await deck.say("first")
        await gates[0].reached()
        await deck.pilot.press("escape")
        await deck.until(lambda: deck.idle)
        now += SECOND_S
        await deck.say("second")
        await gates[1].reached()
        await deck.say("third", key="ctrl+q")
        await deck.until(lambda: len(deck.app.desk.unfinished) == 2)
        await deck.pilot.press("escape")
        await deck.until(lambda: deck.idle and deck.answers == ["one", "two", "three"])


async def test_a_second_esc_soon_after_means_all_although_the_run_ended_at_once(tmp_path: Path) -> None:
    gate, other = Gate(), Gate()
    model = ScriptedModel([[Say("one"), Pause(gate)], [Say("two"), Pause(other)], [Say("three")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        deck.app.interrupting.clock = lambda: 100.0
        await deck.say("first")
        await gate.reached()
        for prompt in ("second", "third"):
            await deck.say(prompt, key="ctrl+q")
        await deck.until(lambda: len(deck.app.desk.unfinished) == 3)
        await deck.pilot.press("escape")
        await other.reached()
        await deck.until(lambda: [run.prompt for run in deck.app.desk.unfinished] == ["second", "third"])
        await deck.pilot.press("escape")
        await deck.until(lambda: deck.idle)
        assert deck.answers == ["one", "two"]


@pytest.mark.usefixtures("late")
async def test_a_notification_goes_when_its_time_is_over(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        deck.app.notify("told in passing", timeout=0.2)
        deck.app.notify("told for long", timeout=600)
        await deck.until(lambda: "told in passing" in deck.screen)
        await deck.until(lambda: "told in passing" not in deck.screen)
        assert "told for long" in deck.screen


@pytest.mark.parametrize("size", [(20, 3), (20, 5), (80, 24)])
async def test_what_is_as_large_as_the_terminal_is_not_laid_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port, size=size) as deck:
        told: list[object] = []
        monkeypatch.setattr(deck.app.screen, "post_message", told.append)
        textual_fixes.fit_screens(deck.app)
        assert told == []
        monkeypatch.undo()
