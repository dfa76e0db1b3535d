"""“Plan first” in the terminal app: its key, where it shows, and the plan as a question (ADR 0048)."""

from pathlib import Path

from tui_driver import TuiDriver, local_server, open_tui

from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel
from longboat.tui.dialogs.question import QuestionDialog
from longboat.tui.panels.queue import QueuePanel
from longboat.wire.requests import Approve

PLAN = CallTool("propose_plan", {"summary": "A greeting is missing.", "items": ["Write hello.txt", "Check it"]})
WRITE = CallTool("write", {"path": "hello.txt", "content": "hello\n"})


def offers_plans(model: ScriptedModel) -> list[bool]:
    return ["propose_plan" in {tool.name for tool in request.tools} for request in model.requests]


def shown(tui: TuiDriver) -> tuple[bool, bool]:
    """At the composer, and in the status bar."""
    lines = tui.screen.splitlines()
    return any("Plan first · shift+tab off" in line for line in lines), "plan first" in lines[-1]


async def test_shift_tab_turns_it_on_and_off_for_the_next_prompts(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("one")], [Say("two")], [Say("three")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        assert shown(tui) == (False, False)
        await tui.pilot.press("shift+tab")
        await tui.until(lambda: shown(tui) == (True, True))
        await tui.say("first")
        await tui.until(lambda: tui.idle and tui.answers == ["one"])
        await tui.say("/plan")
        await tui.until(lambda: shown(tui) == (False, False))
        await tui.say("second")
        await tui.until(lambda: tui.idle and tui.answers == ["one", "two"])
        await tui.pilot.press("ctrl+x", "l")
        await tui.until(lambda: shown(tui) == (True, True))
        await tui.say("third")
        await tui.until(lambda: tui.idle and tui.answers == ["one", "two", "three"])
    assert offers_plans(model) == [True, False, True]


async def test_the_plan_is_a_question_and_its_approval_lets_the_agent_work(tmp_path: Path) -> None:
    model = ScriptedModel([[PLAN], [WRITE], [Say("Done.")]])
    async with (
        local_server(tmp_path, model).serving() as server,
        open_tui(server, approve=Approve.ALL) as tui,
    ):
        await tui.pilot.press("shift+tab")
        await tui.say("Greet.")
        await tui.until(lambda: isinstance(tui.app.screen, QuestionDialog))
        await tui.until(lambda: "2. Check it" in tui.screen and "Go ahead" in tui.screen)
        await tui.pilot.press("1")
        await tui.until(lambda: tui.idle and tui.answers[-1:] == ["Done."])
        await tui.until(lambda: "2 steps" in tui.screen)
    assert offers_plans(model) == [True, False, False]


async def test_queued_prompts_keep_their_own_and_show_it(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Pause(gate), Say("one")], [Say("two")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("first")
        await gate.reached()
        await tui.pilot.press("shift+tab")
        await tui.until(lambda: "enter queue" in tui.screen)
        await tui.say("second")
        await tui.until(lambda: tui.app.query_one(QueuePanel).display and "plan first  second" in tui.screen)
        await tui.pilot.press("shift+tab")
        await tui.until(lambda: shown(tui) == (False, False))
        gate.open()
        await tui.until(lambda: tui.idle and tui.answers == ["one", "two"])
    assert offers_plans(model) == [False, True]
