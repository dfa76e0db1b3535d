"""The terminal app on a machine so busy that Textual's own timers are lost (F2).

A timer of Textual that is late the moment it starts never fires; and after one that was to tell of a new size, no later
size is told of either.
"""

from pathlib import Path

import pytest
from textual.timer import Timer
from tui_deck import aboard, harbour

from longboat.testing import Gate, Pause, Say, ScriptedModel


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
