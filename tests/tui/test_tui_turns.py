"""Undo with the prompt back, retry, and the actions on a message."""

from pathlib import Path

import pytest
from tui_driver import LocalServer, TuiDriver, local_server, long_session, open_tui
from tui_stage import picture

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


async def said(tui: TuiDriver, *prompts: str) -> None:
    for prompt in prompts:
        known = len(tui.app.current.transcript.messages)
        await tui.say(prompt)
        await tui.until(lambda: tui.idle and len(tui.app.current.transcript.messages) > known)  # noqa: B023
    await tui.until(lambda: len(tui.prompts) == len(prompts))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_undo_puts_the_prompt_back_and_says_what_was_undone(tmp_path: Path, size: tuple[int, int]) -> None:
    model = ScriptedModel([[WRITE], [Say("done")]])
    server = local_server(tmp_path, model)
    async with server.serving(), open_tui(server, size=size, approve=Approve.ALL) as tui:
        await said(tui, "write it")
        await tui.say("/undo")
        await tui.until(lambda: tui.prompts == [] and tui.app.composer.input.text == "write it")
        line = tui.text_of(tui.app.query_one(UndoneLine))
        assert "Undone: “write it”." in line
        assert "a.py removed" in line
        assert "/redo" in line
        assert "Undone: “write it”" in tui.screen
        assert not (Path(server.project) / "a.py").exists()


