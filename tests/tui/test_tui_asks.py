"""Permissions and questions in the terminal app: shown to whoever is there, gone when somebody answers (A2, F6)."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from running_app import configure
from textual import events
from tui_driver import LocalServer, TuiDriver, local_server, open_tui

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


async def asked(tui: TuiDriver, dialog: type = PermissionDialog) -> None:
    await tui.until(lambda: isinstance(tui.app.screen, dialog) and tui.app.screen.is_mounted)
    await tui.pilot.pause()


def written(server: LocalServer) -> bool:
    return (Path(server.project) / "a.txt").exists()


async def test_a_permission_is_asked_and_allowed_once(tmp_path: Path) -> None:
    async with local_server(tmp_path, writing()).serving() as server, open_tui(server) as tui:
        await tui.say("write it")
        await asked(tui)
        assert tui.app.query_one(StatusBar).state.asks == 1
        assert tui.cards[0].has_class("-waiting")
        await tui.pilot.press("o")
        await tui.until(lambda: tui.idle and tui.answers == ["done"])
        assert written(server)
        assert "allowed (once) by you" in tui.text_of(tui.cards[0])


async def test_a_denial_tells_the_agent_why(tmp_path: Path) -> None:
    model = writing()
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("write it")
        await asked(tui)
        await tui.pilot.press("d", *"no", "enter")
        await tui.until(lambda: tui.idle and tui.answers == ["done"])
        assert not written(server)
        assert tui.cards[0].has_class("-failed")
        assert "denied by you" in tui.text_of(tui.cards[0])


async def test_an_answer_from_elsewhere_closes_the_dialog_and_says_whose_it_was(tmp_path: Path) -> None:
    """Field notes: the first answer wins and the other one sees it."""
    async with local_server(tmp_path, writing()).serving() as server, open_tui(server) as tui:
        await tui.say("write it")
        await asked(tui)
        async with Client(socket=server.socket, client_id="bob") as bob:
            workspace = tui.app.connection.workspace_id
            (ask,) = (await bob.permissions(workspace)).items
            await bob.answer_permission(workspace, ask.id, PermissionAnswer.ONCE)
        await tui.until(lambda: len(tui.app.screen_stack) == 1)
        await tui.until(lambda: "bob allowed it once" in tui.screen.replace("\n", " "))
        await tui.until(lambda: tui.idle and written(server))
        assert "allowed (once) by bob" in tui.text_of(tui.cards[0])
        async with open_tui(server, session_id=tui.app.current.session_id) as late:
            await late.until(lambda: bool(late.cards) and "allowed (once) by bob" in late.text_of(late.cards[0]))


async def test_f6_who_denied_what_is_there_for_whoever_opens_the_session_later(tmp_path: Path) -> None:
    """The same words as live; of the same person at another terminal, "you"."""
    async with local_server(tmp_path, writing()).serving() as server, open_tui(server) as tui:
        await tui.say("write it")
        await asked(tui)
        await tui.pilot.press("d", "enter")
        await tui.until(lambda: tui.idle and tui.answers == ["done"])
        words = tui.text_of(tui.cards[0])
        assert "denied by you" in words
        async with open_tui(server, session_id=tui.app.current.session_id) as late:
            await late.until(lambda: bool(late.cards) and late.text_of(late.cards[0]) == words)


async def test_what_is_put_off_comes_back_with_a_key(tmp_path: Path) -> None:
    async with local_server(tmp_path, writing()).serving() as server, open_tui(server) as tui:
        await tui.say("write it")
        await asked(tui)
        await tui.pilot.press("escape")
        await tui.until(lambda: len(tui.app.screen_stack) == 1)
        assert "needed (ctrl+g)" in tui.screen
        await tui.pilot.press("ctrl+g")
        await asked(tui)
        await tui.pilot.press("o")
        await tui.until(lambda: tui.idle and written(server))


@pytest.mark.parametrize("command", ["rename", "export"])
async def test_an_ask_that_comes_behind_a_dialog_is_shown_after_it(tmp_path: Path, command: str) -> None:
    gate = Gate()
    model = ScriptedModel([[Say("one moment"), Pause(gate), WRITE], [Say("done")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("write it")
        await gate.reached()
        tui.app.command_actions.do(command)
        await tui.until(lambda: tui.app.screen.is_modal)
        gate.open()
        await tui.until(lambda: tui.app.query_one(StatusBar).state.asks == 1)
        assert not isinstance(tui.app.screen, PermissionDialog)
        await tui.pilot.press("escape")
        await asked(tui)
        await tui.pilot.press("o")
        await tui.until(lambda: tui.idle and written(server))


async def test_a_cancel_withdraws_what_was_asked(tmp_path: Path) -> None:
    async with local_server(tmp_path, writing()).serving() as server, open_tui(server) as tui:
        await tui.say("write it")
        await asked(tui)
        async with Client(socket=server.socket, client_id="bob") as bob:
            await bob.cancel_run(tui.app.connection.workspace_id, tui.app.current.unfinished[0].run_id)
        await tui.until(lambda: len(tui.app.screen_stack) == 1 and tui.idle)
        assert tui.app.query_one(StatusBar).state.asks == 0


async def test_a_question_is_answered(tmp_path: Path) -> None:
    model = ScriptedModel([[CallTool("question", {"text": "Which?", "choices": ["red", "blue"]})], [Say("fine")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("ask me")
        await asked(tui, QuestionDialog)
        assert "1 red" in tui.screen
        assert "2 blue" in tui.screen
        await tui.pilot.press("2")
        await tui.until(lambda: tui.idle and tui.answers == ["fine"])
        assert "blue" in tui.text_of(tui.cards[0])


async def test_a_limit_is_a_question_and_stop_ends_the_run_with_a_note(tmp_path: Path) -> None:
    configure(limits={"steps": 1})
    model = ScriptedModel([[CallTool("ls", {"path": ".", "depth": depth})] for depth in (1, 2, 3)])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("go on and on")
        await asked(tui, QuestionDialog)
        assert "The agent reached a limit: 1 step. Continue?" in tui.screen
        await tui.pilot.press("1")
        await tui.until(lambda: len(model.requests) == 2)
        await asked(tui, QuestionDialog)
        await tui.pilot.press("2")
        await tui.until(lambda: tui.idle and "Stopped at a limit: " in tui.screen)


async def test_an_ask_that_was_there_before_is_shown_to_who_attaches(tmp_path: Path) -> None:
    """Field notes, opencode #21154."""
    async with local_server(tmp_path, writing()).serving() as server:
        async with open_tui(server) as first:
            await first.say("write it")
            await asked(first)
        async with open_tui(server, resume=True, name="you") as tui:
            await asked(tui)
            await tui.pilot.press("o")
            await tui.until(lambda: tui.idle and written(server))


