"""The composer of the terminal app: keys, completion, history, attachments, commands (F2)."""

import base64
from pathlib import Path

import pytest
from textual import events
from tui_driver import TuiDriver, local_server, open_tui
from tui_stage import a_run

from longboat.testing import Say, ScriptedModel
from longboat.tui.dialogs.confirm import ConfirmDialog
from longboat.tui.dialogs.help import HelpScreen
from longboat.tui.dialogs.models import ModelPicker
from longboat.tui.dialogs.sessions import SessionList
from longboat.tui.panels.queue import QueuePanel
from longboat.tui.saved_state import SavedState
from longboat.tui.status import Header, StatusBar
from longboat.wire.models import FilePart
from longboat.wire.requests import Approve

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def paste(tui: TuiDriver, text: str) -> None:
    tui.app.post_message(events.Paste(text))
    await tui.pilot.pause()


async def test_ctrl_j_begins_a_line_and_enter_sends_them_all(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await tui.pilot.press("a", "ctrl+j", "b", "enter")
        await tui.until(lambda: tui.prompts == ["a\nb"])
        assert tui.app.composer.input.text == ""


async def test_a_paste_has_the_lines_that_it_had_where_it_was_copied(tmp_path: Path) -> None:
    """Terminals send a carriage return for the end of a line, as for the key."""
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await paste(tui, "one\rtwo\r\nthree\n")
        assert tui.app.composer.input.text == "one\ntwo\nthree\n"
        await paste(tui, "a line\r" * 400)
        attached = tui.app.composer.attachments[-1]
        assert attached.text == "a line\n" * 400


async def test_an_empty_prompt_is_not_sent(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await tui.pilot.press("enter", "space", "enter")
        assert tui.app.sender.waiting == []


async def test_the_arrows_walk_through_prompts_of_the_session_and_of_this_terminal(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        async with open_tui(server) as tui:
            for prompt in ("first", "second"):
                await tui.say(prompt)
                await tui.until(lambda: tui.idle)
        async with open_tui(server, resume=True) as tui:
            await tui.until(lambda: len(tui.answers) == 2)
            text = lambda: tui.app.composer.input.text  # noqa: E731
            await tui.type("half typed")
            seen = []
            for key in ("up", "up", "up", "down", "down"):
                await tui.pilot.press(key)
                seen.append(text())
            assert seen == ["second", "first", "first", "second", "half typed"]


async def test_an_at_sign_offers_files_of_the_workspace(tmp_path: Path) -> None:
    server = local_server(tmp_path, ScriptedModel.echo())
    (Path(server.project) / "src").mkdir()
    (Path(server.project) / "src" / "parser.py").write_text("")
    async with server.serving(), open_tui(server) as tui:
        await tui.type("look at @pars")
        await tui.until(lambda: tui.app.composer.choices.is_open)
        await tui.pilot.press("tab")
        assert tui.app.composer.input.text == "look at @src/parser.py "
        assert not tui.app.composer.choices.is_open


async def test_a_slash_offers_commands_ours_and_the_projects(tmp_path: Path) -> None:
    server = local_server(tmp_path, ScriptedModel.echo())
    place = Path(server.project) / ".agents" / "commands"
    place.mkdir(parents=True)
    (place / "review.md").write_text("---\ndescription: Review [red]it[/red]\n---\nReview $ARGUMENTS\n")
    async with server.serving(), open_tui(server) as tui:
        await tui.until(lambda: tui.app.project_commands)
        await tui.type("/re")
        await tui.until(lambda: tui.app.composer.choices.is_open)
        assert "/redo" in tui.screen
        assert "Review [red]it[/red]" in tui.screen
        await tui.pilot.press("escape")
        assert not tui.app.composer.choices.is_open
        assert tui.app.composer.input.text == "/re"
        await tui.say("/review the parser")
        await tui.until(lambda: tui.idle and tui.answers and "Review the parser" in tui.answers[0])


async def offered(tui: TuiDriver, first: str) -> None:
    await tui.until(lambda: (chosen := tui.app.composer.choices.chosen) is not None and chosen.text == first)


async def test_enter_runs_a_highlighted_command_and_completes_one_that_takes_more(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        box = tui.app.composer
        await tui.type("/yo")
        await offered(tui, "/yolo")
        await tui.pilot.press("tab")
        assert (box.input.text, tui.app.approve) == ("/yolo ", Approve.ASK)
        await tui.type("/side")
        await offered(tui, "/sidebar")
        await tui.pilot.press("enter")
        await tui.until(lambda: box.input.text == "")
        await tui.type("/eff")
        await offered(tui, "/effort")
        await tui.pilot.press("enter")
        assert (box.input.text, tui.app.effort) == ("/effort ", None)
        await tui.pilot.press(*"high", "enter")
        await tui.until(lambda: tui.app.effort == "high")
        await tui.type("/")
        await offered(tui, "/attach")
        await tui.pilot.press("down", "down", "down", "enter")
        await tui.until(lambda: "No answer to copy yet" in tui.screen)


async def test_enter_runs_nothing_that_was_not_surely_meant(tmp_path: Path) -> None:
    """The letters of one command stand in another, and some are not to be run by a slip."""
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        box = tui.app.composer
        for typed, first in (("/lo", "/yolo"), ("/yo", "/yolo"), ("/ancel", "/cancel"), ("/un", "/undo")):
            await tui.type(typed)
            await offered(tui, first)
            await tui.pilot.press("enter")
            assert (box.input.text, tui.app.approve) == (f"{first} ", Approve.ASK)
        await tui.type("/yolo")
        await tui.pilot.press("enter")
        await tui.until(lambda: isinstance(tui.app.screen, ConfirmDialog))
        await tui.pilot.press("y")
        await tui.until(lambda: tui.app.approve is Approve.ALL)
        assert box.input.text == ""


async def test_enter_runs_a_command_of_the_project_unless_it_takes_more(tmp_path: Path) -> None:
    server = local_server(tmp_path, ScriptedModel.echo())
    place = Path(server.project) / ".agents" / "commands"
    place.mkdir(parents=True)
    (place / "greet.md").write_text("Say hello.\n")
    (place / "grow.md").write_text("---\nargument_hint: what\n---\nGrow $ARGUMENTS\n")
    async with server.serving(), open_tui(server) as tui:
        await tui.until(lambda: tui.app.project_commands)
        await tui.type("/gro")
        await offered(tui, "/grow")
        await tui.pilot.press("enter")
        assert tui.app.composer.input.text == "/grow "
        await tui.type("/gree")
        await offered(tui, "/greet")
        await tui.pilot.press("enter")
        await tui.until(lambda: tui.idle and tui.answers and "Say hello." in tui.answers[0])


async def test_enter_never_takes_what_was_offered_for_something_else(tmp_path: Path) -> None:
    """Over a slow line the list is behind: what is typed counts, not what was highlighted for the half of it."""
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await tui.type("/re")
        await offered(tui, "/redo")
        for key, character in (("n", "n"), ("a", "a"), ("enter", "\r")):
            tui.app.post_message(events.Key(key, character))
        await tui.until(lambda: "Unknown command /rena" in tui.screen)
        assert tui.app.composer.input.text == "/rena"


async def test_long_text_and_pictures_are_pasted_as_attachments(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("seen")]])
    picture = tmp_path / "a pixel.png"
    picture.write_bytes(PIXEL)
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await paste(tui, "short text")
        assert tui.app.composer.input.text == "short text"
        await paste(tui, "x\n" * 2_000)
        await paste(tui, f"'{picture}'")
        await paste(tui, f"file://{str(picture).replace(' ', '%20')}")
        assert tui.app.composer.input.text == "short text"
        assert "pasted-1.txt (2000 lines)" in tui.screen
        assert "a pixel.png" in tui.screen
        await tui.pilot.press("enter")
        await tui.until(lambda: tui.idle and tui.answers == ["seen"])
        parts = [part for message in model.requests[0].messages for part in message.parts if isinstance(part, FilePart)]
        assert [part.name for part in parts] == ["pasted-1.txt", "a pixel.png", "a pixel.png"]
        assert tui.app.composer.attachments == []


async def test_what_is_attached_stays_when_a_command_is_given(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("seen")]])
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text(f"{name}\n")
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say(f"/attach {tmp_path}/one.txt")
        await tui.say(f"/attach {tmp_path}/two.txt")
        await tui.say(f"/attach {tmp_path}/none.txt")
        await tui.until(lambda: any("none.txt is not a file" in each for each in tui.notifications))
        await tui.say("/effort high")
        await tui.say("!true")
        await tui.until(lambda: tui.idle and tui.app.current.session_id)
        assert "one.txt (1 line)  ⊕ two.txt (1 line)" in tui.screen
        await tui.say("read them")
        await tui.until(lambda: tui.idle and tui.answers == ["seen"])
        parts = [part for message in model.requests[0].messages for part in message.parts if isinstance(part, FilePart)]
        assert [part.name for part in parts] == ["one.txt", "two.txt"]
        assert tui.app.composer.attachments == []


