"""A long session in the terminal app: only a window of it has widgets, and only pages of it are read (issue 4)."""

from pathlib import Path

import pytest
from tui_deck import Deck, Harbour, aboard, harbour, long_session

from longboat.client import Client
from longboat.testing import ScriptedModel
from longboat.tui.messages import AnswerView, PromptView
from longboat.tui.transcript import MOUNTED, STEP


async def imported(port: Harbour, count: int) -> str:
    async with Client(socket=port.socket, client_id="maker") as client:
        workspace = (await client.join(port.project)).id
        return (await client.import_session(workspace, long_session(count))).id


def shown(deck: Deck) -> list[int]:
    """The numbers of the messages that have widgets, from top to bottom."""
    views = [view for view in deck.app.view.children if isinstance(view, PromptView | AnswerView)]
    return [view.message.seq - 1 for view in views]


async def test_ten_thousand_messages_mount_and_read_no_more_than_a_hundred(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port:
        costs = []
        for count in (100, 10_000):
            session_id = await imported(port, count)
            async with aboard(port, session_id=session_id) as deck:
                await deck.until(lambda: shown(deck) and shown(deck)[-1] == count - 1)  # noqa: B023
                costs.append((len(shown(deck)), len(deck.app.desk.transcript.messages), len(list(deck.app.query("*")))))
        assert costs[0] == costs[1]
        assert costs[1][0] <= STEP


async def test_scrolling_up_reads_older_pages_and_keeps_the_window_small(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port:
        session_id = await imported(port, 160)
        async with aboard(port, session_id=session_id) as deck:
            await deck.until(lambda: shown(deck) and shown(deck)[-1] == 159)
            for _ in range(20):
                first = shown(deck)[0]
                if first == 0:
                    break
                deck.app.view.scroll_home(animate=False)
                await deck.until(lambda: shown(deck)[0] < first and not deck.app.view._moving)  # noqa: B023
                numbers = shown(deck)
                assert numbers == list(range(numbers[0], numbers[-1] + 1)), "no gap"
                assert len(numbers) <= MOUNTED + STEP
                await deck.pilot.pause()
            assert shown(deck)[0] == 0
            await deck.until(lambda: "prompt 0" in deck.screen or not deck.app.view.scroll_home(animate=False))
            assert shown(deck)[-1] < 159
            while shown(deck)[-1] < 159:
                last = shown(deck)[-1]
                deck.app.view.scroll_end(animate=False)
                await deck.until(lambda: shown(deck)[-1] > last and not deck.app.view._moving)  # noqa: B023
                numbers = shown(deck)
                assert numbers == list(range(numbers[0], numbers[-1] + 1)), "no gap"
                assert len(numbers) <= MOUNTED + STEP
                await deck.pilot.pause()


async def test_what_is_read_stays_in_place_when_older_messages_come(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port:
        session_id = await imported(port, 200)
        async with aboard(port, session_id=session_id) as deck:
            await deck.until(lambda: shown(deck) and shown(deck)[-1] == 199)
            view = deck.app.view
            first = next(each for each in view.children if isinstance(each, PromptView))
            view.scroll_to(y=2, animate=False)
            await deck.pilot.pause()
            await deck.until(lambda: len(shown(deck)) > STEP and not view._moving)
            await deck.pilot.pause()
            await deck.until(lambda: abs((first.virtual_region.y - view.scroll_y) - (1 - 2)) <= 3)


async def test_a_prompt_from_far_up_brings_back_the_end(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port:
        session_id = await imported(port, 200)
        async with aboard(port, session_id=session_id) as deck:
            await deck.until(lambda: shown(deck) and shown(deck)[-1] == 199)
            while deck.app.view._complete:
                first = shown(deck)[0]
                deck.app.view.scroll_home(animate=False)
                await deck.until(lambda: shown(deck)[0] < first and not deck.app.view._moving)  # noqa: B023
                await deck.pilot.pause()
            await deck.say("now")
            await deck.until(lambda: deck.idle and deck.answers[-1:] == ["echo: now"])
            assert shown(deck)[-1] == 201
            await deck.until(lambda: "echo: now" in deck.screen)


async def test_a_long_live_session_drops_what_scrolled_away(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port:
        session_id = await imported(port, 2)
        async with aboard(port, session_id=session_id) as deck:
            await deck.until(lambda: len(shown(deck)) == 2)
            for number in range(32):
                await deck.say(f"p{number}")
                await deck.until(lambda: deck.idle and deck.answers[-1:] == [f"echo: p{number}"])  # noqa: B023
            assert len(shown(deck)) <= MOUNTED


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40)])
async def test_every_size_shows_the_composer_and_the_newest_words(tmp_path: Path, size: tuple[int, int]) -> None:
    """Narrow terminals: nothing is wider than the screen, nothing important is pushed out of it."""
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port, size=size) as deck:
        await deck.say("the quick brown fox jumps over the lazy dog " * 3 + "END")
        await deck.until(lambda: deck.idle and "END" in deck.screen)
        assert "enter send" in deck.screen
        assert all(line.cell_length <= size[0] for line in deck.lines)
        await deck.pilot.resize_terminal(50, 15)
        await deck.until(lambda: "enter send" in deck.screen and "END" in deck.screen)


async def test_no_size_of_the_terminal_ends_the_app(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await deck.say("hello")
        await deck.until(lambda: deck.idle)
        for width in (1, 2, 3, 4, 5, 6, 7, 8, 20, 80):
            for height in (1, 3, 24):
                for typed in ("", "words"):
                    deck.app.composer.input.put(typed)
                    await deck.pilot.resize_terminal(width, height)
                    await deck.until(lambda: deck.app.screen._compositor.size == deck.app.size)
        await deck.until(lambda: "words" in deck.screen)
