"""How the whole app looks at three sizes: at the start, after a turn, in the middle of one, and without its server."""

from pathlib import Path

import pytest
from tui_driver import TuiDriver, local_server, open_tui
from tui_stage import SIZES, holds

from longboat.errors import ServerUnreachable
from longboat.runtime import clock
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel, Think, Use
from longboat.tui import status, welcome
from longboat.wire.requests import Approve

ANSWER = """\
## What was wrong

`add` took one from the *other*. It **adds** now:

1. the sign is changed
2. a test holds it

| before | after |
|---|--:|
| `a - b` | `a + b` |

```python
assert add(1, 2) == 3  # it was -1
```
"""
PLAN = {"items": [{"text": "Mend add", "state": "completed"}, {"text": "Test it", "state": "in_progress"}]}
STEPS = [
    [Think("It subtracts."), CallTool("view", {"path": "sums.py"}), CallTool("todos", PLAN)],
    [CallTool("edit", {"path": "sums.py", "old_text": "a - b", "new_text": "a + b"})],
    [Say(ANSWER), Use(2_000, 70, 0.25)],
]


@pytest.fixture(autouse=True)
def _at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes, on the status line or while a tool runs, and the version is always the same."""
    monkeypatch.setattr(status, "monotonic", lambda: 0.0)
    at = clock.utc()
    monkeypatch.setattr(clock, "utc", lambda: at)
    monkeypatch.setattr(welcome, "__version__", "1.2.3")


async def settle(tui: TuiDriver) -> None:
    await tui.until(lambda: tui.app.welcome_read.suggestions and not tui.app.sidebar._reading)
    tui.app.connection.path = "~/boat"
    tui.app.event_handling.began = dict.fromkeys(tui.app.event_handling.began, 0.0)
    tui.app.show_place()
    tui.app.show_state()
    tui.app.composer.input.cursor_blink = False
    await tui.pilot.pause()
    await tui.pilot.pause()


@pytest.mark.parametrize("size", SIZES)
async def test_a_new_session(tmp_path: Path, size: tuple[int, int]) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server, size=size) as tui:
        await settle(tui)
        await holds(tui.pilot, "app-new")


@pytest.mark.parametrize("size", SIZES)
async def test_after_a_turn(tmp_path: Path, size: tuple[int, int]) -> None:
    server = local_server(tmp_path, ScriptedModel(STEPS))
    (Path(server.project) / "sums.py").write_text("def add(a, b):\n    return a - b\n")
    async with server.serving(), open_tui(server, size=size, approve=Approve.ALL) as tui:
        await tui.say("Why does add(1, 2) give -1?")
        await tui.until(lambda: tui.idle and tui.answers and len(tui.cards) == 3)
        await tui.until(lambda: "$0.25" in tui.screen)
        await settle(tui)
        await holds(tui.pilot, "app-turn")
        tui.app.view.scroll_home(animate=False)
        await settle(tui)
        await holds(tui.pilot, "app-turn-top")


@pytest.mark.parametrize("size", SIZES)
async def test_in_the_middle_with_a_prompt_in_the_queue(tmp_path: Path, size: tuple[int, int]) -> None:
    gate = Gate()
    model = ScriptedModel([[Say("So far **half** of"), Pause(gate), Say(" it")], [Say("later")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server, size=size) as tui:
        await tui.say("Go on.")
        await gate.reached()
        await tui.say("And then this.", key="ctrl+q")
        await tui.until(lambda: len(tui.app.current.unfinished) == 2 and tui.answers == ["So far **half** of"])
        await tui.until(lambda: not tui.app.sender.waiting and "And then this." in tui.screen)
        await settle(tui)
        await holds(tui.pilot, "app-working")
        gate.open()
        await tui.until(lambda: tui.idle)


@pytest.mark.parametrize("size", SIZES)
async def test_while_the_server_is_away(tmp_path: Path, size: tuple[int, int]) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server, size=size) as tui:
        await tui.say("hello")
        await tui.until(lambda: tui.idle and tui.answers == ["echo: hello"])
        tui.app.connection.away = ServerUnreachable("The server does not answer.")
        await tui.type("half a prompt")
        await settle(tui)
        await holds(tui.pilot, "app-away")
