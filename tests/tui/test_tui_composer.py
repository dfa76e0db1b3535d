"""The composer of the terminal app: keys, completion, history, attachments, commands (F2)."""

import base64
from pathlib import Path

import pytest
from textual import events
from tui_deck import Deck, aboard, harbour
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


async def paste(deck: Deck, text: str) -> None:
    deck.app.post_message(events.Paste(text))
    await deck.pilot.pause()


async def test_ctrl_j_begins_a_line_and_enter_sends_them_all(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await deck.pilot.press("a", "ctrl+j", "b", "enter")
        await deck.until(lambda: deck.prompts == ["a\nb"])
        assert deck.app.composer.input.text == ""


async def test_a_paste_has_the_lines_that_it_had_where_it_was_copied(tmp_path: Path) -> None:
    """Terminals send a carriage return for the end of a line, as for the key."""
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await paste(deck, "one\rtwo\r\nthree\n")
        assert deck.app.composer.input.text == "one\ntwo\nthree\n"
        await paste(deck, "a line\r" * 400)
        attached = deck.app.composer.attachments[-1]
        assert attached.text == "a line\n" * 400


async def test_an_empty_prompt_is_not_sent(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        await deck.pilot.press("enter", "space", "enter")
        assert deck.app.sender.waiting == []


async def test_the_arrows_walk_through_prompts_of_the_session_and_of_this_terminal(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port:
        async with aboard(port) as deck:
            for prompt in ("first", "second"):
                await deck.say(prompt)
                await deck.until(lambda: deck.idle)
        async with aboard(port, resume=True) as deck:
            await deck.until(lambda: len(deck.answers) == 2)
            text = lambda: deck.app.composer.input.text  # noqa: E731
            await deck.type("half typed")
            seen = []
            for key in ("up", "up", "up", "down", "down"):
                await deck.pilot.press(key)
                seen.append(text())
            assert seen == ["second", "first", "first", "second", "half typed"]


async def test_an_at_sign_offers_files_of_the_workspace(tmp_path: Path) -> None:
    port = harbour(tmp_path, ScriptedModel.echo())
    (Path(port.project) / "src").mkdir()
    (Path(port.project) / "src" / "parser.py").write_text("")
    async with port.serving(), aboard(port) as deck:
        await deck.type("look at @pars")
        await deck.until(lambda: deck.app.composer.choices.is_open)
        await deck.pilot.press("tab")
        assert deck.app.composer.input.text == "look at @src/parser.py "
        assert not deck.app.composer.choices.is_open


async def test_a_slash_offers_commands_ours_and_the_projects(tmp_path: Path) -> None:
    port = harbour(tmp_path, ScriptedModel.echo())
    place = Path(port.project) / ".agents" / "commands"
    place.mkdir(parents=True)
    (place / "review.md").write_text("---\ndescription: Review [red]it[/red]\n---\nReview $ARGUMENTS\n")
    async with port.serving(), aboard(port) as deck:
        await deck.until(lambda: deck.app.project_commands)
        await deck.type("/re")
        await deck.until(lambda: deck.app.composer.choices.is_open)
        assert "/redo" in deck.screen
        assert "Review [red]it[/red]" in deck.screen
        await deck.pilot.press("escape")
        assert not deck.app.composer.choices.is_open
        assert deck.app.composer.input.text == "/re"
        await deck.say("/review the parser")
        await deck.until(lambda: deck.idle and deck.answers and "Review the parser" in deck.answers[0])


async def offered(deck: Deck, first: str) -> None:
    await deck.until(lambda: (chosen := deck.app.composer.choices.chosen) is not None and chosen.text == first)


async def test_enter_runs_a_highlighted_command_and_completes_one_that_takes_more(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        box = deck.app.composer
        await deck.type("/yo")
        await offered(deck, "/yolo")
        await deck.pilot.press("tab")
        assert (box.input.text, deck.app.approve) == ("/yolo ", Approve.ASK)
        await deck.type("/side")
        await offered(deck, "/sidebar")
        await deck.pilot.press("enter")
        await deck.until(lambda: box.input.text == "")
        await deck.type("/eff")
        await offered(deck, "/effort")
        await deck.pilot.press("enter")
        assert (box.input.text, deck.app.effort) == ("/effort ", None)
        await deck.pilot.press(*"high", "enter")
        await deck.until(lambda: deck.app.effort == "high")
        await deck.type("/")
        await offered(deck, "/attach")
        await deck.pilot.press("down", "down", "down", "enter")
        await deck.until(lambda: "No answer to copy yet" in deck.screen)


async def test_enter_runs_nothing_that_was_not_surely_meant(tmp_path: Path) -> None:
    """The letters of one command stand in another, and some are not to be run by a slip."""
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        box = deck.app.composer
        for typed, first in (("/lo", "/yolo"), ("/yo", "/yolo"), ("/ancel", "/cancel"), ("/un", "/undo")):
            await deck.type(typed)
            await offered(deck, first)
            await deck.pilot.press("enter")
            assert (box.input.text, deck.app.approve) == (f"{first} ", Approve.ASK)
        await deck.type("/yolo")
        await deck.pilot.press("enter")
        await deck.until(lambda: isinstance(deck.app.screen, ConfirmDialog))
        await deck.pilot.press("y")
        await deck.until(lambda: deck.app.approve is Approve.ALL)
        assert box.input.text == ""


async def test_enter_runs_a_command_of_the_project_unless_it_takes_more(tmp_path: Path) -> None:
    port = harbour(tmp_path, ScriptedModel.echo())
    place = Path(port.project) / ".agents" / "commands"
    place.mkdir(parents=True)
    (place / "greet.md").write_text("Say hello.\n")
    (place / "grow.md").write_text("---\nargument_hint: what\n---\nGrow $ARGUMENTS\n")
    async with port.serving(), aboard(port) as deck:
        await deck.until(lambda: deck.app.project_commands)
        await deck.type("/gro")
        await offered(deck, "/grow")
        await deck.pilot.press("enter")
        assert deck.app.composer.input.text == "/grow "
        await deck.type("/gree")
        await offered(deck, "/greet")
        await deck.pilot.press("enter")
        await deck.until(lambda: deck.idle and deck.answers and "Say hello." in deck.answers[0])


async def test_enter_never_takes_what_was_offered_for_something_else(tmp_path: Path) -> None:
    """Over a slow line the list is behind: what is typed counts, not what was highlighted for the half of it."""
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        await deck.type("/re")
        await offered(deck, "/redo")
        for key, character in (("n", "n"), ("a", "a"), ("enter", "\r")):
            deck.app.post_message(events.Key(key, character))
        await deck.until(lambda: "Unknown command /rena" in deck.screen)
        assert deck.app.composer.input.text == "/rena"


async def test_long_text_and_pictures_are_pasted_as_attachments(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("seen")]])
    picture = tmp_path / "a pixel.png"
    picture.write_bytes(PIXEL)
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await paste(deck, "short text")
        assert deck.app.composer.input.text == "short text"
        await paste(deck, "x\n" * 2_000)
        await paste(deck, f"'{picture}'")
        await paste(deck, f"file://{str(picture).replace(' ', '%20')}")
        assert deck.app.composer.input.text == "short text"
        assert "pasted-1.txt (2000 lines)" in deck.screen
        assert "a pixel.png" in deck.screen
        await deck.pilot.press("enter")
        await deck.until(lambda: deck.idle and deck.answers == ["seen"])
        parts = [part for message in model.requests[0].messages for part in message.parts if isinstance(part, FilePart)]
        assert [part.name for part in parts] == ["pasted-1.txt", "a pixel.png", "a pixel.png"]
        assert deck.app.composer.attachments == []


async def test_what_is_attached_stays_when_a_command_is_given(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("seen")]])
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text(f"{name}\n")
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say(f"/attach {tmp_path}/one.txt")
        await deck.say(f"/attach {tmp_path}/two.txt")
        await deck.say(f"/attach {tmp_path}/none.txt")
        await deck.until(lambda: any("none.txt is not a file" in each.message for each in deck.app._notifications))
        await deck.say("/effort high")
        await deck.say("!true")
        await deck.until(lambda: deck.idle and deck.app.desk.session_id)
        assert "one.txt (1 line)  ⊕ two.txt (1 line)" in deck.screen
        await deck.say("read them")
        await deck.until(lambda: deck.idle and deck.answers == ["seen"])
        parts = [part for message in model.requests[0].messages for part in message.parts if isinstance(part, FilePart)]
        assert [part.name for part in parts] == ["one.txt", "two.txt"]
        assert deck.app.composer.attachments == []


