"""The keys of the terminal app, and its help: what it lists is there, and what is there it lists (F2)."""

import importlib
import pkgutil
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.dom import DOMNode
from textual.drivers.headless_driver import HeadlessDriver
from tui_driver import LocalServer, TuiDriver, local_server, long_session, open_tui
from tui_stage import Stage, picture

import longboat.tui
from longboat.client import Client
from longboat.testing import Gate, Pause, Say, ScriptedModel
from longboat.tui import keys
from longboat.tui.app import LongboatApp
from longboat.tui.commands import COMMANDS
from longboat.tui.composer import PromptInput
from longboat.tui.dialogs.confirm import ConfirmDialog, TextDialog
from longboat.tui.dialogs.diffs import DiffDialog
from longboat.tui.dialogs.export import ExportDialog
from longboat.tui.dialogs.find import FindDialog
from longboat.tui.dialogs.frame import Dialog, ListDialog
from longboat.tui.dialogs.help import COLUMN, DIALOG_HELP, HelpScreen
from longboat.tui.dialogs.inbox import InboxDialog
from longboat.tui.dialogs.models import ModelPicker
from longboat.tui.dialogs.one_of import OneOf
from longboat.tui.dialogs.palette import Palette
from longboat.tui.dialogs.permission import PermissionDialog
from longboat.tui.dialogs.question import AnswerList, QuestionDialog
from longboat.tui.dialogs.sessions import SessionList
from longboat.tui.dialogs.setup import KeyDialog, ProviderPicker, SetupList, SetupModelPicker
from longboat.tui.message_actions import MessageBar
from longboat.tui.panels.diff import DiffView
from longboat.tui.panels.jobs import JobsPanel
from longboat.tui.panels.queue import QueuePanel
from longboat.tui.panels.review import ReviewView
from longboat.wire.models import Delivery

WHERE: dict[str, tuple[type[DOMNode], ...]] = {
    "Keys": (LongboatApp, PromptInput),
    "Permissions": (PermissionDialog,),
    "Questions": (QuestionDialog, AnswerList),
    "Sessions": (SessionList,),
    "Palette": (Palette,),
    "Search": (FindDialog,),
    "Messages": (MessageBar,),
    "Inbox": (InboxDialog,),
    "Models": (ModelPicker,),
    "Setup": (KeyDialog, ProviderPicker, SetupList, SetupModelPicker),
    "Export": (ExportDialog, OneOf),
    "Text fields": (TextDialog,),
    "Confirmations": (ConfirmDialog,),
    "Queue": (QueuePanel,),
    "Jobs": (JobsPanel,),
    "Changes": (DiffDialog, DiffView, ReviewView),
}
"""Whose keys each part of the help tells."""
CALLED = {"esc": "escape", "del": "delete", "PgUp": "pageup", "PgDn": "pagedown"} | dict(
    zip("↑↓←→", ("up", "down", "left", "right"), strict=True)
)
MOVING = {"up", "down", "left", "right", "pageup", "pagedown", "tab", "space", "escape"}
"""What everybody tries in a list, a choice or a text that scrolls, and esc, which closes every dialog."""
SHARED = {Dialog, ListDialog}
"""The keys that all dialogs have, or all with a list: told at each."""
TYPED = {"@", "/", "!"}
MAIN = keys.sections()[: len(keys.Group)]


def named(words: str) -> set[str]:
    """The keys that a row of the help or of a command names."""
    keys = {str(number) for number in range(1, 10)} if words == "1–9" else set(words.split())
    return {CALLED.get(key, key) for key in keys} - TYPED


def listed(title: str) -> set[str]:
    """The keys that the help names in a part; "Keys" is all that it says of the main screen."""
    told = MAIN if title == "Keys" else [each for each in DIALOG_HELP if each.title == title]
    found = set().union(*(named(row[0]) for section in told for row in section.rows))
    return found | {command.key for command in COMMANDS if command.key} if title == "Keys" else found


def own(owner: type[DOMNode]) -> list[Binding]:
    """The bindings that a class of ours declares."""
    declared = [each for each in owner.__dict__.get("BINDINGS", ()) if isinstance(each, Binding)]
    assert len(declared) == len(owner.__dict__.get("BINDINGS", ()))
    return declared


def bound(owner: type[DOMNode]) -> set[str]:
    """All that it hears, also what Textual's own part of it does."""
    return set(owner._merge_bindings().key_to_bindings)