def slowly(tui: TuiDriver, now: list[float]) -> None:
    """The clock of the dialogs is the test's: somebody types as one opens, until the test lets time pass."""
    tui.app.asking.grace_s = GRACE_S
    tui.app.asking.clock = lambda: now[0]


async def opened(tui: TuiDriver, dialog: type) -> None:
    await tui.until(lambda: isinstance(tui.app.screen, dialog) and tui.app.screen.is_mounted)


async def test_what_is_typed_as_a_dialog_opens_goes_into_the_prompt(tmp_path: Path) -> None:
    """It answers nothing, none of it is lost, and its order is kept: enter begins a line instead of sending."""
    now = [100.0]
    async with local_server(tmp_path, writing()).serving() as server, open_tui(server) as tui:
        slowly(tui, now)
        await tui.say("write it")
        await tui.type("half a ")
        await opened(tui, PermissionDialog)
        await tui.pilot.press(*"thougx", "backspace", *"ht", "enter", *"soo", "enter")
        await tui.until(lambda: tui.app.composer.input.text == "half a thought\nsoo")
        assert isinstance(tui.app.screen, PermissionDialog)
        await tui.until(lambda: "went into your prompt" in tui.screen)
        now[0] += 1.0
        await tui.pilot.press("o")
        await tui.until(lambda: tui.idle and written(server))
        assert tui.app.composer.input.text == "half a thought\nsoo"
        assert tui.prompts == ["write it"]


async def test_what_is_pasted_as_a_dialog_opens_goes_into_the_prompt_long_text_as_a_file(tmp_path: Path) -> None:
    now = [100.0]
    async with local_server(tmp_path, writing()).serving() as server, open_tui(server) as tui:
        slowly(tui, now)
        await tui.say("write it")
        await opened(tui, PermissionDialog)
        await tui.pilot.press(*"see ")
        tui.app.post_message(events.Paste("o\na\n"))
        tui.app.post_message(events.Paste("x\n" * 2_000))
        await tui.until(lambda: tui.app.composer.input.text == "see o\na\n" and tui.app.composer.attachments)
        now[0] += 1.0
        tui.app.post_message(events.Paste("later"))
        await tui.until(lambda: tui.app.composer.input.text == "see o\na\nlater")
        assert isinstance(tui.app.screen, PermissionDialog)
        assert not written(server)


async def test_an_enter_alone_as_a_dialog_opens_sends_nothing(tmp_path: Path) -> None:
    """Half a prompt is in the composer: who wants to say yes a little too early must not send it."""
    now = [100.0]
    async with local_server(tmp_path, writing()).serving() as server, open_tui(server) as tui:
        slowly(tui, now)
        await tui.say("write it")
        await tui.type("half a prom")
        await opened(tui, PermissionDialog)
        await tui.pilot.press("enter")
        now[0] += 1.0
        await tui.pilot.press("enter")
        await tui.until(lambda: tui.idle and written(server))
        assert tui.app.composer.input.text == "half a prom"


@pytest.mark.parametrize("choices", [[], ["red", "blue"]])
async def test_what_is_typed_as_a_question_opens_is_no_part_of_its_answer(tmp_path: Path, choices: list[str]) -> None:
    now = [100.0]
    model = ScriptedModel([[CallTool("question", {"text": "Which?", "choices": choices})], [Say("fine")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        slowly(tui, now)
        await tui.say("ask me")
        await opened(tui, QuestionDialog)
        await tui.pilot.press(*"then 1")
        tui.app.post_message(events.Paste(" and 2"))
        await tui.until(lambda: tui.app.composer.input.text == "then 1 and 2")
        now[0] += 1.0
        await tui.pilot.press(*("enter",) if choices else (*"red", "enter"))
        await tui.until(lambda: tui.idle and tui.answers == ["fine"])
        assert "red" in tui.text_of(tui.cards[0])
        assert "then" not in tui.text_of(tui.cards[0])


async def test_two_terminals_one_answer(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(local_server(tmp_path, writing()).serving())
        async with open_tui(server, name="ann") as ann:
            await ann.say("write it")
            await asked(ann)
            async with open_tui(server, name="bob", resume=True) as bob:
                await asked(bob)
                await bob.pilot.press("o")
                await bob.until(lambda: bob.idle and written(server))
            await ann.until(lambda: len(ann.app.screen_stack) == 1 and ann.idle)
            assert "by bob" in ann.text_of(ann.cards[0])
