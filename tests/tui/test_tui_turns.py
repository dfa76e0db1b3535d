"""Undo with the prompt back, retry, and the actions on a message."""

from pathlib import Path

import pytest
from tui_deck import Deck, Harbour, aboard, harbour, long_session

from longboat.client import Client
from longboat.errors import ModelError
from longboat.testing import CallTool, Fail, Say, ScriptedModel, Think
from longboat.tui.dialogs.confirm import ConfirmDialog
from longboat.tui.messages import AnswerView, PromptView
from longboat.tui.turns import UndoneLine
from longboat.wire.models import Attachment, FilePart, Role
from longboat.wire.requests import Approve

SIZES = ((200, 50), (120, 40), (80, 24), (40, 15))
WRITE = CallTool("write", {"path": "a.py", "content": "one\n"})


async def said(deck: Deck, *prompts: str) -> None:
    for prompt in prompts:
        known = len(deck.app.desk.transcript.messages)
        await deck.say(prompt)
        await deck.until(lambda: deck.idle and len(deck.app.desk.transcript.messages) > known)  # noqa: B023
    await deck.until(lambda: len(deck.prompts) == len(prompts))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_undo_puts_the_prompt_back_and_says_what_was_undone(tmp_path: Path, size: tuple[int, int]) -> None:
    model = ScriptedModel([[WRITE], [Say("done")]])
    port = harbour(tmp_path, model)
    async with port.serving(), aboard(port, size=size, approve=Approve.ALL) as deck:
        await said(deck, "write it")
        await deck.say("/undo")
        await deck.until(lambda: deck.prompts == [] and deck.app.composer.input.text == "write it")
        line = deck.text_of(deck.app.query_one(UndoneLine))
        assert "Undone: “write it”." in line
        assert "a.py removed" in line
        assert "/redo" in line
        assert "Undone: “write it”" in deck.screen
        assert not (Path(port.project) / "a.py").exists()