def every_owner() -> Iterator[type[DOMNode]]:
    for module in pkgutil.walk_packages(longboat.tui.__path__, "longboat.tui."):
        for owner in vars(importlib.import_module(module.name)).values():
            if isinstance(owner, type) and issubclass(owner, DOMNode) and owner.__module__ == module.name:
                yield owner


def test_the_help_has_a_part_for_everything_with_keys_of_its_own() -> None:
    told = {owner for owners in WHERE.values() for owner in owners}
    assert {owner for owner in every_owner() if own(owner)} - told == {HelpScreen, *SHARED}
    assert {"Keys", *(section.title for section in DIALOG_HELP)} == set(WHERE)


@pytest.mark.parametrize("title", WHERE)
def test_every_key_in_the_help_does_something(title: str) -> None:
    """enter and backspace are heard by lists and fields themselves."""
    heard = set().union(*(bound(owner) for owner in WHERE[title])) | {"enter", "backspace"}
    assert listed(title) <= heard


@pytest.mark.parametrize("title", WHERE)
def test_every_key_that_we_bind_is_in_the_help(title: str) -> None:
    """Of several keys for the same thing one is enough."""
    keys: dict[str, set[str]] = {}
    for binding in (binding for owner in WHERE[title] for binding in own(owner)):
        keys.setdefault(binding.action, set()).update(binding.key.split(","))
    assert [action for action, some in keys.items() if not some & (listed(title) | MOVING)] == []


def test_the_documentation_names_no_key_that_is_not_there() -> None:
    """The tables of the page are generated (tests/project/test_docs.py); this is about its sentences."""
    text = (Path(__file__).parents[2] / "docs" / "terminal.md").read_text().partition("<!-- keys -->")[0]
    named = set(re.findall(r"\b(?:ctrl|alt)\+\w+\b(?!\+)|\bf1\b", text))
    assert named <= listed("Keys")


def test_no_key_has_two_meanings() -> None:
    """On the main screen, and after the leader key."""
    direct = [name for key in keys.KEYS for name in f"{key.names},{key.also}".split(",") if name]
    direct += [command.key for command in COMMANDS if command.key]
    assert len(direct) == len(set(direct))
    after = [each.leader for each in (*keys.KEYS, *COMMANDS) if each.leader]
    assert len(after) == len(set(after))
    assert all(each.label for each in keys.KEYS if each.leader)


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40)])
async def test_the_help_keeps_its_columns_at_every_width(size: tuple[int, int]) -> None:
    app = Stage()
    async with app.run_test(size=size) as pilot:
        await app.open(pilot, HelpScreen((*keys.sections(), *DIALOG_HELP)))
        await pilot.press(*"prompt")
        await pilot.pause()
        rows = [
            line.strip().strip("│").removeprefix(" " * (size[0] >= 80)).rstrip("│ ")
            for line in picture(app).splitlines()
        ]
        begin = next(index for index, row in enumerate(rows) if row.strip() == "Prompt") + 1
        shown = [row for row in rows[begin : begin + 8] if row.strip()]
        assert any(row.startswith(f"  {'ctrl+q':<{COLUMN}}  Queue: run after") for row in shown), picture(app)
        for row in shown:
            assert row.startswith("  "), row
            assert row[2 + COLUMN : 4 + COLUMN] == "  ", f"not in its column: {row!r}"


# -- keys that only a running app can show


