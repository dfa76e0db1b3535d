"""The inbox in the terminal app: what other workspaces need, answered from there, and what was seen."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tui_driver import LocalServer, TuiDriver, local_server, open_tui
from tui_inbox import some_items
from tui_stage import Stage, picture

from longboat.client import Client
from longboat.client.inbox import InboxMirror
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel
from longboat.tui.dialogs.inbox import AnswerItem, InboxDialog, OpenItem, SeeAll
from longboat.tui.dialogs.permission import PermissionDialog
from longboat.tui.dialogs.question import QuestionDialog
from longboat.wire.asks import PermissionAnswer
from longboat.wire.models import Delivery
from longboat.wire.requests import Submit

WRITE = CallTool("write", {"path": "a.txt", "content": "hello\n"})
QUESTION = CallTool("question", {"text": "Which colour?", "choices": ["red", "blue"]})
ITEMS = some_items()


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (("enter",), AnswerItem(item=ITEMS[0])),
        (("down", "enter"), AnswerItem(item=ITEMS[1])),
        (("down", "down", "enter"), OpenItem(item=ITEMS[2])),
        (("o",), OpenItem(item=ITEMS[0])),
        (("m",), SeeAll(up_to="4")),
        (("escape",), None),
    ],
)
async def test_each_key_of_the_inbox(keys: tuple[str, ...], result: object) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, InboxDialog(ITEMS))
        await pilot.press(*keys)
        await pilot.pause()
        assert app.results == [result]


async def test_the_highlighted_item_stays_so_when_others_come_and_go() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        dialog = InboxDialog(ITEMS[1:])
        await app.open(pilot, dialog)
        await pilot.press("down")
        dialog.show([ITEMS[0], *ITEMS[2:]])
        await pilot.press("enter")
        await pilot.pause()
        assert app.results == [OpenItem(item=ITEMS[2])]


async def test_items_that_come_while_the_inbox_is_being_opened_are_shown() -> None:
    """At every instant of opening: for a while, only a part of the dialog exists."""
    app = Stage()
    dialog = InboxDialog(ITEMS)
    shown = list(ITEMS)

    async def change_at_every_instant() -> None:
        while not dialog.is_mounted:
            shown.reverse()
            dialog.show(shown)
            await asyncio.sleep(0)

    async with app.run_test() as pilot:
        changes = asyncio.create_task(change_at_every_instant())
        await app.open(pilot, dialog)
        await changes
        await pilot.pause()
        assert [option.id for option in dialog.listing.options] == [item.id for item in shown]


async def test_an_empty_inbox_says_so_and_its_keys_do_nothing() -> None:
    app = Stage()
    async with app.run_test() as pilot:
        await app.open(pilot, InboxDialog([]))
        assert "Nothing new." in picture(app)
        await pilot.press("enter", "o", "m", "escape")
        await pilot.pause()
        assert app.results == [None]


class Elsewhere:
    """A session in another directory of the same server."""

    def __init__(self, client: Client, workspace_id: str, session_id: str, path: Path) -> None:
        self.client = client
        self.workspace_id = workspace_id
        self.session_id = session_id
        self.path = path

    async def submit(self, prompt: str) -> None:
        await self.client.submit(self.workspace_id, Submit(session_id=self.session_id, prompt=prompt))


@asynccontextmanager
async def two_places(tmp_path: Path, *steps: Any) -> AsyncIterator[tuple[LocalServer, TuiDriver, Elsewhere]]:
    async with (
        local_server(tmp_path, ScriptedModel(list(steps))).serving() as server,
        open_tui(server, size=(120, 30)) as tui,
        Client(socket=server.socket, client_id="other") as client,
    ):
        path = tmp_path / "elsewhere"
        path.mkdir()
        workspace = await client.join(path)
        session = await client.create_session(workspace.id, "Far away")
        yield server, tui, Elsewhere(client, workspace.id, session.id, path)


async def test_the_status_line_says_that_another_workspace_needs_an_approval_and_it_is_given_there(
    tmp_path: Path,
) -> None:
    async with two_places(tmp_path, [WRITE], [Say("done")]) as (_, tui, there):
        await there.submit("write it")
        await tui.until(lambda: "1 approval needed in another workspace (/inbox)" in tui.screen)
        await tui.say("/inbox")
        await tui.until(lambda: isinstance(tui.app.screen, InboxDialog) and "elsewhere: Far away" in tui.screen)
        await tui.pilot.press("enter")
        await tui.until(lambda: isinstance(tui.app.screen, PermissionDialog) and tui.app.screen.is_mounted)
        await tui.pilot.press("o")
        await tui.until((there.path / "a.txt").exists)
        await tui.until(lambda: isinstance(tui.app.screen, InboxDialog) and "done" in tui.screen)
        await tui.until(lambda: "needed in another workspace" not in tui.screen)
        await tui.pilot.press("escape")


async def test_a_question_elsewhere_is_answered_and_one_that_somebody_answers_first_goes(tmp_path: Path) -> None:
    async with two_places(tmp_path, [QUESTION], [QUESTION], [Say("thanks")]) as (_, tui, there):
        await there.submit("ask")
        await tui.until(lambda: "1 answer needed in another workspace" in tui.screen)
        await tui.say("/inbox")
        await tui.until(lambda: isinstance(tui.app.screen, InboxDialog))
        await tui.pilot.press("enter")
        await tui.until(lambda: isinstance(tui.app.screen, QuestionDialog) and tui.app.screen.is_mounted)
        first = tui.app.screen
        assert isinstance(first, QuestionDialog)
        await tui.pilot.press("2")
        # The second question is the next item; another client is faster.
        known = first.question.id
        await tui.until(lambda: any(item.question and item.question.id != known for item in tui.app.inbox.mirror.items))
        await tui.until(lambda: isinstance(tui.app.screen, InboxDialog) and "question" in tui.screen)
        await tui.pilot.press("enter")
        await tui.until(lambda: isinstance(tui.app.screen, QuestionDialog) and tui.app.screen.is_mounted)
        second = tui.app.screen
        assert isinstance(second, QuestionDialog)
        await there.client.answer_question(there.workspace_id, second.question.id, "red")
        await tui.until(lambda: not isinstance(tui.app.screen, QuestionDialog))
        await tui.until(lambda: isinstance(tui.app.screen, InboxDialog))
        await tui.pilot.press("escape")


async def test_an_answer_that_is_too_late_says_who_was_faster(tmp_path: Path) -> None:
    held = Gate("model")
    async with two_places(tmp_path, [WRITE], [Pause(held), Say("done")]) as (_, tui, there):
        await there.submit("write it")
        await tui.until(lambda: tui.app.inbox.mirror.waiting == 1)
        (item,) = tui.app.inbox.mirror.items
        assert item.permission is not None
        await tui.say("/inbox")
        await tui.until(lambda: isinstance(tui.app.screen, InboxDialog))
        await tui.pilot.press("enter")
        await tui.until(lambda: isinstance(tui.app.screen, PermissionDialog))
        await there.client.answer_permission(there.workspace_id, item.permission.id, PermissionAnswer.DENY)
        await tui.pilot.press("y")
        # The refusal says who it was; if the news was faster than the key, the request is gone.
        await tui.until(lambda: "other" in tui.screen or "Nothing new." in tui.screen)
        await tui.until(lambda: tui.app.inbox.mirror.waiting == 0)
        held.open()


async def test_a_session_here_is_opened_and_one_elsewhere_is_named(tmp_path: Path) -> None:
    async with two_places(tmp_path, [Say("one")], [Say("two")]) as (_, tui, there):
        await tui.say("here")
        await tui.until(lambda: tui.answers == ["one"] and tui.idle)
        mine = tui.app.current.session_id
        await tui.say("/new")
        await there.submit("there")
        await tui.until(lambda: len(tui.app.inbox.mirror.items) == 2)
        await tui.say("/inbox")
        await tui.until(lambda: isinstance(tui.app.screen, InboxDialog))
        await tui.pilot.press("enter")
        command = f"longboat -s {there.session_id} --cwd {there.path}"
        await tui.until(lambda: any(command in each for each in tui.notifications))
        await tui.say("/inbox")
        await tui.until(lambda: isinstance(tui.app.screen, InboxDialog))
        await tui.pilot.press("down", "enter")
        await tui.until(lambda: tui.app.current.session_id == mine and tui.answers == ["one"])


async def test_a_run_of_the_session_on_the_screen_is_seen_and_one_elsewhere_is_not(tmp_path: Path) -> None:
    async with two_places(tmp_path, [Say("one")], [Say("two")]) as (_, tui, there):
        await tui.say("here")
        await tui.until(lambda: [item.seen for item in tui.app.inbox.mirror.items] == [True])
        await there.submit("there")
        await tui.until(lambda: tui.app.inbox.mirror.unseen == 1)
        await tui.say("/inbox")
        await tui.until(lambda: isinstance(tui.app.screen, InboxDialog))
        await tui.pilot.press("m")
        await tui.until(lambda: tui.app.inbox.mirror.unseen == 0)


async def test_what_waits_is_known_and_listed_first_however_many_runs_ended_since(tmp_path: Path) -> None:
    """The app knew only the 50 newest items: an older request was not listed, and one of this workspace counted as
    another's."""
    steps = [[WRITE], [QUESTION], *([Say("done")] for _ in range(51))]
    async with (
        local_server(tmp_path, ScriptedModel(steps)).serving() as server,
        Client(socket=server.socket, client_id="other", answers=True) as client,
    ):
        here, there = await client.join(server.project), await client.join(make(tmp_path / "elsewhere"))
        mirror, events = InboxMirror(), client.inbox_events()
        for workspace, title, waiting in ((here, "Near by", 1), (there, "Far away", 2)):
            session = await client.create_session(workspace.id, title)
            await client.submit(workspace.id, Submit(session_id=session.id, prompt="ask"))
            while mirror.waiting < waiting:
                mirror.apply(await anext(events))
        session = await client.create_session(there.id, "Routine")
        for number in range(51):
            request = Submit(session_id=session.id, prompt=f"routine {number}", delivery=Delivery.QUEUE)
            await client.submit(there.id, request)
        while mirror.unseen < 51:
            mirror.apply(await anext(events))
        await events.aclose()
        async with open_tui(server, size=(140, 30)) as tui:
            await tui.until(lambda: "? 1 approval needed in another session (ctrl+s)" in tui.screen)
            await tui.until(lambda: "? 1 answer needed in another workspace (/inbox)" in tui.screen)
            await tui.say("/inbox")
            await tui.until(lambda: isinstance(tui.app.screen, InboxDialog) and "elsewhere: Far away" in tui.screen)
            assert tui.screen.index("Far away") < tui.screen.index("Near by") < tui.screen.index("Routine")
            await tui.pilot.press("enter")
            await tui.until(lambda: isinstance(tui.app.screen, QuestionDialog) and tui.app.screen.is_mounted)
            await tui.pilot.press("2")
            await tui.until(lambda: tui.app.inbox.mirror.waiting == 1 and "in another workspace" not in tui.screen)
            await tui.pilot.press("escape")


def make(path: Path) -> Path:
    path.mkdir()
    return path
