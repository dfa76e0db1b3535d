"""Every key of the table does something, the leader key takes exactly the next key, and the palette runs what it shows
(issue 12)."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual import events
from tui_deck import Deck, Harbour, aboard, harbour, long_session
from tui_stage import picture

from longboat.client import Client
from longboat.testing import ScriptedModel
from longboat.tui import keys
from longboat.tui.commands import COMMANDS
from longboat.tui.dialogs.confirm import ConfirmDialog
from longboat.tui.dialogs.help import HelpScreen
from longboat.tui.dialogs.palette import Entry, Palette, matching
from longboat.tui.dialogs.sessions import SessionList
from longboat.tui.leader import LeaderLine
from longboat.wire.models import Attachment
from longboat.wire.requests import Approve

SIZES = ((200, 50), (120, 40), (80, 24), (40, 15))
NOTE = Attachment(name="note.txt", media_type="text/plain", text="x")


async def a_session(port: Harbour) -> str:
    async with Client(socket=port.socket, client_id="maker") as client:
        workspace = (await client.join(port.project)).id
        return (await client.import_session(workspace, long_session(60))).id


def looks(deck: Deck) -> tuple[object, ...]:
    """All that a key could have changed."""
    app = deck.app
    told = [note.message for note in app._notifications]
    return (
        picture(app),
        app.focused,
        told,
        app._exit,
        len(app.screen_stack),
        app.composer.input.text,
        app.view.scroll_y,
        app.clipboard,
        app.sidebar.is_shown,
        app.desk.session_id,
    )


async def ready(deck: Deck) -> None:
    await deck.until(lambda: "Answer 59" in deck.screen and deck.app.view.at_end)
    deck.app.composer.input.cursor_blink = False
    deck.app.composer.history.add("an earlier prompt")


async def with_text(deck: Deck) -> None:
    await deck.type("half a prompt")


async def with_attachment(deck: Deck) -> None:
    deck.app.composer.attach(NOTE)
    await deck.pilot.pause()


async def with_message_selected(deck: Deck) -> None:
    deck.app.message_bar.select(deck.app.view.newest_shown)
    await deck.pilot.pause()


async def scrolled_up(deck: Deck) -> None:
    deck.app.view.release_anchor()
    deck.app.view.scroll_to(y=deck.app.view.max_scroll_y - 20, animate=False)
    await deck.until(lambda: "Answer 59" not in deck.screen)


async def completing(deck: Deck) -> None:
    await deck.type("/hel")
    await deck.until(lambda: deck.app.composer.choices.is_open)


async def with_tool_call(deck: Deck) -> None:
    await deck.say("!seq 30")
    await deck.until(lambda: deck.idle and deck.cards and "earlier lines" in deck.screen)


async def as_it_is(deck: Deck) -> None:
    pass


BEFORE: dict[str, Callable[[Deck], Awaitable[None]]] = {
    "backspace": with_attachment,
    "ctrl+b": with_tool_call,
    "ctrl+c": with_text,
    "ctrl+end": scrolled_up,
    "ctrl+q": with_text,
    "alt+enter": with_text,
    "enter": with_text,
    "escape": with_message_selected,
    "down": with_message_selected,
    "pagedown": scrolled_up,
    "tab": completing,
}
"""What a key needs to have an effect."""
DIRECT = [name for key in keys.KEYS for name in key.names.split(",")]
DIRECT += [command.key for command in COMMANDS if command.key]


@pytest.mark.parametrize("key", DIRECT)
async def test_every_key_of_the_table_does_something(tmp_path: Path, key: str) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port:
        session_id = await a_session(port)
        async with aboard(port, session_id=session_id) as deck:
            await ready(deck)
            await BEFORE.get(key, as_it_is)(deck)
            if key == "down":  # after an earlier prompt was recalled
                await deck.pilot.press("up")
            before = looks(deck)
            await deck.pilot.press(key)
            await deck.until(lambda: looks(deck) != before)


@pytest.mark.parametrize("key", keys.leader_keys())
async def test_every_key_after_the_leader_key_does_something(tmp_path: Path, key: str) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port:
        session_id = await a_session(port)
        async with aboard(port, session_id=session_id, approve=Approve.ALL) as deck:
            await ready(deck)
            before = looks(deck)
            await deck.pilot.press("ctrl+x")
            line = deck.app.query_one(LeaderLine)
            assert line.is_open
            assert deck.app.focused is line
            if key == "a":  # there is no tool call: what it does is remembered for later ones
                await deck.pilot.press(key)
                await deck.until(lambda: deck.app.view.expanded)
                return
            await deck.pilot.press(key)
            assert not line.is_open
            await deck.until(lambda: looks(deck) != before)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_leader_key_shows_what_can_follow_and_takes_one_key(tmp_path: Path, size: tuple[int, int]) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port, size=size) as deck:
        await deck.type("draft")
        await deck.pilot.press("ctrl+x")
        shown = deck.screen.replace("\N{NO-BREAK SPACE}", " ")
        assert all(f"{each.key} {each.label}" in shown for each in keys.leader_keys().values()), deck.screen
        await deck.pilot.press("z")
        await deck.until(lambda: "ctrl+x z does nothing." in [note.message for note in deck.app._notifications])
        await deck.pilot.press("z", "y")
        assert deck.app.composer.input.text == "draftzy"
        await deck.pilot.press("ctrl+x", "escape")
        assert deck.app.composer.input.has_focus
        assert not deck.app.query_one(LeaderLine).is_open


async def test_keys_that_come_together_with_the_leader_key_are_not_lost(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        for name, character in (("ctrl+x", "\x18"), ("b", "b"), ("o", "o"), ("k", "k")):
            deck.app.post_message(events.Key(name, character))
        await deck.until(lambda: deck.app.composer.input.text == "ok")
        assert deck.app.composer.input.has_focus


async def test_the_leader_key_does_nothing_in_a_dialog(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await deck.pilot.press("ctrl+s")
        await deck.until(lambda: isinstance(deck.app.screen, SessionList))
        await deck.pilot.press("ctrl+x", "ctrl+p", "q")
        assert isinstance(deck.app.screen, SessionList)
        assert not deck.app._exit


# -- the palette


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_palette_has_one_line_per_command_with_its_keys(tmp_path: Path, size: tuple[int, int]) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port, size=size) as deck:
        await deck.pilot.press("ctrl+p")
        await deck.until(lambda: isinstance(deck.app.screen, Palette) and "Type to search" in deck.screen)
        await deck.pilot.press(*"sess")
        await deck.until(lambda: "Sessions" in deck.screen)
        (row,) = [line.text for line in deck.lines if line.text.strip("│▊▎ ").startswith("Sessions")]
        assert "ctrl+s" in row
        if size[0] >= 80:
            assert "List the sessions in this directory" in row
        await deck.pilot.press("enter")
        await deck.until(lambda: isinstance(deck.app.screen, SessionList))


async def test_the_palette_finds_letters_in_order_and_the_name_first() -> None:
    entries = [
        Entry(id="a", title="Summarize", told="Summarize the conversation"),
        Entry(id="b", title="Sessions", told="List the sessions"),
        Entry(id="c", title="Rename", told="Rename this session"),
    ]
    assert [entry.id for entry in matching(entries, "")] == ["a", "b", "c"]
    assert [entry.id for entry in matching(entries, "session")] == ["b", "c"]
    assert [entry.id for entry in matching(entries, "smz")] == ["a"]
    assert matching(entries, "xyzzy") == []
    hostile = [Entry(id="h", title="a" * 50_000, told="a" * 50_000)]
    assert matching(hostile, "a" * 60 + "b") == []


async def test_a_command_of_the_project_goes_into_the_prompt(tmp_path: Path) -> None:
    port = harbour(tmp_path, ScriptedModel.echo())
    folder = Path(port.project) / ".agents" / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text("---\ndescription: Look it over\n---\nReview $ARGUMENTS")
    async with port.serving(), aboard(port) as deck:
        await deck.until(lambda: deck.app.project_commands)
        await deck.pilot.press("ctrl+p")
        await deck.until(lambda: isinstance(deck.app.screen, Palette) and "Type to search" in deck.screen)
        await deck.pilot.press(*"review", "enter")
        await deck.until(lambda: deck.app.composer.input.text == "/review ")


async def test_f1_lists_every_key_of_the_table(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port, size=(120, 100)) as deck:
        await deck.pilot.press("f1")
        await deck.until(lambda: isinstance(deck.app.screen, HelpScreen) and "Commands" in deck.screen)
        shown = deck.screen
        assert all(keys.shown(key.names) in shown for key in keys.KEYS)
        assert all(f"/{command.name}" in shown for command in COMMANDS)


# -- what needs a confirmation


async def test_yolo_asks_first_and_turns_off_without_asking(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await deck.say("/yolo")
        await deck.until(lambda: isinstance(deck.app.screen, ConfirmDialog))
        await deck.pilot.press("enter")  # "Keep asking" has the focus
        await deck.until(lambda: len(deck.app.screen_stack) == 1)
        assert deck.app.approve is Approve.ASK
        await deck.say("/yolo")
        await deck.until(lambda: isinstance(deck.app.screen, ConfirmDialog))
        await deck.pilot.press("y")
        await deck.until(lambda: deck.app.approve is Approve.ALL)
        await deck.say("/yolo")
        await deck.until(lambda: deck.app.approve is Approve.ASK)
