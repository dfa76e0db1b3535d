"""Permissions and questions in the terminal app: shown to whoever is there, gone when somebody answers (A2, F6)."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from textual import events
from tui_deck import Deck, Harbour, aboard, harbour

from longboat.client import Client
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel
from longboat.tui.dialogs.frame import GRACE_S
from longboat.tui.dialogs.permission import PermissionDialog
from longboat.tui.dialogs.question import QuestionDialog
from longboat.tui.status import StatusBar
from longboat.wire.asks import PermissionAnswer

WRITE = CallTool("write", {"path": "a.txt", "content": "hello\n"})


def writing() -> ScriptedModel:
    return ScriptedModel([[WRITE], [Say("done")]])


async def asked(deck: Deck, dialog: type = PermissionDialog) -> None:
    await deck.until(lambda: isinstance(deck.app.screen, dialog) and deck.app.screen.is_mounted)
    deck.app.screen._grace_s = 0.0  # type: ignore[attr-defined]  # nobody is typing
    await deck.pilot.pause()
    assert GRACE_S > 0


def written(port: Harbour) -> bool:
    return (Path(port.project) / "a.txt").exists()


async def test_a_permission_is_asked_and_allowed_once(tmp_path: Path) -> None:
    async with harbour(tmp_path, writing()).serving() as port, aboard(port) as deck:
        await deck.say("write it")
        await asked(deck)
        assert deck.app.query_one(StatusBar).state.asks == 1
        assert deck.cards[0].has_class("-waiting")
        await deck.pilot.press("o")
        await deck.until(lambda: deck.idle and deck.answers == ["done"])
        assert written(port)
        assert "allowed (once) by you" in deck.text_of(deck.cards[0])


async def test_a_denial_tells_the_agent_why(tmp_path: Path) -> None:
    model = writing()
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("write it")
        await asked(deck)
        await deck.pilot.press("d", *"no", "enter")
        await deck.until(lambda: deck.idle and deck.answers == ["done"])
        assert not written(port)
        assert deck.cards[0].has_class("-failed")
        assert "denied by you" in deck.text_of(deck.cards[0])


async def test_an_answer_from_elsewhere_closes_the_dialog_and_says_whose_it_was(tmp_path: Path) -> None:
    """Field notes: the first answer wins and the other one sees it."""
    async with harbour(tmp_path, writing()).serving() as port, aboard(port) as deck:
        await deck.say("write it")
        await asked(deck)
        async with Client(socket=port.socket, client_id="bob") as bob:
            workspace = deck.app.connection.workspace_id
            (ask,) = (await bob.permissions(workspace)).items
            await bob.answer_permission(workspace, ask.id, PermissionAnswer.ONCE)
        await deck.until(lambda: len(deck.app.screen_stack) == 1)
        await deck.until(lambda: "bob allowed it once" in deck.screen.replace("\n", " "))
        await deck.until(lambda: deck.idle and written(port))
        assert "allowed (once) by bob" in deck.text_of(deck.cards[0])
        async with aboard(port, session_id=deck.app.desk.session_id) as late:
            await late.until(lambda: bool(late.cards) and "allowed (once) by bob" in late.text_of(late.cards[0]))


async def test_f6_who_denied_what_is_there_for_whoever_opens_the_session_later(tmp_path: Path) -> None:
    """The same words as live; of the same person at another terminal, "you"."""
    async with harbour(tmp_path, writing()).serving() as port, aboard(port) as deck:
        await deck.say("write it")
        await asked(deck)
        await deck.pilot.press("d", "enter")
        await deck.until(lambda: deck.idle and deck.answers == ["done"])
        words = deck.text_of(deck.cards[0])
        assert "denied by you" in words
        async with aboard(port, session_id=deck.app.desk.session_id) as late:
            await late.until(lambda: bool(late.cards) and late.text_of(late.cards[0]) == words)


async def test_what_is_put_off_comes_back_with_a_key(tmp_path: Path) -> None:
    async with harbour(tmp_path, writing()).serving() as port, aboard(port) as deck:
        await deck.say("write it")
        await asked(deck)
        await deck.pilot.press("escape")
        await deck.until(lambda: len(deck.app.screen_stack) == 1)
        assert "needed (ctrl+g)" in deck.screen
        await deck.pilot.press("ctrl+g")
        await asked(deck)
        await deck.pilot.press("o")
        await deck.until(lambda: deck.idle and written(port))


@pytest.mark.parametrize("command", ["rename", "export"])
async def test_an_ask_that_comes_behind_a_dialog_is_shown_after_it(tmp_path: Path, command: str) -> None:
    gate = Gate()
    model = ScriptedModel([[Say("one moment"), Pause(gate), WRITE], [Say("done")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("write it")
        await gate.reached()
        deck.app.command_actions.do(command)
        await deck.until(lambda: deck.app.screen.is_modal)
        gate.open()
        await deck.until(lambda: deck.app.query_one(StatusBar).state.asks == 1)
        assert not isinstance(deck.app.screen, PermissionDialog)
        await deck.pilot.press("escape")
        await asked(deck)
        await deck.pilot.press("o")
        await deck.until(lambda: deck.idle and written(port))


async def test_a_cancel_withdraws_what_was_asked(tmp_path: Path) -> None:
    async with harbour(tmp_path, writing()).serving() as port, aboard(port) as deck:
        await deck.say("write it")
        await asked(deck)
        async with Client(socket=port.socket, client_id="bob") as bob:
            await bob.cancel_run(deck.app.connection.workspace_id, deck.app.desk.unfinished[0].run_id)
        await deck.until(lambda: len(deck.app.screen_stack) == 1 and deck.idle)
        assert deck.app.query_one(StatusBar).state.asks == 0


async def test_a_question_is_answered(tmp_path: Path) -> None:
    model = ScriptedModel([[CallTool("question", {"text": "Which?", "choices": ["red", "blue"]})], [Say("fine")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("ask me")
        await asked(deck, QuestionDialog)
        assert "1 red" in deck.screen
        assert "2 blue" in deck.screen
        await deck.pilot.press("2")
        await deck.until(lambda: deck.idle and deck.answers == ["fine"])
        assert "blue" in deck.text_of(deck.cards[0])


async def test_an_ask_that_was_there_before_is_shown_to_who_attaches(tmp_path: Path) -> None:
    """Field notes, opencode #21154."""
    async with harbour(tmp_path, writing()).serving() as port:
        async with aboard(port) as first:
            await first.say("write it")
            await asked(first)
        async with aboard(port, resume=True, name="you") as deck:
            await asked(deck)
            await deck.pilot.press("o")
            await deck.until(lambda: deck.idle and written(port))


