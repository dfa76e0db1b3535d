"""Dialogs that are being closed, and those on a screen of a few rows: nothing ends the app (F2)."""

import asyncio

import pytest
from textual import events
from textual.widget import Widget
from textual.widgets import Static
from tui_sessions import Sessions
from tui_stage import Stage, a_permission, an_edit, picture, some_models

from longboat.errors import BadInput
from longboat.tui.dialogs.asks import Gone
from longboat.tui.dialogs.frame import Dialog
from longboat.tui.dialogs.models import ModelPicker
from longboat.tui.dialogs.permission import PermissionDecision, PermissionDialog
from longboat.tui.dialogs.sessions import SessionList
from longboat.wire.asks import PermissionAnswer
from longboat.wire.models import Session

ONCE = PermissionDecision(answer=PermissionAnswer.ONCE)


async def test_an_ask_that_is_withdrawn_before_it_was_drawn_closes_as_well() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        dialog = PermissionDialog(a_permission(), grace_s=0)
        app.push_screen(dialog, app.results.append)
        dialog.withdrawn("bob", PermissionAnswer.DENY)
        await pilot.pause()
        assert app.results == [Gone(sentence="bob denied it: Run git push --force origin main")]
        assert len(app.screen_stack) == 1


@pytest.mark.parametrize("key", ["pagedown", "w", "d", "s", "escape", "down"])
async def test_a_key_that_comes_with_the_answer_ends_nothing_else(key: str) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        dialog = PermissionDialog(a_permission(), grace_s=0)
        await app.open(pilot, dialog)
        for each in ("o", key, key):
            app.post_message(events.Key(each, each if len(each) == 1 else None))
        await app.settled(pilot)
        assert app.results == [ONCE]


async def test_a_resize_while_it_is_being_closed_ends_nothing_else() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        dialog = PermissionDialog(an_edit(), grace_s=0)
        await app.open(pilot, dialog)
        await dialog.query_one(".box").remove()
        dialog.fit()
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        assert app.screen is dialog


class Notice(Dialog[None]):
    yielding = "#words"

    def body(self) -> list[Widget]:
        return [Static("words", id="words")]


async def test_a_dialog_whose_box_is_gone_before_it_was_fitted_ends_nothing_else() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        dialog = Notice()
        await app.open(pilot, dialog)
        await dialog.query_one(".box").remove()
        dialog.fit()
        await pilot.pause()
        assert app.screen is dialog


@pytest.mark.parametrize("fails", [False, True])
async def test_a_search_that_is_answered_while_the_list_is_being_closed_ends_nothing_else(fails: bool) -> None:
    answer: asyncio.Future[list[Session]] = asyncio.get_running_loop().create_future()

    async def search(text: str) -> list[Session]:
        return await answer

    app, sessions = Stage(), Sessions(0)
    async with app.run_test() as pilot:
        dialog = SessionList(search, rename=sessions.rename, delete=sessions.delete)
        app.push_screen(dialog)
        await pilot.pause()
        await dialog.query_one(".box").remove()
        if fails:
            answer.set_exception(BadInput("That cannot be searched for."))
        else:
            answer.set_result([])
        await app.settled(pilot)
        assert app.screen is dialog


@pytest.mark.parametrize("size", [(80, 12), (40, 12), (80, 9)])
async def test_on_a_short_screen_the_lists_still_have_rows(size: tuple[int, int]) -> None:
    app = Stage()
    async with app.run_test(size=size) as pilot:
        await app.open(pilot, Sessions(12).dialog())
        assert "number 0" in picture(app)
        assert "number 1" in picture(app)
        await pilot.press("escape")
        await app.open(pilot, ModelPicker(some_models()))
        assert "Default" in picture(app)


@pytest.mark.parametrize("size", [(80, 8), (30, 6), (20, 5), (10, 4)])
@pytest.mark.parametrize("key", ["pagedown", "pageup", "down", "up", "ctrl+end"])
async def test_lists_without_a_row_take_every_key(size: tuple[int, int], key: str) -> None:
    app = Stage()
    async with app.run_test(size=size) as pilot:
        for dialog in (Sessions(12).dialog(), ModelPicker(some_models())):
            await app.open(pilot, dialog)
            await pilot.press(key, key)
            assert app.screen is dialog
            await pilot.press("escape")
            await pilot.pause()
