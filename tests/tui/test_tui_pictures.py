"""How the whole app looks at three sizes: at the start, after a turn, in the middle of one, and without its server."""

from pathlib import Path

import pytest
from tui_deck import Deck, aboard, harbour
from tui_stage import SIZES, holds

from longboat.errors import ServerUnreachable
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
    """No time passes on the status line, and the version is always the same."""
    monkeypatch.setattr(status, "monotonic", lambda: 0.0)
    monkeypatch.setattr(welcome, "__version__", "1.2.3")


async def settle(deck: Deck) -> None:
    await deck.until(lambda: deck.app.welcome_read.suggestions and not deck.app.sidebar._reading)
    deck.app.connection.path = "~/boat"
    deck.app.hearing.began = dict.fromkeys(deck.app.hearing.began, 0.0)
    deck.app.show_place()
    deck.app.show_state()
    deck.app.composer.input.cursor_blink = False
    await deck.pilot.pause()
    await deck.pilot.pause()


@pytest.mark.parametrize("size", SIZES)
async def test_a_new_session(tmp_path: Path, size: tuple[int, int]) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port, size=size) as deck:
        await settle(deck)
        holds(deck.app, "app-new")


@pytest.mark.parametrize("size", SIZES)
async def test_after_a_turn(tmp_path: Path, size: tuple[int, int]) -> None:
    port = harbour(tmp_path, ScriptedModel(STEPS))
    (Path(port.project) / "sums.py").write_text("def add(a, b):\n    return a - b\n")
    async with port.serving(), aboard(port, size=size, approve=Approve.ALL) as deck:
        await deck.say("Why does add(1, 2) give -1?")
        await deck.until(lambda: deck.idle and deck.answers and len(deck.cards) == 3)
        await deck.until(lambda: "$0.25" in deck.screen)
        await settle(deck)
        holds(deck.app, "app-turn")
        deck.app.view.scroll_home(animate=False)
        await settle(deck)
        holds(deck.app, "app-turn-top")


@pytest.mark.parametrize("size", SIZES)
async def test_in_the_middle_with_a_prompt_in_the_queue(tmp_path: Path, size: tuple[int, int]) -> None:
    gate = Gate()
    model = ScriptedModel([[Say("So far **half** of"), Pause(gate), Say(" it")], [Say("later")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port, size=size) as deck:
        await deck.say("Go on.")
        await gate.reached()
        await deck.say("And then this.", key="ctrl+q")
        await deck.until(lambda: len(deck.app.desk.unfinished) == 2 and deck.answers == ["So far **half** of"])
        await deck.until(lambda: not deck.app.sender.waiting and "And then this." in deck.screen)
        await settle(deck)
        holds(deck.app, "app-working")
        gate.open()
        await deck.until(lambda: deck.idle)


@pytest.mark.parametrize("size", SIZES)
async def test_while_the_server_is_away(tmp_path: Path, size: tuple[int, int]) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port, size=size) as deck:
        await deck.say("hello")
        await deck.until(lambda: deck.idle and deck.answers == ["echo: hello"])
        deck.app.connection.away = ServerUnreachable("The server does not answer.")
        await deck.type("half a prompt")
        await settle(deck)
        holds(deck.app, "app-away")
