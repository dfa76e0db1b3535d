"""A long session in the terminal app: only a window of it has widgets, and only pages of it are read (issue 4)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tui_driver import LocalServer, TuiDriver, local_server, long_session, open_tui

from longboat.client import Client
from longboat.testing import ScriptedModel
from longboat.tui.messages import AnswerView, PromptView
from longboat.tui.transcript import MOUNTED, STEP


async def imported(server: LocalServer, count: int) -> str:
    async with Client(socket=server.socket, client_id="maker") as client:
        workspace = (await client.join(server.project)).id
        return (await client.import_session(workspace, long_session(count))).id


def shown(tui: TuiDriver) -> list[int]:
    """The numbers of the messages that have widgets, from top to bottom."""
    views = [view for view in tui.app.view.children if isinstance(view, PromptView | AnswerView)]
    return [view.message.seq - 1 for view in views]


async def scroll(tui: TuiDriver, to: Callable[..., object], until: Callable[[], bool]) -> None:
    """Scroll until it is so: one scroll may come as the view puts what is read back in its place."""

    def is_so() -> bool:
        to(animate=False)
        return until() and not tui.app.view._moving

    await tui.until(is_so)


async def test_ten_thousand_messages_mount_and_read_no_more_than_a_hundred(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        costs = []
        for count in (100, 10_000):
            session_id = await imported(server, count)
            async with open_tui(server, session_id=session_id) as tui:
                await tui.until(lambda: shown(tui) and shown(tui)[-1] == count - 1)  # noqa: B023
                costs.append((len(shown(tui)), len(tui.app.current.transcript.messages), len(list(tui.app.query("*")))))
        assert costs[0] == costs[1]
        assert costs[1][0] <= STEP


async def test_scrolling_up_reads_older_pages_and_keeps_the_window_small(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        session_id = await imported(server, 160)
        async with open_tui(server, session_id=session_id) as tui:
            await tui.until(lambda: shown(tui) and shown(tui)[-1] == 159)
            for _ in range(20):
                first = shown(tui)[0]
                if first == 0:
                    break
                await scroll(tui, tui.app.view.scroll_home, lambda: shown(tui)[0] < first)  # noqa: B023
                numbers = shown(tui)
                assert numbers == list(range(numbers[0], numbers[-1] + 1)), "no gap"
                assert len(numbers) <= MOUNTED + STEP
            assert shown(tui)[0] == 0
            await scroll(tui, tui.app.view.scroll_home, lambda: "prompt 0" in tui.screen)
            assert shown(tui)[-1] < 159
            while shown(tui)[-1] < 159:
                last = shown(tui)[-1]
                await scroll(tui, tui.app.view.scroll_end, lambda: shown(tui)[-1] > last)  # noqa: B023
                numbers = shown(tui)
                assert numbers == list(range(numbers[0], numbers[-1] + 1)), "no gap"
                assert len(numbers) <= MOUNTED + STEP


async def test_what_is_read_stays_in_place_when_older_messages_come(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        session_id = await imported(server, 200)
        async with open_tui(server, session_id=session_id) as tui:
            await tui.until(lambda: shown(tui) and shown(tui)[-1] == 199 and "Answer 199" in tui.screen)
            view = tui.app.view
            first = next(each for each in view.children if isinstance(each, PromptView))
            view.scroll_to(y=2, animate=False)
            await tui.pilot.pause()
            await tui.until(lambda: len(shown(tui)) > STEP and not view._moving)
            await tui.pilot.pause()
            await tui.until(lambda: abs((first.virtual_region.y - view.scroll_y) - (1 - 2)) <= 3)


async def test_a_prompt_from_far_up_brings_back_the_end(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        session_id = await imported(server, 200)
        async with open_tui(server, session_id=session_id) as tui:
            await tui.until(lambda: shown(tui) and shown(tui)[-1] == 199)
            while tui.app.view._complete:
                first = shown(tui)[0]
                await scroll(tui, tui.app.view.scroll_home, lambda: shown(tui)[0] < first)  # noqa: B023
            await tui.say("now")
            await tui.until(lambda: tui.idle and tui.answers[-1:] == ["echo: now"])
            assert shown(tui)[-1] == 201
            await tui.until(lambda: "echo: now" in tui.screen)


async def test_a_long_live_session_drops_what_scrolled_away(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server:
        session_id = await imported(server, 2)
        async with open_tui(server, session_id=session_id) as tui:
            await tui.until(lambda: len(shown(tui)) == 2)
            for number in range(32):
                await tui.say(f"p{number}")
                await tui.until(lambda: tui.idle and tui.answers[-1:] == [f"echo: p{number}"])  # noqa: B023
            assert len(shown(tui)) <= MOUNTED


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40)])
async def test_every_size_shows_the_composer_and_the_newest_words(tmp_path: Path, size: tuple[int, int]) -> None:
    """Narrow terminals: nothing is wider than the screen, nothing important is pushed out of it."""
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server, size=size) as tui:
        await tui.say("the quick brown fox jumps over the lazy dog " * 3 + "END")
        await tui.until(lambda: tui.idle and "END" in tui.screen)
        assert "enter send" in tui.screen
        assert all(line.cell_length <= size[0] for line in tui.lines)
        await tui.pilot.resize_terminal(50, 15)
        await tui.until(lambda: "enter send" in tui.screen and "END" in tui.screen)


async def test_no_size_of_the_terminal_ends_the_app(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await tui.say("hello")
        await tui.until(lambda: tui.idle)
        for width in (1, 2, 3, 4, 5, 6, 7, 8, 20, 80):
            for height in (1, 3, 24):
                for typed in ("", "words"):
                    tui.app.composer.input.put(typed)
                    await tui.pilot.resize_terminal(width, height)
                    await tui.until(lambda: tui.app.screen._compositor.size == tui.app.size)
        await tui.until(lambda: "words" in tui.screen)
