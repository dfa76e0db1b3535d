"""The terminal app while the server is away: it says so, loses nothing, and catches up by itself (F2, F6, R)."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tui_deck import aboard, harbour

from longboat.client import Client
from longboat.testing import Gate, Hang, Pause, Say, ScriptedModel
from longboat.tui.app import LongboatApp
from longboat.tui.prompt_outbox import Progress
from longboat.tui.status import StatusBar
from longboat.tui.tail import OutgoingView


async def test_what_is_typed_while_the_server_is_away_is_sent_once_and_in_order(tmp_path: Path) -> None:
    """F2: prompts are fire-and-forget; nothing typed is lost."""
    port = harbour(tmp_path, ScriptedModel.echo())
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(AsyncExitStack())
        await server.enter_async_context(port.serving())
        deck = await stack.enter_async_context(aboard(port))
        await deck.say("before")
        await deck.until(lambda: deck.idle and deck.answers == ["echo: before"])
        await server.aclose()
        await deck.until(lambda: deck.app.connection.away is not None)
        await deck.until(lambda: "Reconnecting" in deck.screen)
        await deck.say("one")
        await deck.say("two", key="ctrl+q")
        await deck.until(lambda: len(deck.app.query(OutgoingView)) == 2)
        assert "waiting for the server" in deck.screen
        await server.enter_async_context(port.serving())
        await deck.until(lambda: deck.idle and len(deck.answers) == 3)
        assert deck.prompts == ["before", "one", "two"]
        assert deck.answers == ["echo: before", "echo: one", "echo: two"]
        assert not deck.app.query(OutgoingView)
        assert "Reconnecting" not in deck.screen
        page = await deck.app.connection.client.runs(deck.app.connection.workspace_id)
        assert [run.prompt for run in page.items] == ["two", "one", "before"]


async def test_a_run_that_the_server_left_behind_is_not_shown_as_working(tmp_path: Path) -> None:
    """Field notes, opencode #19023: after a restart nothing thinks for ever."""
    gate = Gate()
    port = harbour(tmp_path, ScriptedModel([[Say("half"), Pause(gate)], [Say("new")]]))
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(AsyncExitStack())
        await server.enter_async_context(port.serving())
        deck = await stack.enter_async_context(aboard(port))
        await deck.say("work")
        await deck.until(lambda: deck.answers == ["half"])
        await server.aclose()
        await deck.until(lambda: deck.app.connection.away is not None)
        await server.enter_async_context(port.serving())
        await deck.until(lambda: deck.idle and deck.notes)
        assert deck.answers == ["half"]
        assert deck.app.query_one(StatusBar).state.since is None
        await deck.say("go on")
        await deck.until(lambda: deck.answers == ["half", "new"])


async def test_a_refused_prompt_stays_with_its_reason_and_is_sent_again(tmp_path: Path) -> None:
    """F2: failures are shown where they belong."""
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await deck.say("make a session")
        await deck.until(lambda: deck.idle)
        session_id, deck.app.desk.session_id = deck.app.desk.session_id, "nowhere"
        await deck.say("precious words")
        await deck.until(lambda: "Not sent" in deck.screen)
        (view,) = deck.app.query(OutgoingView)
        assert "nowhere" in view.prompt.problem
        deck.app.desk.session_id = view.prompt.session_id = session_id
        await deck.pilot.press("ctrl+r")
        await deck.until(lambda: deck.idle and "echo: precious words" in deck.answers)


async def test_esc_takes_an_unsent_prompt_back_to_be_changed(tmp_path: Path) -> None:
    port = harbour(tmp_path, ScriptedModel.echo())
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(AsyncExitStack())
        await server.enter_async_context(port.serving())
        deck = await stack.enter_async_context(aboard(port))
        await server.aclose()
        await deck.until(lambda: deck.app.connection.away is not None)
        await deck.say("a thougt")
        await deck.until(lambda: deck.app.query(OutgoingView))
        await deck.pilot.press("escape")
        assert deck.app.composer.input.text == "a thougt"
        await deck.say("a thought")
        told = deck.app.farewell("")
        assert "a thought" in told
        await server.enter_async_context(port.serving())
        await deck.until(lambda: deck.idle and deck.answers == ["echo: a thought"])


