"""Permissions and questions in the terminal app: shown to whoever is there, gone when somebody answers (A2, F6)."""

from contextlib import AsyncExitStack
from pathlib import Path

from tui_deck import Deck, Harbour, aboard, harbour

from longboat.client import Client
from longboat.testing import CallTool, Say, ScriptedModel
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
        assert "by bob" in deck.text_of(deck.cards[0])


async def test_what_is_put_off_comes_back_with_a_key(tmp_path: Path) -> None:
    async with harbour(tmp_path, writing()).serving() as port, aboard(port) as deck:
        await deck.say("write it")
        await asked(deck)
        await deck.pilot.press("escape")
        await deck.until(lambda: len(deck.app.screen_stack) == 1)
        assert "waiting for your word" in deck.screen
        await deck.pilot.press("ctrl+g")
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
