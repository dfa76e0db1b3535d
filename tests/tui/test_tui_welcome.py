"""The screen before the first prompt: what it tells, what can be chosen there, and that it never acts (issue 12)."""

import subprocess
from pathlib import Path

import pytest
import terminal_attacks
from tui_deck import Deck, Harbour, aboard, harbour

import longboat
from longboat.client import Client
from longboat.testing import ScriptedModel
from longboat.tui.panels.queue import QueuePanel
from longboat.tui.status import StatusBar
from longboat.tui.welcome import Welcome
from longboat.wire.models import Session

SIZES = ((200, 50), (120, 40), (80, 24), (40, 15))


async def with_sessions(port: Harbour, *titles: str) -> list[Session]:
    async with Client(socket=port.socket, client_id="ann") as ann:
        workspace = (await ann.join(port.project)).id
        return [await ann.create_session(workspace, title) for title in titles]


async def settled(deck: Deck) -> None:
    await deck.until(lambda: deck.app.welcome_read.suggestions)
    await deck.pilot.pause()


def repository(path: str) -> None:
    subprocess.run(["git", "init", "-q", "-b", "rudder", path], check=True)
    (Path(path) / "sums.py").write_text("def add(a, b):\n    return a - b\n")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_first_screen_tells_where_it_is_who_answers_and_what_to_do(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    port = harbour(tmp_path, ScriptedModel.echo())
    repository(port.project)
    async with port.serving():
        await with_sessions(port, "Mend the rudder", "Paint the boat")
        async with aboard(port, size=size) as deck:
            await settled(deck)
            shown = " ".join(deck.screen.split())
            assert f"Longboat {longboat.__version__}" in shown
            assert "Paint the boat" in shown
            assert "Mend the rudder" in shown
            assert deck.app.models is not None
            assert deck.app.models.large is not None
            assert deck.app.models.large in shown
            assert "Explain this project" in shown
            if size[0] > 40:
                assert "/project  rudder" in deck.screen
                assert "ctrl+p commands" in shown
            bar = deck.app.query_one(StatusBar)
            assert bar.region.bottom == size[1]
            assert deck.app.welcome.region.y >= 1, "its first line is on the screen"


async def test_tab_and_enter_open_a_recent_session(tmp_path: Path) -> None:
    port = harbour(tmp_path, ScriptedModel.echo())
    async with port.serving():
        first, second = await with_sessions(port, "Mend the rudder", "Paint the boat")
        async with aboard(port) as deck:
            await settled(deck)
            await deck.pilot.press("tab")
            assert deck.app.focused is not None
            assert deck.app.focused.id == "begin"
            await deck.pilot.press("down", "enter")
            await deck.until(lambda: deck.app.desk.session_id in (first.id, second.id))
            assert not deck.app.welcome.display
            assert deck.app.composer.input.has_focus


async def test_a_suggestion_goes_into_the_prompt_and_is_not_sent(tmp_path: Path) -> None:
    port = harbour(tmp_path, ScriptedModel.echo())
    async with port.serving(), aboard(port) as deck:
        await settled(deck)
        wanted = deck.app.welcome_read.suggestions[0].prompt
        await deck.pilot.press("tab", "enter")
        await deck.until(lambda: deck.app.composer.input.text == wanted)
        assert deck.app.sender.waiting == []
        assert deck.app.composer.input.has_focus


async def test_it_goes_with_the_first_prompt_and_comes_back_with_a_new_session(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await settled(deck)
        assert deck.app.welcome.display
        await deck.say("hello there")
        assert not deck.app.welcome.display
        await deck.until(lambda: deck.idle and deck.answers)
        await deck.pilot.press("ctrl+n")
        await deck.until(lambda: deck.app.welcome.display and "hello there" in deck.screen)


async def test_without_a_model_it_says_so_for_as_long_as_that_is_so_and_once(tmp_path: Path) -> None:
    """The review's first finding: a toast told it for a few seconds."""
    port = harbour(tmp_path, None, '{"models": {"large": "nobody/knows"}}')
    async with port.serving(), aboard(port, size=(120, 40)) as deck:
        await deck.until(lambda: deck.app.models is not None and deck.app.models.problem)
        await settled(deck)
        if len(deck.app.screen_stack) > 1:  # the set-up, which opens by itself
            await deck.pilot.press("escape")
        await deck.until(lambda: len(deck.app.screen_stack) == 1 and "/connect connects" in deck.screen)
        shown = " ".join(deck.screen.split())
        assert shown.count("No model available") == 1
        problem = " ".join((deck.app.models.problem or "").split()[:4]) if deck.app.models else ""
        assert shown.count(problem) == 1
        assert list(deck.app._notifications) == []
        assert deck.app.welcome_read.suggestions
        assert "Try" not in shown, "nobody would answer it"


@pytest.mark.parametrize("group", range(len(terminal_attacks.GROUPS)))
async def test_titles_and_paths_of_others_are_only_read(tmp_path: Path, group: int) -> None:
    port = harbour(tmp_path, ScriptedModel.echo())
    payloads = [text.encode(errors="replace").decode() for text in terminal_attacks.GROUPS[group]]
    async with port.serving():
        await with_sessions(port, *payloads)
        async with aboard(port, size=(120, 40)) as deck:
            await settled(deck)
            deck.app.connection.path = "".join(payloads)
            deck.app.show_place()
            await deck.pilot.pause()
            for line in deck.lines:
                assert terminal_attacks.acting(list(line)) == []
            assert not deck.app._exit


async def test_it_leaves_room_for_the_queue_and_the_composer_on_a_small_screen(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port, size=(40, 15)) as deck:
        await settled(deck)
        assert not deck.app.query_one(QueuePanel).display
        welcome = deck.app.query_one(Welcome)
        assert welcome.region.bottom <= deck.app.composer.region.y