async def test_backspace_in_an_empty_composer_takes_an_attachment_away(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        await paste(deck, "x" * 3_000)
        await deck.pilot.press("backspace")
        assert deck.app.composer.attachments == []


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
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        await deck.type("/u")
        for key in keys.split():
            deck.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await deck.pilot.pause()
        await deck.until(lambda: deck.app.composer.input.text == text)


async def test_ctrl_c_clears_then_warns_then_leaves(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        await deck.type("half a thought")
        await deck.pilot.press("ctrl+c")
        assert deck.app.composer.input.text == ""
        await deck.pilot.press("up")
        assert deck.app.composer.input.text == "half a thought"
        await deck.pilot.press("ctrl+c", "ctrl+c")
        assert not deck.app._exit
        await deck.pilot.press("ctrl+c")
        await deck.until(lambda: deck.app._exit)


@pytest.mark.parametrize(("key", "dialog"), [("ctrl+l", ModelPicker), ("ctrl+s", SessionList), ("f1", HelpScreen)])
async def test_keys_open_their_dialogs(tmp_path: Path, key: str, dialog: type) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        await deck.pilot.press(key)
        await deck.until(lambda: isinstance(deck.app.screen, dialog))
        await deck.pilot.press("escape")
        await deck.until(lambda: len(deck.app.screen_stack) == 1)


async def test_ctrl_p_offers_our_commands(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        await deck.pilot.press("ctrl+p")
        await deck.until(lambda: len(deck.app.screen_stack) == 2)
        await deck.pilot.press(*"approve")
        await deck.until(lambda: "Yolo" in deck.screen)
        await deck.pilot.press("enter")
        await deck.until(lambda: isinstance(deck.app.screen, ConfirmDialog))
        await deck.pilot.press("y")
        await deck.until(lambda: deck.app.approve is Approve.ALL)


@pytest.mark.parametrize("key", ["pagedown", "pageup", "down", "up", "end"])
async def test_keys_that_come_with_ctrl_p_end_nothing(tmp_path: Path, key: str) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port) as deck:
        for each in ("ctrl+p", key, key):
            deck.app.post_message(events.Key(each, None))
        await deck.until(lambda: len(deck.app.screen_stack) == 2 and "Type to search" in deck.screen)


async def test_commands_do_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port, size=(120, 30)) as deck:
        app = deck.app
        await deck.say("/undo")
        await deck.until(lambda: "No session yet" in deck.screen)
        await deck.say("hello")
        await deck.until(lambda: deck.idle and deck.answers == ["echo: hello"])
        await deck.say("/rename A [b]new[/b] title")
        await deck.until(lambda: app.query_one(Header).place.title == "A [b]new[/b] title")
        await deck.say("/effort high")
        await deck.say("/model some/model")
        await deck.say("/yolo")
        await deck.until(lambda: isinstance(app.screen, ConfirmDialog))
        await deck.pilot.press("y")
        await deck.until(lambda: "model high · approve all" in deck.screen)
        await deck.say("/theme light")
        await deck.until(lambda: app.theme == "longboat-light")
        await deck.say("/export out.md")
        await deck.until((tmp_path / "out.md").exists)
        assert "echo: hello" in (tmp_path / "out.md").read_text()
        before = app.desk.session_id
        await deck.say("/fork")
        await deck.until(lambda: app.desk.session_id != before and deck.answers == ["echo: hello"])
        await deck.say("/new")
        await deck.until(lambda: app.desk.session_id is None and deck.answers == [])
        await deck.say("/quit")
        await deck.until(lambda: app._exit)


async def test_the_model_effort_and_approval_go_along_with_a_prompt(tmp_path: Path) -> None:
    model = ScriptedModel.echo()
    async with harbour(tmp_path, model).serving() as port, aboard(port, effort="high") as deck:
        await deck.say("think hard")
        await deck.until(lambda: deck.idle)
        assert model.requests[0].effort == "high"


async def test_an_unknown_command_is_not_sent_and_a_path_is(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await deck.say("/undoo it")
        await deck.until(lambda: "Unknown command /undoo" in deck.screen)
        assert deck.app.composer.input.text == "/undoo it"
        await deck.say("/usr/bin is a path")
        await deck.until(lambda: deck.answers == ["echo: /usr/bin is a path"])


async def test_summarize_is_a_run_of_its_own(tmp_path: Path) -> None:
    model = ScriptedModel([[Say("one")], [Say("The short of it")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("hello")
        await deck.until(lambda: deck.idle)
        await deck.say("/summarize")
        await deck.until(lambda: any(message.summary for message in deck.app.desk.transcript.messages) and deck.idle)


async def test_the_next_process_knows_the_theme_and_the_prompts_of_this_one(tmp_path: Path) -> None:
    keeping = SavedState(tmp_path / "state")
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port:
        async with aboard(port, keeping=keeping) as deck:
            await deck.say("said before")
            await deck.say("!echo by hand")
            await deck.say("/theme light")
            await deck.until(lambda: deck.idle and deck.app.theme == "longboat-light")
        async with aboard(port, keeping=keeping) as deck:
            assert deck.app.theme == "longboat-light"
            called = []
            for _ in range(2):
                await deck.pilot.press("up")
                called.append(deck.app.composer.input.text)
            assert called == ["!echo by hand", "said before"]
            deck.app.composer.clear()
            await deck.say("/theme")
            await deck.until(lambda: "catppuccin" in deck.screen)
            await deck.pilot.press(*"nord", "enter")
            await deck.until(lambda: keeping.theme == "nord" and deck.app.theme == "nord")
            await deck.say("/theme auto")
            await deck.until(lambda: deck.app.theme == "textual-dark")
        assert keeping.theme == "auto"


async def test_a_theme_that_there_is_no_more_is_the_one_that_fits_the_terminal(tmp_path: Path) -> None:
    keeping = SavedState(tmp_path / "state")
    keeping.keep_theme("of-another-version")
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port, keeping=keeping) as deck:
        assert deck.app.theme == "textual-dark"


@pytest.mark.parametrize("size", [(50, 20), (80, 24), (80, 32), (120, 40)])
async def test_a_list_over_the_composer_pushes_nothing_off_the_screen(tmp_path: Path, size: tuple[int, int]) -> None:
    async with harbour(tmp_path, ScriptedModel([])).serving() as port, aboard(port, size=size) as deck:
        deck.app.query_one(QueuePanel).show([a_run(number) for number in range(1, 9)])
        await deck.type("/")
        await deck.until(lambda: deck.app.composer.choices.is_open)
        await deck.until(lambda: "│  / " in deck.screen)
        assert deck.app.query_one(StatusBar).region.bottom == size[1], deck.screen
        assert deck.lines[-1].text.startswith(" Idle")
        assert "/attach" in deck.screen
        assert "Prompt number 1" in deck.screen