def slowly(deck: Deck, now: list[float]) -> None:
    """The dialog's clock is the test's: somebody types as it opens, until the test lets time pass."""
    deck.app.screen._clock = lambda: now[0]  # type: ignore[attr-defined]
    deck.app.screen._heard_at = now[0]  # type: ignore[attr-defined]


async def opened(deck: Deck, dialog: type) -> None:
    await deck.until(lambda: isinstance(deck.app.screen, dialog) and deck.app.screen.is_mounted)


async def test_what_is_typed_as_a_dialog_opens_goes_into_the_prompt(tmp_path: Path) -> None:
    """It answers nothing, none of it is lost, and its order is kept: enter begins a line instead of sending."""
    now = [100.0]
    async with harbour(tmp_path, writing()).serving() as port, aboard(port) as deck:
        await deck.say("write it")
        await deck.type("half a ")
        await opened(deck, PermissionDialog)
        slowly(deck, now)
        await deck.pilot.press(*"thougx", "backspace", *"ht", "enter", *"soo", "enter")
        await deck.until(lambda: deck.app.composer.input.text == "half a thought\nsoo")
        assert isinstance(deck.app.screen, PermissionDialog)
        await deck.until(lambda: "went into your prompt" in deck.screen)
        now[0] += 1.0
        await deck.pilot.press("o")
        await deck.until(lambda: deck.idle and written(port))
        assert deck.app.composer.input.text == "half a thought\nsoo"
        assert deck.prompts == ["write it"]


async def test_what_is_pasted_as_a_dialog_opens_goes_into_the_prompt_long_text_as_a_file(tmp_path: Path) -> None:
    now = [100.0]
    async with harbour(tmp_path, writing()).serving() as port, aboard(port) as deck:
        await deck.say("write it")
        await opened(deck, PermissionDialog)
        slowly(deck, now)
        await deck.pilot.press(*"see ")
        deck.app.post_message(events.Paste("o\na\n"))
        deck.app.post_message(events.Paste("x\n" * 2_000))
        await deck.until(lambda: deck.app.composer.input.text == "see o\na\n" and deck.app.composer.attachments)
        now[0] += 1.0
        deck.app.post_message(events.Paste("later"))
        await deck.until(lambda: deck.app.composer.input.text == "see o\na\nlater")
        assert isinstance(deck.app.screen, PermissionDialog)
        assert not written(port)


async def test_an_enter_alone_as_a_dialog_opens_sends_nothing(tmp_path: Path) -> None:
    """Half a prompt is in the composer: who wants to say yes a little too early must not send it."""
    now = [100.0]
    async with harbour(tmp_path, writing()).serving() as port, aboard(port) as deck:
        await deck.say("write it")
        await deck.type("half a prom")
        await opened(deck, PermissionDialog)
        slowly(deck, now)
        await deck.pilot.press("enter")
        now[0] += 1.0
        await deck.pilot.press("enter")
        await deck.until(lambda: deck.idle and written(port))
        assert deck.app.composer.input.text == "half a prom"


@pytest.mark.parametrize("choices", [[], ["red", "blue"]])
async def test_what_is_typed_as_a_question_opens_is_no_part_of_its_answer(tmp_path: Path, choices: list[str]) -> None:
    now = [100.0]
    model = ScriptedModel([[CallTool("question", {"text": "Which?", "choices": choices})], [Say("fine")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("ask me")
        await opened(deck, QuestionDialog)
        slowly(deck, now)
        await deck.pilot.press(*"then 1")
        deck.app.post_message(events.Paste(" and 2"))
        await deck.until(lambda: deck.app.composer.input.text == "then 1 and 2")
        now[0] += 1.0
        await deck.pilot.press(*("enter",) if choices else (*"red", "enter"))
        await deck.until(lambda: deck.idle and deck.answers == ["fine"])
        assert "red" in deck.text_of(deck.cards[0])
        assert "then" not in deck.text_of(deck.cards[0])


async def test_two_terminals_one_answer(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(harbour(tmp_path, writing()).serving())
        async with aboard(port, name="ann") as ann:
            await ann.say("write it")
            await asked(ann)
            async with aboard(port, name="bob", resume=True) as bob:
                await asked(bob)
                await bob.pilot.press("o")
                await bob.until(lambda: bob.idle and written(port))
            await ann.until(lambda: len(ann.app.screen_stack) == 1 and ann.idle)
            assert "by bob" in ann.text_of(ann.cards[0])