async def test_redo_takes_the_prompt_from_the_composer_again(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await said(tui, "one", "two")
        await tui.pilot.press("ctrl+x", "u")
        await tui.until(lambda: tui.app.composer.input.text == "two" and tui.prompts == ["one"])
        await tui.pilot.press("ctrl+x", "r")
        await tui.until(lambda: tui.prompts == ["one", "two"] and tui.app.composer.input.text == "")
        assert not tui.app.query_one(UndoneLine).display


async def test_undo_leaves_what_is_being_written_alone(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await said(tui, "one")
        await tui.type("half a thought")
        await tui.pilot.press("ctrl+x", "u")
        await tui.until(lambda: tui.prompts == [])
        assert tui.app.composer.input.text == "half a thought"
        tui.app.composer.put("")
        await tui.pilot.press("up")
        assert tui.app.composer.input.text == "one"


async def test_what_can_no_longer_be_restored_is_no_longer_offered(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await said(tui, "one")
        await tui.say("/undo")
        await tui.until(lambda: tui.app.query_one(UndoneLine).display)
        await tui.say("another")
        await tui.until(lambda: tui.idle and tui.prompts == ["another"])
        assert not tui.app.query_one(UndoneLine).display


async def test_undo_brings_back_the_attachments_too(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        tui.app.composer.attach(Attachment(name="note.txt", media_type="text/plain", text="remember"))
        await said(tui, "read it")
        await tui.say("/undo")
        await tui.until(lambda: tui.app.composer.input.text == "read it")
        assert [each.name for each in tui.app.composer.attachments] == ["note.txt"]


# -- retry


async def test_ctrl_r_sends_a_failed_prompt_again(tmp_path: Path) -> None:
    model = ScriptedModel([[Fail(ModelError("Out of luck."))], [Say("fine")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        tui.app.composer.attach(Attachment(name="note.txt", media_type="text/plain", text="remember"))
        await tui.say("try it")
        await tui.until(lambda: tui.idle and tui.notes)
        assert tui.screen.count("Out of luck.") == 1, "an error is shown once"
        assert "ctrl+r" in tui.screen
        await tui.pilot.press("ctrl+r")
        await tui.until(lambda: tui.idle and tui.answers == ["fine"])
        sent = [message for message in tui.app.current.transcript.messages if message.role is Role.USER]
        assert [any(isinstance(part, FilePart) for part in message.parts) for message in sent] == [True, True]
        await tui.pilot.press("ctrl+r")
        await tui.until(lambda: "Nothing to retry" in tui.screen)
        assert len(tui.answers) == 1


# -- the actions on a message


async def select(tui: TuiDriver, role: Role, text: str) -> None:
    """Select the message with this text by the keys."""
    await tui.pilot.press("ctrl+up")
    for _ in range(len(tui.app.current.transcript.messages)):
        message = tui.app.message_bar.selected
        assert message is not None
        if message.role is role and any(getattr(part, "text", "") == text for part in message.parts):
            return
        await tui.pilot.press("up")
    raise AssertionError(f"there is no {text!r}\n{tui.screen}")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_message_is_selected_by_keys_and_copied(tmp_path: Path, size: tuple[int, int]) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server, size=size) as tui:
        await said(tui, "one", "two")
        await select(tui, Role.ASSISTANT, "echo: one")
        shown = " ".join(tui.screen.replace("\N{NO-BREAK SPACE}", " ").split())
        assert "c copy" in shown
        assert "edit and resend" not in shown, "that is for prompts"
        await tui.pilot.press("c")
        await tui.until(lambda: tui.app.clipboard == "echo: one")
        assert tui.app.composer.input.has_focus
        assert tui.app.message_bar.selected is None


async def test_letters_that_mean_nothing_there_go_to_the_prompt(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await said(tui, "one")
        await tui.pilot.press("ctrl+up", "h", "i")
        await tui.until(lambda: tui.app.composer.input.text == "hi")
        await tui.until(lambda: tui.app.message_bar.selected is None)


async def test_a_click_selects_a_message_and_leaves_the_keys_to_the_prompt(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await said(tui, "one")
        # Where it stays: it moves as its text is drawn and as the turn ends.
        await tui.until(lambda: "echo: one" in tui.screen and "Idle" in tui.screen)
        await tui.until(lambda: tui.terminal.picture == picture(tui.app))
        await tui.pilot.click(AnswerView, offset=(2, 0))
        await tui.until(lambda: tui.app.message_bar.selected is not None)
        assert tui.app.query_one(AnswerView).has_class("-selected")
        await tui.pilot.press("c", "u")
        assert tui.app.composer.input.text == "cu"
        await tui.pilot.press("escape")
        assert tui.app.message_bar.selected is None
        bar = tui.app.message_bar
        await tui.until(lambda: not bar.region)  # it had moved the messages
        await tui.pilot.click(PromptView)
        await tui.until(lambda: bar.region and "Your prompt  copy" in tui.lines[bar.region.y].text)
        place = tui.lines[bar.region.y].text.index("copy")
        await tui.pilot.click(tui.app.message_bar, offset=(place, 0))
        await tui.until(lambda: tui.app.clipboard == "one")


async def test_undo_to_here_asks_and_takes_back_all_that_came_after(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("a")], [WRITE], [Say("b")], [Say("c")]])
    server = local_server(tmp_path, model)
    async with server.serving(), open_tui(server, approve=Approve.ALL) as tui:
        await said(tui, "one", "two", "three")
        await select(tui, Role.USER, "two")
        await tui.pilot.press("u")
        await tui.until(lambda: isinstance(tui.app.screen, ConfirmDialog) and "“two”" in tui.screen)
        await tui.pilot.press("y")
        await tui.until(lambda: tui.prompts == ["one"] and tui.app.composer.input.text == "two")
        assert not (Path(server.project) / "a.py").exists()
        assert "2 turns undone." in tui.text_of(tui.app.query_one(UndoneLine))


async def test_fork_from_here_opens_a_copy_up_to_the_message(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await said(tui, "one", "two")
        before = tui.app.current.session_id
        await select(tui, Role.ASSISTANT, "echo: one")
        await tui.pilot.press("f")
        await tui.until(lambda: tui.app.current.session_id != before and tui.answers == ["echo: one"])


async def test_edit_and_resend_keeps_the_session_and_offers_the_prompt_in_a_copy(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await said(tui, "one", "two")
        before = tui.app.current.session_id
        await select(tui, Role.USER, "two")
        await tui.pilot.press("e")
        await tui.until(lambda: tui.app.current.session_id != before and tui.answers == ["echo: one"])
        assert tui.app.composer.input.text == "two"
        await tui.say("two, but better")
        await tui.until(lambda: tui.idle and tui.answers == ["echo: one", "echo: two, but better"])
        await tui.say("/new")
        await tui.until(lambda: tui.app.current.session_id is None)
        await tui.pilot.press("ctrl+up")
        await tui.until(lambda: "No messages yet." in tui.screen)


# -- search, expand


async def imported(server: LocalServer, count: int) -> str:
    async with Client(socket=server.socket, client_id="maker") as client:
        workspace = (await client.join(server.project)).id
        return (await client.import_session(workspace, long_session(count))).id


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_search_finds_what_was_not_loaded_and_shows_it(tmp_path: Path, size: tuple[int, int]) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        session_id = await imported(server, 400)
        async with open_tui(server, session_id=session_id, size=size) as tui:
            await tui.until(lambda: "Answer 399" in tui.screen)
            assert len(tui.app.current.transcript.messages) < 400
            await tui.pilot.press("ctrl+f")
            await tui.until(lambda: "Text to find" in tui.screen)
            await tui.pilot.press(*"answer 7")
            await tui.until(lambda: "6 matches" in tui.screen and "reading" not in tui.screen)
            await tui.pilot.press("pagedown", "pagedown", "pagedown", "enter")
            await tui.until(lambda: len(tui.app.screen_stack) == 1 and "Answer 7\n" in f"{_rows(tui)}\n")
            selected = tui.app.message_bar.selected
            assert selected is not None
            assert "# Answer 7\n" in str(selected.parts)[:60].replace("\\n", "\n")
            await tui.pilot.press("ctrl+end")
            await tui.until(lambda: "Answer 399" in tui.screen and tui.app.view.at_end)


async def test_a_message_found_in_the_list_of_sessions_is_shown_however_old_it_is(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        session_id = await imported(server, 400)
        async with open_tui(server, size=(120, 40)) as tui:
            await tui.pilot.press("ctrl+s")
            await tui.until(lambda: "400 messages" in tui.screen)
            await tui.pilot.press(*"prompt 114")
            await tui.until(lambda: "prompt: prompt 114" in tui.screen)
            await tui.pilot.press("enter")
            await tui.until(lambda: tui.app.message_bar.selected is not None and "prompt 114\n" in f"{_rows(tui)}\n")
            assert tui.app.current.session_id == session_id
            await tui.pilot.press("escape")
            await tui.pilot.press("ctrl+s")
            await tui.until(lambda: "400 messages" in tui.screen)
            await tui.pilot.press(*"prompt 302")
            await tui.until(lambda: "prompt: prompt 302" in tui.screen)
            await tui.pilot.press("enter")
            await tui.until(lambda: "prompt 302\n" in f"{_rows(tui)}\n" and len(tui.app.screen_stack) == 1)


async def test_a_message_that_was_looked_for_stays_in_view_while_rows_above_it_grow(tmp_path: Path) -> None:
    """On a slow machine, Markdown gets its height after the jump. Once the reader scrolls, nothing moves by itself."""
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        await imported(server, 400)
        async with open_tui(server, size=(120, 40)) as tui:
            await tui.pilot.press("ctrl+s")
            await tui.until(lambda: "400 messages" in tui.screen)
            await tui.pilot.press(*"prompt 114")
            await tui.until(lambda: "prompt: prompt 114" in tui.screen)
            await tui.pilot.press("enter")
            await tui.until(lambda: "prompt 114\n" in f"{_rows(tui)}\n")
            view = tui.app.view
            place = view.scroll_y
            first = view.query(AnswerView).first()
            first.styles.height = first.size.height + 60
            await tui.until(lambda: view.scroll_y > place and "prompt 114\n" in f"{_rows(tui)}\n")
            view.scroll_relative(y=-2, animate=False, immediate=True)
            place = view.scroll_y
            first.styles.height = first.size.height + 60
            await tui.until(lambda: "prompt 114\n" not in f"{_rows(tui)}\n")
            assert view.scroll_y == place


async def test_a_message_found_in_another_directory_is_told_with_the_command_that_opens_it(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        other = tmp_path / "other"
        other.mkdir()
        async with Client(socket=server.socket, client_id="maker") as client:
            workspace = (await client.join(other)).id
            session_id = (await client.import_session(workspace, long_session(4))).id
        async with open_tui(server, size=(140, 40)) as tui:
            await tui.pilot.press("ctrl+s")
            await tui.until(lambda: "No matching sessions." in tui.screen)
            await tui.pilot.press(*"prompt 2")
            await tui.until(lambda: "In other directories" in tui.screen)
            await tui.pilot.press("enter")
            await tui.until(lambda: f"longboat -s {session_id}" in " ".join(tui.screen.split()))
            assert tui.app.current.session_id is None


def _rows(tui: TuiDriver) -> str:
    return "\n".join(line.text[: tui.app.view.size.width].strip() for line in tui.lines)


async def test_search_reads_tool_output_and_reasoning_and_a_word_that_is_nowhere(tmp_path: Path) -> None:
    model = ScriptedModel([[Think("perhaps the keel"), CallTool("bash", {"command": "echo barnacle"})], [Say("clean")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server, approve=Approve.ALL) as tui:
        await tui.say("look below")
        await tui.until(lambda: tui.idle and tui.answers)
        for word, label in (("BARNACLE", "output"), ("keel", "thought"), ("below", "you"), ("clean", "agent")):
            await tui.say(f"/find {word}")
            await tui.until(lambda: "match" in tui.screen and label in tui.screen)  # noqa: B023
            await tui.pilot.press("escape")
            await tui.until(lambda: len(tui.app.screen_stack) == 1)
        await tui.say("/find kraken")
        await tui.until(lambda: "No match" in tui.screen)


async def test_expand_all_opens_and_closes_every_call_also_later_ones(tmp_path: Path) -> None:
    model = ScriptedModel(
        [
            [Think("idea one\nidea two"), CallTool("bash", {"command": "seq 30"})],
            [Say("a")],
            [CallTool("bash", {"command": "seq 40"})],
            [Say("b")],
        ]
    )
    async with local_server(tmp_path, model).serving() as server, open_tui(server, approve=Approve.ALL) as tui:
        await tui.say("count")
        await tui.until(lambda: tui.idle and tui.answers == ["a"])
        await tui.pilot.press("ctrl+x", "a")
        await tui.until(lambda: "\n7\n" in tui.text_of(tui.cards[0]))
        await tui.say("again")
        await tui.until(lambda: tui.idle and len(tui.cards) == 2 and "\n8\n" in tui.text_of(tui.cards[1]))
        await tui.say("/expand")
        await tui.until(lambda: all("\n7\n" not in tui.text_of(card) for card in tui.cards))