async def test_esc_calls_off_a_prompt_that_is_on_its_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F2: what was taken back does not run, even if the server takes it a moment later."""
    gate, submit = Gate(), Client.submit

    async def held(self: Client, *of: Any) -> Any:
        await gate.arrive()
        return await submit(self, *of)

    port = harbour(tmp_path, ScriptedModel([[Say("never"), Hang()]]))
    async with port.serving(), aboard(port) as deck:
        monkeypatch.setattr(Client, "submit", held)
        await deck.say("delete everything")
        await gate.reached()
        await deck.pilot.press("escape")
        await deck.until(lambda: deck.app.composer.input.text == "delete everything")
        gate.open()
        client, workspace_id = deck.app.connection.client, deck.app.connection.workspace_id
        while not (runs := (await client.runs(workspace_id)).items) or runs[0].state != "finished":
            await deck.pilot.pause()
        assert [run.outcome for run in runs] == ["canceled"]
        assert deck.app.composer.input.text == "delete everything"


async def test_who_comes_later_sees_the_jobs_that_run(tmp_path: Path) -> None:
    """F2, F6: also those that began before."""
    port = harbour(tmp_path, ScriptedModel.echo())
    async with port.serving(), aboard(port) as first:
        await first.say("! sleep 1000 &")
        await first.until(lambda: first.idle)
        (job,) = first.app.connection.mirror.jobs
        async with aboard(port) as late:
            await late.until(lambda: list(late.app.connection.mirror.jobs) == [job])


async def test_no_server_at_all_ends_the_app_with_a_sentence(tmp_path: Path) -> None:
    async with Client(socket=tmp_path / "none.sock") as client:
        app = LongboatApp(client, str(tmp_path))
        app.connection.first_s = 0.1
        async with app.run_test() as pilot:
            while not app._exit:
                await pilot.pause()
        assert app.return_code == 1
        assert "none.sock" in app.farewell("")


async def test_a_prompt_before_the_connection_stands_is_sent_when_it_does(tmp_path: Path) -> None:
    port = harbour(tmp_path, ScriptedModel.echo())
    async with Client(socket=port.socket, client_id="me") as client:
        app = LongboatApp(client, port.project)
        async with app.run_test() as pilot:
            app.composer.input.put("early")
            await pilot.press("enter")
            async with port.serving():
                while not (app.desk.session_id and not app.desk.unfinished and not app.sender.waiting):
                    await pilot.pause()
                assert [prompt.progress for prompt in app.sender.unsent if prompt.progress is not Progress.SENT] == []


async def test_prompts_of_a_new_session_stay_together_whatever_is_shown_meanwhile(tmp_path: Path) -> None:
    port = harbour(tmp_path, ScriptedModel.echo())
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(AsyncExitStack())
        await server.enter_async_context(port.serving())
        deck = await stack.enter_async_context(aboard(port))
        await deck.say("old session")
        await deck.until(lambda: deck.idle)
        old = deck.app.desk.session_id
        await deck.say("/new")
        await server.aclose()
        await deck.until(lambda: deck.app.connection.away is not None)
        await deck.say("one")
        await deck.say("two", key="ctrl+q")
        deck.app.open_session(old)
        await server.enter_async_context(port.serving())
        client, workspace = deck.app.connection.client, deck.app.connection.workspace_id
        await deck.until(lambda: not deck.app.sender.unsent)
        runs = {run.prompt: run.session_id for run in (await client.runs(workspace)).items}
        assert runs["one"] == runs["two"] != runs["old session"] == old
        assert deck.app.desk.session_id == old
