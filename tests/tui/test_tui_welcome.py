"""The screen before the first prompt: what it tells, what can be chosen there, and that it never acts (issue 12)."""

import subprocess
from pathlib import Path

import pytest
import terminal_attacks
from msgspec import structs
from tui_driver import LocalServer, TuiDriver, local_server, open_tui
from tui_sessions import NOON
from tui_stage import Stage, a_session, picture

import longboat
from longboat.client import Client
from longboat.testing import ScriptedModel
from longboat.tui.panels.queue import QueuePanel
from longboat.tui.status import StatusBar
from longboat.tui.welcome import Welcome, WelcomeState
from longboat.wire.models import Outcome, Session

SIZES = ((200, 50), (120, 40), (80, 24), (40, 15))


async def with_sessions(server: LocalServer, *titles: str) -> list[Session]:
    async with Client(socket=server.socket, client_id="ann") as ann:
        workspace = (await ann.join(server.project)).id
        return [await ann.create_session(workspace, title) for title in titles]


async def settled(tui: TuiDriver) -> None:
    await tui.until(lambda: tui.app.welcome_read.suggestions)
    await tui.pilot.pause()


def repository(path: str) -> None:
    subprocess.run(["git", "init", "-q", "-b", "rudder", path], check=True)
    (Path(path) / "sums.py").write_text("def add(a, b):\n    return a - b\n")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_first_screen_tells_where_it_is_who_answers_and_what_to_do(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    server = local_server(tmp_path, ScriptedModel.echo())
    repository(server.project)
    async with server.serving():
        await with_sessions(server, "Mend the rudder", "Paint the boat")
        async with open_tui(server, size=size) as tui:
            await settled(tui)
            shown = " ".join(tui.screen.split())
            assert f"Longboat {longboat.__version__}" in shown
            assert "Paint the boat" in shown
            assert "Mend the rudder" in shown
            assert tui.app.models is not None
            assert tui.app.models.large is not None
            assert tui.app.models.large in shown
            assert "Explain this project" in shown
            if size[0] > 40:
                assert "/project  rudder" in tui.screen
                assert "ctrl+p commands" in shown
            bar = tui.app.query_one(StatusBar)
            assert bar.region.bottom == size[1]
            assert tui.app.welcome.region.y >= 1, "its first line is on the screen"


async def test_tab_and_enter_open_a_recent_session(tmp_path: Path) -> None:
    server = local_server(tmp_path, ScriptedModel.echo())
    async with server.serving():
        first, second = await with_sessions(server, "Mend the rudder", "Paint the boat")
        async with open_tui(server) as tui:
            await settled(tui)
            await tui.pilot.press("tab")
            assert tui.app.focused is not None
            assert tui.app.focused.id == "begin"
            await tui.pilot.press("down", "enter")
            await tui.until(lambda: tui.app.current.session_id in (first.id, second.id))
            assert not tui.app.welcome.display
            assert tui.app.composer.input.has_focus


async def test_recent_sessions_that_failed_are_marked() -> None:
    ends = (None, Outcome.END_TURN, Outcome.ERROR, Outcome.INTERRUPTED)
    ended = [structs.replace(a_session(number), last_outcome=outcome) for number, outcome in enumerate(ends)]
    again = structs.replace(a_session(4, busy=True), last_outcome=Outcome.ERROR)
    welcome = Welcome(open_session=lambda _: None, put_prompt=lambda _: None, clock=lambda: NOON)
    app = Stage(welcome)
    async with app.run_test(size=(80, 30)) as pilot:
        welcome.fit(30)
        welcome.show(WelcomeState(sessions=(*ended, again)))
        await pilot.pause()
        rows = [line.rsplit(" · ", 1) for line in picture(app).splitlines() if "Session number" in line]
        assert [row[1].strip() if len(row) > 1 else "" for row in rows] == ["", "", "failed", "interrupted", "working"]


async def test_a_suggestion_goes_into_the_prompt_and_is_not_sent(tmp_path: Path) -> None:
    server = local_server(tmp_path, ScriptedModel.echo())
    async with server.serving(), open_tui(server) as tui:
        await settled(tui)
        wanted = tui.app.welcome_read.suggestions[0].prompt
        await tui.pilot.press("tab", "enter")
        await tui.until(lambda: tui.app.composer.input.text == wanted)
        assert tui.app.sender.waiting == []
        assert tui.app.composer.input.has_focus


async def test_it_goes_with_the_first_prompt_and_comes_back_with_a_new_session(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await settled(tui)
        assert tui.app.welcome.display
        await tui.say("hello there")
        assert not tui.app.welcome.display
        await tui.until(lambda: tui.idle and tui.answers)
        await tui.pilot.press("ctrl+n")
        await tui.until(lambda: tui.app.welcome.display and "hello there" in tui.screen)


async def test_without_a_model_it_says_so_for_as_long_as_that_is_so_and_once(tmp_path: Path) -> None:
    """The review's first finding: a toast told it for a few seconds."""
    server = local_server(tmp_path, None, '{"models": {"large": "nobody/knows"}}')
    async with server.serving(), open_tui(server, size=(120, 40)) as tui:
        await tui.until(lambda: tui.app.models is not None and tui.app.models.problem)
        await settled(tui)
        if len(tui.app.screen_stack) > 1:  # the set-up, which opens by itself
            await tui.pilot.press("escape")
        await tui.until(lambda: len(tui.app.screen_stack) == 1 and "/connect connects" in tui.screen)
        shown = " ".join(tui.screen.split())
        assert shown.count("No model available") == 1
        problem = " ".join((tui.app.models.problem or "").split()[:4]) if tui.app.models else ""
        assert shown.count(problem) == 1
        assert tui.notifications == []
        assert tui.app.welcome_read.suggestions
        assert "Try" not in shown, "nobody would answer it"


@pytest.mark.parametrize("group", range(len(terminal_attacks.GROUPS)))
async def test_titles_and_paths_of_others_are_only_read(tmp_path: Path, group: int) -> None:
    server = local_server(tmp_path, ScriptedModel.echo())
    payloads = [text.encode(errors="replace").decode() for text in terminal_attacks.GROUPS[group]]
    async with server.serving():
        await with_sessions(server, *payloads)
        async with open_tui(server, size=(120, 40)) as tui:
            await settled(tui)
            tui.app.connection.path = "".join(payloads)
            tui.app.show_place()
            await tui.pilot.pause()
            for line in tui.lines:
                assert terminal_attacks.acting(list(line)) == []
            assert not tui.app._exit


async def test_it_leaves_room_for_the_queue_and_the_composer_on_a_small_screen(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server, size=(40, 15)) as tui:
        await settled(tui)
        assert not tui.app.query_one(QueuePanel).display
        welcome = tui.app.query_one(Welcome)
        assert welcome.region.bottom <= tui.app.composer.region.y
