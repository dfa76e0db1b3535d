"""The terminal app on a machine so busy that Textual's own timers are lost (F2).

A timer of Textual that is late the moment it starts never fires; and after one that was to tell of a new size, no later
size is told of either. What such a timer was to end is ended by the clock, or looked for again and again.
"""

import asyncio
import gc
import inspect
from pathlib import Path

import pytest
from textual.timer import Timer
from tui_driver import local_server, open_tui

from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel
from longboat.tui import textual_fixes
from longboat.tui.app_exit import WARNED_S
from longboat.tui.stopping import SECOND_S
from longboat.wire.events import Event
from longboat.wire.models import Message


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
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("hello")
        await gate.reached()
        await tui.until(lambda: tui.answers == ["first "])
        gate.open()
        await tui.until(lambda: tui.answers == ["first second"])


async def test_a_new_size_of_the_terminal_is_not_lost(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    async with (
        local_server(tmp_path, ScriptedModel([[Say("wide")]])).serving() as server,
        open_tui(server, size=(80, 24)) as tui,
    ):
        request.getfixturevalue("late")
        await tui.pilot.resize_terminal(120, 40)
        await tui.until(lambda: [line.cell_length for line in tui.lines] == [120] * 40)
        assert "enter send" in tui.lines[-2].text
        assert "Idle" in tui.lines[-1].text


@pytest.mark.usefixtures("late")
async def test_a_single_ctrl_c_does_not_leave_when_the_warning_is_long_over(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        now = 100.0
        tui.app.leaving.clock = lambda: now
        await tui.pilot.press("ctrl+c")
        now += WARNED_S
        await tui.pilot.press("ctrl+c")
        assert not tui.app._exit
        now += WARNED_S - 0.1
        await tui.pilot.press("ctrl+c")
        await tui.until(lambda: tui.app._exit)


@pytest.mark.usefixtures("late")
async def test_a_single_esc_cancels_one_run_when_the_last_one_is_long_over(tmp_path: Path) -> None:
    gates = [Gate(), Gate()]
    model = ScriptedModel([[Say("one"), Pause(gates[0])], [Say("two"), Pause(gates[1])], [Say("three")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        now = 100.0
        tui.app.interrupting.clock = lambda: now
        await tui.say("first")
        await gates[0].reached()
        await tui.pilot.press("escape")
        await tui.until(lambda: tui.idle)
        now += SECOND_S
        await tui.say("second")
        await gates[1].reached()
        await tui.say("third", key="ctrl+q")
        await tui.until(lambda: len(tui.app.current.unfinished) == 2)
        await tui.pilot.press("escape")
        await tui.until(lambda: tui.idle and tui.answers == ["one", "two", "three"])


async def test_a_second_esc_soon_after_means_all_although_the_run_ended_at_once(tmp_path: Path) -> None:
    gate, other = Gate(), Gate()
    model = ScriptedModel([[Say("one"), Pause(gate)], [Say("two"), Pause(other)], [Say("three")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        tui.app.interrupting.clock = lambda: 100.0
        await tui.say("first")
        await gate.reached()
        for prompt in ("second", "third"):
            await tui.say(prompt, key="ctrl+q")
        await tui.until(lambda: len(tui.app.current.unfinished) == 3)
        await tui.pilot.press("escape")
        await other.reached()
        await tui.until(lambda: [run.prompt for run in tui.app.current.unfinished] == ["second", "third"])
        await tui.pilot.press("escape")
        await tui.until(lambda: tui.idle)
        assert tui.answers == ["one", "two"]


@pytest.mark.usefixtures("late")
async def test_a_notification_goes_when_its_time_is_over(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        tui.app.notify("told in passing", timeout=2)
        tui.app.notify("told for long", timeout=600)
        await tui.until(lambda: "told in passing" in tui.screen)
        await tui.until(lambda: "told in passing" not in tui.screen)
        assert "told for long" in tui.screen


@pytest.mark.parametrize("size", [(20, 3), (20, 5), (80, 24)])
async def test_what_is_as_large_as_the_terminal_is_not_laid_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server, size=size) as tui:
        told: list[object] = []
        monkeypatch.setattr(tui.app.screen, "post_message", told.append)
        textual_fixes.fit_screens(tui.app)
        assert told == []
        monkeypatch.undo()


@pytest.mark.usefixtures("late")
async def test_what_a_sub_agent_says_before_its_card_is_drawn_is_shown_once_it_is(tmp_path: Path) -> None:
    start, gate = Gate(), Gate()
    steps = [
        [Pause(start), CallTool("agent", {"prompt": "look at it"})],
        [CallTool("ls", {"path": "."})],
        [Pause(gate), Say("child says")],
        [Say("parent says")],
    ]
    async with local_server(tmp_path, ScriptedModel(steps)).serving() as server, open_tui(server) as tui:
        said, hear = asyncio.Event(), tui.app.event_handling.hear

        def listen(event: Event) -> None:
            hear(event)
            if event.parent_session_id and isinstance(event.payload, Message) and "ls" in str(event.payload.parts):
                said.set()

        tui.app.event_handling.hear = listen  # type: ignore[method-assign]
        await tui.say("delegate")
        await start.reached()
        await tui.until(lambda: tui.prompts == ["delegate"])
        async with tui.app.view._changing:  # nothing is drawn meanwhile
            start.open()
            await gate.reached()
            await said.wait()
            assert tui.cards == []
        await tui.until(lambda: tui.cards and "ls ." in tui.text_of(tui.cards[0]))
        gate.open()
        await tui.until(lambda: tui.answers == ["parent says"])


async def test_a_worker_that_is_canceled_before_it_begins_leaves_nothing_behind(tmp_path: Path) -> None:
    """A coroutine that was never awaited is an error in these tests, and words on the screen of who leaves."""
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:

        async def work() -> None: ...

        begun = [work() for _ in range(4)]
        for each in begun[:3]:
            tui.app.run_worker(each, group="test", exclusive=True)
        tui.app.view.run_worker(begun[3], group="test")
        tui.app.attempt(work)
        tui.app.workers.cancel_all()
        await tui.until(lambda: not tui.app.workers)
        assert [inspect.getcoroutinestate(each) for each in begun] == [inspect.CORO_CLOSED] * 4
        gc.collect()