async def test_backspace_in_an_empty_composer_takes_an_attachment_away(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await paste(tui, "x" * 3_000)
        await tui.pilot.press("backspace")
        assert tui.app.composer.attachments == []


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("backspace backspace @", "@"),
        ("a b ctrl+j c", "/uab\nc"),
        ("a left left b", "/bua"),
        ("ctrl+u x home y", "yx"),
        ("a b c ctrl+w d", "/d"),
        ("a ctrl+z b", "/ub"),
    ],
)
async def test_keys_that_arrive_at_once_keep_their_order(tmp_path: Path, keys: str, text: str) -> None:
    """As from a slow line, or on a busy machine."""
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await tui.type("/u")
        for key in keys.split():
            tui.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await tui.pilot.pause()
        await tui.until(lambda: tui.app.composer.input.text == text)


async def test_ctrl_c_clears_then_warns_then_leaves(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await tui.type("half a thought")
        await tui.pilot.press("ctrl+c")
        assert tui.app.composer.input.text == ""
        await tui.pilot.press("up")
        assert tui.app.composer.input.text == "half a thought"
        await tui.pilot.press("ctrl+c", "ctrl+c")
        assert not tui.app._exit
        await tui.pilot.press("ctrl+c")
        await tui.until(lambda: tui.app._exit)


@pytest.mark.parametrize(
    ("key", "dialog"),
    [("ctrl+l", ModelPicker), ("ctrl+s", SessionList), ("f1", HelpScreen), ("question_mark", HelpScreen)],
)
async def test_keys_open_their_dialogs(tmp_path: Path, key: str, dialog: type) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await tui.pilot.press(key)
        await tui.until(lambda: isinstance(tui.app.screen, dialog))
        await tui.pilot.press("escape")
        await tui.until(lambda: len(tui.app.screen_stack) == 1)


async def test_ctrl_p_offers_our_commands(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        await tui.pilot.press("ctrl+p")
        await tui.until(lambda: len(tui.app.screen_stack) == 2)
        await tui.pilot.press(*"approve")
        await tui.until(lambda: "Yolo" in tui.screen)
        await tui.pilot.press("enter")
        await tui.until(lambda: isinstance(tui.app.screen, ConfirmDialog))
        await tui.pilot.press("y")
        await tui.until(lambda: tui.app.approve is Approve.ALL)


@pytest.mark.parametrize("key", ["pagedown", "pageup", "down", "up", "end"])
async def test_keys_that_come_with_ctrl_p_end_nothing(tmp_path: Path, key: str) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        for each in ("ctrl+p", key, key):
            tui.app.post_message(events.Key(each, None))
        await tui.until(lambda: len(tui.app.screen_stack) == 2 and "Type to search" in tui.screen)


async def test_commands_do_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with (
        local_server(tmp_path, ScriptedModel.echo()).serving() as server,
        open_tui(server, size=(120, 30)) as tui,
    ):
        app = tui.app
        await tui.say("/undo")
        await tui.until(lambda: "No session yet" in tui.screen)
        await tui.say("hello")
        await tui.until(lambda: tui.idle and tui.answers == ["echo: hello"])
        await tui.say("/rename A [b]new[/b] title")
        await tui.until(lambda: app.query_one(Header).details.title == "A [b]new[/b] title")
        await tui.say("/effort high")
        await tui.say("/model some/model")
        await tui.say("/yolo")
        await tui.until(lambda: isinstance(app.screen, ConfirmDialog))
        await tui.pilot.press("y")
        await tui.until(lambda: "model high · approve all" in tui.screen)
        await tui.say("/theme light")
        await tui.until(lambda: app.theme == "longboat-light")
        await tui.say("/export out.md")
        await tui.until((tmp_path / "out.md").exists)
        assert "echo: hello" in (tmp_path / "out.md").read_text()
        before = app.current.session_id
        await tui.say("/fork")
        await tui.until(lambda: app.current.session_id != before and tui.answers == ["echo: hello"])
        await tui.say("/new")
        await tui.until(lambda: app.current.session_id is None and tui.answers == [])
        await tui.say("/quit")
        await tui.until(lambda: app._exit)


async def test_the_model_effort_and_approval_go_along_with_a_prompt(tmp_path: Path) -> None:
    model = ScriptedModel.echo()
    async with local_server(tmp_path, model).serving() as server, open_tui(server, effort="high") as tui:
        await tui.say("think hard")
        await tui.until(lambda: tui.idle)
        assert model.requests[0].effort == "high"


async def test_an_unknown_command_is_not_sent_and_a_path_is(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await tui.say("/undoo it")
        await tui.until(lambda: "Unknown command /undoo" in tui.screen)
        assert tui.app.composer.input.text == "/undoo it"
        await tui.say("/usr/bin is a path")
        await tui.until(lambda: tui.answers == ["echo: /usr/bin is a path"])


async def test_summarize_is_a_run_of_its_own(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("one")], [Say("The short of it")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("hello")
        await tui.until(lambda: tui.idle)
        await tui.say("/summarize")
        await tui.until(lambda: any(message.summary for message in tui.app.current.transcript.messages) and tui.idle)


async def test_the_next_process_knows_the_theme_and_the_prompts_of_this_one(tmp_path: Path) -> None:
    keeping = SavedState(tmp_path / "state")
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        async with open_tui(server, keeping=keeping) as tui:
            await tui.say("said before")
            await tui.say("!echo by hand")
            await tui.say("/theme light")
            await tui.until(lambda: tui.idle and tui.app.theme == "longboat-light")
        async with open_tui(server, keeping=keeping) as tui:
            assert tui.app.theme == "longboat-light"
            for called in ("!echo by hand", "said before"):
                await tui.pilot.press("up")
                await tui.until(lambda: tui.app.composer.input.text == called)  # noqa: B023
            tui.app.composer.clear()
            await tui.say("/theme")
            await tui.until(lambda: "catppuccin" in tui.screen)
            await tui.pilot.press(*"nord", "enter")
            await tui.until(lambda: keeping.theme == "nord" and tui.app.theme == "nord")
            await tui.say("/theme auto")
            await tui.until(lambda: tui.app.theme == "textual-dark")
        assert keeping.theme == "auto"


async def test_a_theme_that_there_is_no_more_is_the_one_that_fits_the_terminal(tmp_path: Path) -> None:
    keeping = SavedState(tmp_path / "state")
    keeping.keep_theme("of-another-version")
    async with (
        local_server(tmp_path, ScriptedModel.echo()).serving() as server,
        open_tui(server, keeping=keeping) as tui,
    ):
        assert tui.app.theme == "textual-dark"


@pytest.mark.parametrize("size", [(50, 20), (80, 24), (80, 32), (120, 40)])
async def test_a_list_over_the_composer_pushes_nothing_off_the_screen(tmp_path: Path, size: tuple[int, int]) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server, size=size) as tui:
        await tui.type("/")
        await tui.until(lambda: tui.app.composer.choices.is_open)
        await tui.until(lambda: tui.lines[-1].text.startswith(" Idle"))  # the server's own queue, empty, has been drawn
        tui.app.query_one(QueuePanel).show([a_run(number) for number in range(1, 9)])
        await tui.until(lambda: "│  / " in tui.screen and "Prompt number 1" in tui.screen)
        assert tui.app.query_one(StatusBar).region.bottom == size[1], tui.screen
        assert tui.lines[-1].text.startswith(" Idle")
        assert "/attach" in tui.screen
        assert "Prompt number 1" in tui.screen
