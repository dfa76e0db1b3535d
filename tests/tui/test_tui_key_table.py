"""Every key of the table does something, the leader key takes exactly the next key, and the palette runs what it shows
(issue 12)."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual import events
from tui_driver import LocalServer, TuiDriver, local_server, long_session, open_tui
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


async def a_session(server: LocalServer) -> str:
    async with Client(socket=server.socket, client_id="maker") as client:
        workspace = (await client.join(server.project)).id
        return (await client.import_session(workspace, long_session(60))).id


def looks(tui: TuiDriver) -> tuple[object, ...]:
    """All that a key could have changed."""
    app = tui.app
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
        app.current.session_id,
    )


async def ready(tui: TuiDriver) -> None:
    await tui.until(lambda: "Answer 59" in tui.screen and tui.app.view.at_end)
    tui.app.composer.input.cursor_blink = False
    tui.app.composer.history.add("an earlier prompt")


async def with_text(tui: TuiDriver) -> None:
    await tui.type("half a prompt")


async def with_attachment(tui: TuiDriver) -> None:
    tui.app.composer.attach(NOTE)
    await tui.pilot.pause()


async def with_message_selected(tui: TuiDriver) -> None:
    tui.app.message_bar.select(tui.app.view.newest_shown)
    await tui.pilot.pause()


async def scrolled_up(tui: TuiDriver) -> None:
    tui.app.view.release_anchor()
    tui.app.view.scroll_to(y=tui.app.view.max_scroll_y - 20, animate=False)
    await tui.until(lambda: "Answer 59" not in tui.screen)


async def completing(tui: TuiDriver) -> None:
    await tui.type("/hel")
    await tui.until(lambda: tui.app.composer.choices.is_open)


async def with_tool_call(tui: TuiDriver) -> None:
    await tui.say("!seq 30")
    await tui.until(lambda: tui.idle and tui.cards and "earlier lines" in tui.screen)


async def as_it_is(tui: TuiDriver) -> None:
    pass


BEFORE: dict[str, Callable[[TuiDriver], Awaitable[None]]] = {
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
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        session_id = await a_session(server)
        async with open_tui(server, session_id=session_id) as tui:
            await ready(tui)
            await BEFORE.get(key, as_it_is)(tui)
            if key == "down":  # after an earlier prompt was recalled
                await tui.pilot.press("up")
            before = looks(tui)
            await tui.pilot.press(key)
            await tui.until(lambda: looks(tui) != before)


@pytest.mark.parametrize("key", keys.leader_keys())
async def test_every_key_after_the_leader_key_does_something(tmp_path: Path, key: str) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        session_id = await a_session(server)
        async with open_tui(server, session_id=session_id, approve=Approve.ALL) as tui:
            await ready(tui)
            before = looks(tui)
            await tui.pilot.press("ctrl+x")
            line = tui.app.query_one(LeaderLine)
            assert line.is_open
            assert tui.app.focused is line
            if key == "a":  # there is no tool call: what it does is remembered for later ones
                await tui.pilot.press(key)
                await tui.until(lambda: tui.app.view.expanded)
                return
            await tui.pilot.press(key)
            assert not line.is_open
            await tui.until(lambda: looks(tui) != before)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_leader_key_shows_what_can_follow_and_takes_one_key(tmp_path: Path, size: tuple[int, int]) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server, size=size) as tui:
        await tui.type("draft")
        await tui.pilot.press("ctrl+x")
        shown = tui.screen.replace("\N{NO-BREAK SPACE}", " ")
        assert all(f"{each.key} {each.label}" in shown for each in keys.leader_keys().values()), tui.screen
        await tui.pilot.press("z")
        await tui.until(lambda: "ctrl+x z does nothing." in tui.notifications)
        await tui.pilot.press("z", "y")
        assert tui.app.composer.input.text == "draftzy"
        await tui.pilot.press("ctrl+x", "escape")
        assert tui.app.composer.input.has_focus
        assert not tui.app.query_one(LeaderLine).is_open


async def test_keys_that_come_together_with_the_leader_key_are_not_lost(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        for name, character in (("ctrl+x", "\x18"), ("b", "b"), ("o", "o"), ("k", "k")):
            tui.app.post_message(events.Key(name, character))
        await tui.until(lambda: tui.app.composer.input.text == "ok")
        assert tui.app.composer.input.has_focus


async def test_the_leader_key_does_nothing_in_a_dialog(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await tui.pilot.press("ctrl+s")
        await tui.until(lambda: isinstance(tui.app.screen, SessionList))
        await tui.pilot.press("ctrl+x", "ctrl+p", "q")
        assert isinstance(tui.app.screen, SessionList)
        assert not tui.app._exit


# -- the palette


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_palette_has_one_line_per_command_with_its_keys(tmp_path: Path, size: tuple[int, int]) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server, size=size) as tui:
        await tui.pilot.press("ctrl+p")
        await tui.until(lambda: isinstance(tui.app.screen, Palette) and "Type to search" in tui.screen)
        await tui.pilot.press(*"sess")
        await tui.until(lambda: "Sessions" in tui.screen)
        (row,) = [line.text for line in tui.lines if line.text.strip("│▊▎ ").startswith("Sessions")]
        assert "ctrl+s" in row
        if size[0] >= 80:
            assert "List this directory’s sessions" in row
        await tui.pilot.press("enter")
        await tui.until(lambda: isinstance(tui.app.screen, SessionList))


async def test_the_scrollbar_of_the_palette_hides_no_keys(tmp_path: Path) -> None:
    async with (
        local_server(tmp_path, ScriptedModel.echo()).serving() as server,
        open_tui(server, size=(120, 40)) as tui,
    ):
        await tui.pilot.press("ctrl+p")
        await tui.until(lambda: "Copy the last answer" in tui.screen)
        (row,) = [line.text for line in tui.lines if "Copy the last answer" in line.text]
        assert "ctrl+x y" in row


async def test_the_palette_finds_letters_in_order_and_the_name_first() -> None:
    entries = [
        Entry(id="a", title="Summarize", description="Summarize the conversation"),
        Entry(id="b", title="Sessions", description="List the sessions"),
        Entry(id="c", title="Rename", description="Rename this session"),
    ]
    assert [entry.id for entry in matching(entries, "")] == ["a", "b", "c"]
    assert [entry.id for entry in matching(entries, "session")] == ["b", "c"]
    assert [entry.id for entry in matching(entries, "smz")] == ["a"]
    assert matching(entries, "xyzzy") == []
    hostile = [Entry(id="h", title="a" * 50_000, description="a" * 50_000)]
    assert matching(hostile, "a" * 60 + "b") == []


async def test_a_command_of_the_project_goes_into_the_prompt(tmp_path: Path) -> None:
    server = local_server(tmp_path, ScriptedModel.echo())
    folder = Path(server.project) / ".agents" / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text("---\ndescription: Look it over\n---\nReview $ARGUMENTS")
    async with server.serving(), open_tui(server) as tui:
        await tui.until(lambda: tui.app.project_commands)
        await tui.pilot.press("ctrl+p")
        await tui.until(lambda: isinstance(tui.app.screen, Palette) and "Type to search" in tui.screen)
        await tui.pilot.press(*"review", "enter")
        await tui.until(lambda: tui.app.composer.input.text == "/review ")


async def test_f1_lists_every_key_of_the_table(tmp_path: Path) -> None:
    async with (
        local_server(tmp_path, ScriptedModel.echo()).serving() as server,
        open_tui(server, size=(120, 100)) as tui,
    ):
        await tui.pilot.press("f1")
        await tui.until(lambda: isinstance(tui.app.screen, HelpScreen) and "Commands" in tui.screen)
        shown = tui.screen
        assert all(keys.format_keys(key.names) in shown for key in keys.KEYS)
        assert all(f"/{command.name}" in shown for command in COMMANDS)


# -- what needs a confirmation


async def test_yolo_asks_first_and_turns_off_without_asking(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await tui.say("/yolo")
        await tui.until(lambda: isinstance(tui.app.screen, ConfirmDialog))
        await tui.pilot.press("enter")  # "Keep asking" has the focus
        await tui.until(lambda: len(tui.app.screen_stack) == 1)
        assert tui.app.approve is Approve.ASK
        await tui.say("/yolo")
        await tui.until(lambda: isinstance(tui.app.screen, ConfirmDialog))
        await tui.pilot.press("y")
        await tui.until(lambda: tui.app.approve is Approve.ALL)
        await tui.say("/yolo")
        await tui.until(lambda: tui.app.approve is Approve.ASK)