async def test_redo_takes_the_prompt_from_the_composer_again(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await said(deck, "one", "two")
        await deck.pilot.press("ctrl+x", "u")
        await deck.until(lambda: deck.app.composer.input.text == "two" and deck.prompts == ["one"])
        await deck.pilot.press("ctrl+x", "r")
        await deck.until(lambda: deck.prompts == ["one", "two"] and deck.app.composer.input.text == "")
        assert not deck.app.query_one(UndoneLine).display


async def test_undo_leaves_what_is_being_written_alone(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await said(deck, "one")
        await deck.type("half a thought")
        await deck.pilot.press("ctrl+x", "u")
        await deck.until(lambda: deck.prompts == [])
        assert deck.app.composer.input.text == "half a thought"
        deck.app.composer.put("")
        await deck.pilot.press("up")
        assert deck.app.composer.input.text == "one"


async def test_what_can_no_longer_be_restored_is_no_longer_offered(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await said(deck, "one")
        await deck.say("/undo")
        await deck.until(lambda: deck.app.query_one(UndoneLine).display)
        await deck.say("another")
        await deck.until(lambda: deck.idle and deck.prompts == ["another"])
        assert not deck.app.query_one(UndoneLine).display


async def test_undo_brings_back_the_attachments_too(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        deck.app.composer.attach(Attachment(name="note.txt", media_type="text/plain", text="remember"))
        await said(deck, "read it")
        await deck.say("/undo")
        await deck.until(lambda: deck.app.composer.input.text == "read it")
        assert [each.name for each in deck.app.composer.attachments] == ["note.txt"]


# -- retry


async def test_ctrl_r_sends_a_failed_prompt_again(tmp_path: Path) -> None:
    model = ScriptedModel([[Fail(ModelError("Out of luck."))], [Say("fine")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        deck.app.composer.attach(Attachment(name="note.txt", media_type="text/plain", text="remember"))
        await deck.say("try it")
        await deck.until(lambda: deck.idle and deck.notes)
        assert deck.screen.count("Out of luck.") == 1, "an error is shown once"
        assert "ctrl+r" in deck.screen
        await deck.pilot.press("ctrl+r")
        await deck.until(lambda: deck.idle and deck.answers == ["fine"])
        sent = [message for message in deck.app.desk.transcript.messages if message.role is Role.USER]
        assert [any(isinstance(part, FilePart) for part in message.parts) for message in sent] == [True, True]
        await deck.pilot.press("ctrl+r")
        await deck.until(lambda: "Nothing to retry" in deck.screen)
        assert len(deck.answers) == 1


# -- the actions on a message


async def select(deck: Deck, role: Role, text: str) -> None:
    """Select the message with this text by the keys."""
    await deck.pilot.press("ctrl+up")
    for _ in range(len(deck.app.desk.transcript.messages)):
        message = deck.app.message_bar.selected
        assert message is not None
        if message.role is role and any(getattr(part, "text", "") == text for part in message.parts):
            return
        await deck.pilot.press("up")
    raise AssertionError(f"there is no {text!r}\n{deck.screen}")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_message_is_selected_by_keys_and_copied(tmp_path: Path, size: tuple[int, int]) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port, size=size) as deck:
        await said(deck, "one", "two")
        await select(deck, Role.ASSISTANT, "echo: one")
        shown = " ".join(deck.screen.replace("\N{NO-BREAK SPACE}", " ").split())
        assert "c copy" in shown
        assert "edit and resend" not in shown, "that is for prompts"
        await deck.pilot.press("c")
        await deck.until(lambda: deck.app.clipboard == "echo: one")
        assert deck.app.composer.input.has_focus
        assert deck.app.message_bar.selected is None


async def test_letters_that_mean_nothing_there_go_to_the_prompt(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await said(deck, "one")
        await deck.pilot.press("ctrl+up", "h", "i")
        await deck.until(lambda: deck.app.composer.input.text == "hi")
        await deck.until(lambda: deck.app.message_bar.selected is None)


async def test_a_click_selects_a_message_and_leaves_the_keys_to_the_prompt(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await said(deck, "one")
        await deck.pilot.click(AnswerView, offset=(2, 0))
        await deck.until(lambda: deck.app.message_bar.selected is not None)
        assert deck.app.query_one(AnswerView).has_class("-selected")
        await deck.pilot.press("c", "u")
        assert deck.app.composer.input.text == "cu"
        await deck.pilot.press("escape")
        assert deck.app.message_bar.selected is None
        await deck.pilot.click(PromptView)
        await deck.until(lambda: deck.app.message_bar.selected is not None)
        place = deck.lines[deck.app.message_bar.region.y].text.index("copy")
        await deck.pilot.click(deck.app.message_bar, offset=(place, 0))
        await deck.until(lambda: deck.app.clipboard == "one")


async def test_undo_to_here_asks_and_takes_back_all_that_came_after(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("a")], [WRITE], [Say("b")], [Say("c")]])
    port = harbour(tmp_path, model)
    async with port.serving(), aboard(port, approve=Approve.ALL) as deck:
        await said(deck, "one", "two", "three")
        await select(deck, Role.USER, "two")
        await deck.pilot.press("u")
        await deck.until(lambda: isinstance(deck.app.screen, ConfirmDialog) and "“two”" in deck.screen)
        await deck.pilot.press("y")
        await deck.until(lambda: deck.prompts == ["one"] and deck.app.composer.input.text == "two")
        assert not (Path(port.project) / "a.py").exists()
        assert "2 turns undone." in deck.text_of(deck.app.query_one(UndoneLine))


async def test_fork_from_here_opens_a_copy_up_to_the_message(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await said(deck, "one", "two")
        before = deck.app.desk.session_id
        await select(deck, Role.ASSISTANT, "echo: one")
        await deck.pilot.press("f")
        await deck.until(lambda: deck.app.desk.session_id != before and deck.answers == ["echo: one"])


async def test_edit_and_resend_keeps_the_session_and_offers_the_prompt_in_a_copy(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await said(deck, "one", "two")
        before = deck.app.desk.session_id
        await select(deck, Role.USER, "two")
        await deck.pilot.press("e")
        await deck.until(lambda: deck.app.desk.session_id != before and deck.answers == ["echo: one"])
        assert deck.app.composer.input.text == "two"
        await deck.say("two, but better")
        await deck.until(lambda: deck.idle and deck.answers == ["echo: one", "echo: two, but better"])
        await deck.say("/new")
        await deck.until(lambda: deck.app.desk.session_id is None)
        await deck.pilot.press("ctrl+up")
        await deck.until(lambda: "No messages yet." in deck.screen)


# -- search, expand


async def imported(port: Harbour, count: int) -> str:
    async with Client(socket=port.socket, client_id="maker") as client:
        workspace = (await client.join(port.project)).id
        return (await client.import_session(workspace, long_session(count))).id


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_search_finds_what_was_not_loaded_and_shows_it(tmp_path: Path, size: tuple[int, int]) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port:
        session_id = await imported(port, 400)
        async with aboard(port, session_id=session_id, size=size) as deck:
            await deck.until(lambda: "Answer 399" in deck.screen)
            assert len(deck.app.desk.transcript.messages) < 400
            await deck.pilot.press("ctrl+f")
            await deck.until(lambda: "Text to find" in deck.screen)
            await deck.pilot.press(*"answer 7")
            await deck.until(lambda: "6 matches" in deck.screen and "reading" not in deck.screen)
            await deck.pilot.press("pagedown", "pagedown", "pagedown", "enter")
            await deck.until(lambda: len(deck.app.screen_stack) == 1 and "Answer 7\n" in f"{_rows(deck)}\n")
            selected = deck.app.message_bar.selected
            assert selected is not None
            assert "# Answer 7\n" in str(selected.parts)[:60].replace("\\n", "\n")
            await deck.pilot.press("ctrl+end")
            await deck.until(lambda: "Answer 399" in deck.screen and deck.app.view.at_end)


async def test_a_message_found_in_the_list_of_sessions_is_shown_however_old_it_is(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port:
        session_id = await imported(port, 400)
        async with aboard(port, size=(120, 40)) as deck:
            await deck.pilot.press("ctrl+s")
            await deck.until(lambda: "400 messages" in deck.screen)
            await deck.pilot.press(*"prompt 114")
            await deck.until(lambda: "prompt: prompt 114" in deck.screen)
            await deck.pilot.press("enter")
            await deck.until(lambda: deck.app.message_bar.selected is not None and "prompt 114\n" in f"{_rows(deck)}\n")
            assert deck.app.desk.session_id == session_id
            await deck.pilot.press("escape")
            await deck.pilot.press("ctrl+s")
            await deck.until(lambda: "400 messages" in deck.screen)
            await deck.pilot.press(*"prompt 302")
            await deck.until(lambda: "prompt: prompt 302" in deck.screen)
            await deck.pilot.press("enter")
            await deck.until(lambda: "prompt 302\n" in f"{_rows(deck)}\n" and len(deck.app.screen_stack) == 1)


async def test_a_message_found_in_another_directory_is_told_with_the_command_that_opens_it(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port:
        other = tmp_path / "other"
        other.mkdir()
        async with Client(socket=port.socket, client_id="maker") as client:
            workspace = (await client.join(other)).id
            session_id = (await client.import_session(workspace, long_session(4))).id
        async with aboard(port, size=(140, 40)) as deck:
            await deck.pilot.press("ctrl+s")
            await deck.until(lambda: "No matching sessions." in deck.screen)
            await deck.pilot.press(*"prompt 2")
            await deck.until(lambda: "In other directories" in deck.screen)
            await deck.pilot.press("enter")
            await deck.until(lambda: f"longboat -s {session_id}" in " ".join(deck.screen.split()))
            assert deck.app.desk.session_id is None


def _rows(deck: Deck) -> str:
    return "\n".join(line.text[: deck.app.view.size.width].strip() for line in deck.lines)


async def test_search_reads_tool_output_and_reasoning_and_a_word_that_is_nowhere(tmp_path: Path) -> None:
    model = ScriptedModel([[Think("perhaps the keel"), CallTool("bash", {"command": "echo barnacle"})], [Say("clean")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port, approve=Approve.ALL) as deck:
        await deck.say("look below")
        await deck.until(lambda: deck.idle and deck.answers)
        for word, label in (("BARNACLE", "output"), ("keel", "thought"), ("below", "you"), ("clean", "agent")):
            await deck.say(f"/find {word}")
            await deck.until(lambda: "match" in deck.screen and label in deck.screen)  # noqa: B023
            await deck.pilot.press("escape")
            await deck.until(lambda: len(deck.app.screen_stack) == 1)
        await deck.say("/find kraken")
        await deck.until(lambda: "No match" in deck.screen)


async def test_expand_all_opens_and_closes_every_call_also_later_ones(tmp_path: Path) -> None:
    model = ScriptedModel(
        [
            [Think("idea one\nidea two"), CallTool("bash", {"command": "seq 30"})],
            [Say("a")],
            [CallTool("bash", {"command": "seq 40"})],
            [Say("b")],
        ]
    )
    async with harbour(tmp_path, model).serving() as port, aboard(port, approve=Approve.ALL) as deck:
        await deck.say("count")
        await deck.until(lambda: deck.idle and deck.answers == ["a"])
        await deck.pilot.press("ctrl+x", "a")
        await deck.until(lambda: "\n7\n" in deck.text_of(deck.cards[0]))
        await deck.say("again")
        await deck.until(lambda: deck.idle and len(deck.cards) == 2 and "\n8\n" in deck.text_of(deck.cards[1]))
        await deck.say("/expand")
        await deck.until(lambda: all("\n7\n" not in deck.text_of(card) for card in deck.cards))