async def test_alt_enter_queues_as_ctrl_q_does(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Say("busy "), Pause(gate)], [Say("two")], [Say("three")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("first")
        await gate.reached()
        await tui.say("second", key="alt+enter")
        await tui.until(lambda: len(tui.app.current.unfinished) == 2)
        await tui.say("third", key="ctrl+q")
        await tui.until(lambda: len(tui.app.current.unfinished) == 3)
        waiting = [run for run in tui.app.current.unfinished if run.prompt != "first"]
        assert [(run.prompt, run.delivery) for run in waiting] == [
            ("second", Delivery.QUEUE),
            ("third", Delivery.QUEUE),
        ]
        gate.open()
        await tui.until(lambda: tui.idle and tui.answers == ["busy ", "two", "three"])


async def long_one(server: LocalServer, count: int) -> str:
    async with Client(socket=server.socket, client_id="maker") as client:
        workspace = (await client.join(server.project)).id
        return (await client.import_session(workspace, long_session(count))).id


async def test_page_up_page_down_and_ctrl_end_scroll_while_the_composer_has_the_focus(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        session_id = await long_one(server, 60)
        async with open_tui(server, session_id=session_id) as tui:
            view = tui.app.view
            await tui.until(lambda: "Answer 59" in tui.screen and view.at_end)
            await tui.type("half a prompt")
            end = view.scroll_y
            await tui.pilot.press("pageup")
            await tui.until(lambda: view.scroll_target_y < end and view.scroll_y == view.scroll_target_y)
            once = view.scroll_y
            assert end - once >= view.size.height - 2
            await tui.pilot.press("pageup")
            await tui.until(lambda: view.scroll_target_y < once and view.scroll_y == view.scroll_target_y)
            twice = view.scroll_y
            await tui.pilot.press("pagedown")
            await tui.until(lambda: view.scroll_target_y > twice and view.scroll_y == view.scroll_target_y)
            assert "Answer 59" not in tui.screen
            await tui.pilot.press("ctrl+end")
            await tui.until(lambda: "Answer 59" in tui.screen and view.at_end)
            assert tui.app.composer.input.text == "half a prompt"
            assert tui.app.composer.input.has_focus


async def test_ctrl_end_brings_back_the_end_from_where_it_has_no_widgets(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        session_id = await long_one(server, 200)
        async with open_tui(server, session_id=session_id) as tui:
            view = tui.app.view
            await tui.until(lambda: "Answer 199" in tui.screen)
            while view._complete:
                before = view._first
                view.scroll_home(animate=False)
                await tui.until(lambda: view._first < before and not view._moving)  # noqa: B023
                await tui.pilot.pause()
            await tui.pilot.press("ctrl+end")
            await tui.until(lambda: "Answer 199" in tui.screen and view.at_end)


# -- the editor


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that can be lent, as real ones can: in tmux it is one (tests/acceptance/test_tui_tmux.py)."""
    monkeypatch.setattr(HeadlessDriver, "can_suspend", property(lambda driver: True))


def editor(path: Path, monkeypatch: pytest.MonkeyPatch, does: str) -> None:
    script = path / "my editor"
    script.write_text(f"#!/bin/sh\n{does}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"'{script}' --wait")


async def written(tui: TuiDriver, text: str) -> str:
    await tui.type(text)
    await tui.pilot.press("ctrl+o")
    await tui.pilot.pause()
    return tui.app.composer.input.text


@pytest.mark.usefixtures("lent")
@pytest.mark.parametrize(
    ("does", "text"),
    [
        ('test "$1" = --wait && cat "$2" > seen && printf "one\\ntwo\\n\\n" > "$2"', "one\ntwo"),
        (': > "$2"', ""),
        ('printf "caf\\351" > "$2"', "caf�"),
        ('printf "\\033]0;owned\\007" > "$2"', "␛]0;owned␇"),
    ],
)
async def test_ctrl_o_brings_back_what_the_editor_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    editor(tmp_path, monkeypatch, does)
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        assert await written(tui, "half a thought") == text
    if "seen" in does:
        assert (tmp_path / "seen").read_text() == "half a thought\n"


@pytest.mark.usefixtures("lent")
@pytest.mark.parametrize(
    ("does", "told"),
    [
        ('printf "worse" > "$2"; exit 3', "The editor failed (3). Your prompt is unchanged."),
        ('rm "$2"', "Cannot read the edited text (No such file or directory). Your prompt is unchanged."),
        ("kill -INT $$", "The editor failed (-2). Your prompt is unchanged."),
    ],
)
async def test_an_editor_that_fails_takes_nothing_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, told: str
) -> None:
    editor(tmp_path, monkeypatch, does)
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        assert await written(tui, "half a thought") == "half a thought"
        assert tui.notifications == [told]


@pytest.mark.usefixtures("lent")
async def test_where_there_is_no_room_for_its_file_the_editor_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(tmp_path, monkeypatch, 'printf "worse" > "$2"')
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        assert await written(tui, "half a thought") == "half a thought"
        (told,) = tui.notifications
        assert told.startswith("Cannot create a temporary file (No such file or directory).")


@pytest.mark.usefixtures("lent")
@pytest.mark.parametrize("named", ["/nowhere/editor", "vi 'unclosed"])
async def test_an_editor_that_is_none_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("VISUAL", named)
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        assert await written(tui, "half a thought") == "half a thought"
        (told,) = tui.notifications
        assert told.startswith("Cannot start the editor: ")
        assert named.split(maxsplit=1)[0] in told


async def test_a_terminal_that_cannot_be_lent_is_told(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel([])).serving() as server, open_tui(server) as tui:
        assert await written(tui, "half a thought") == "half a thought"
        assert tui.notifications == ["Cannot start the editor: the app cannot be suspended in this terminal."]
