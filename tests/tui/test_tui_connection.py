"""The terminal app while the server is away: it says so, loses nothing, and catches up by itself (F2, F6, R)."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tui_driver import local_server, open_tui

from longboat.client import Client
from longboat.testing import Gate, Hang, Pause, Say, ScriptedModel
from longboat.tui.app import LongboatApp
from longboat.tui.prompt_outbox import Progress
from longboat.tui.status import StatusBar
from longboat.tui.tail import OutgoingView


async def test_what_is_typed_while_the_server_is_away_is_sent_once_and_in_order(tmp_path: Path) -> None:
    """F2: prompts are fire-and-forget; nothing typed is lost."""
    server = local_server(tmp_path, ScriptedModel.echo())
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(AsyncExitStack())
        await running.enter_async_context(server.serving())
        tui = await stack.enter_async_context(open_tui(server))
        await tui.say("before")
        await tui.until(lambda: tui.idle and tui.answers == ["echo: before"])
        await running.aclose()
        await tui.until(lambda: tui.app.connection.away is not None)
        await tui.until(lambda: "Reconnecting" in tui.screen)
        await tui.say("one")
        await tui.say("two", key="ctrl+q")
        await tui.until(lambda: len(tui.app.query(OutgoingView)) == 2)
        assert "waiting for the server" in tui.screen
        await running.enter_async_context(server.serving())
        await tui.until(lambda: tui.idle and len(tui.answers) == 3)
        assert tui.prompts == ["before", "one", "two"]
        assert tui.answers == ["echo: before", "echo: one", "echo: two"]
        assert not tui.app.query(OutgoingView)
        assert "Reconnecting" not in tui.screen
        page = await tui.app.connection.client.runs(tui.app.connection.workspace_id)
        assert [run.prompt for run in page.items] == ["two", "one", "before"]


async def test_a_run_that_the_server_left_behind_is_not_shown_as_working(tmp_path: Path) -> None:
    """Field notes, opencode #19023: after a restart nothing thinks for ever."""
    gate = Gate()
    server = local_server(tmp_path, ScriptedModel([[Say("half"), Pause(gate)], [Say("new")]]))
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(AsyncExitStack())
        await running.enter_async_context(server.serving())
        tui = await stack.enter_async_context(open_tui(server))
        await tui.say("work")
        await tui.until(lambda: tui.answers == ["half"])
        await running.aclose()
        await tui.until(lambda: tui.app.connection.away is not None)
        await running.enter_async_context(server.serving())
        await tui.until(lambda: tui.idle and tui.notes)
        assert tui.answers == ["half"]
        assert tui.app.query_one(StatusBar).state.since is None
        await tui.say("go on")
        await tui.until(lambda: tui.answers == ["half", "new"])


async def test_a_refused_prompt_stays_with_its_reason_and_is_sent_again(tmp_path: Path) -> None:
    """F2: failures are shown where they belong."""
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await tui.say("make a session")
        await tui.until(lambda: tui.idle)
        session_id, tui.app.current.session_id = tui.app.current.session_id, "nowhere"
        await tui.say("precious words")
        await tui.until(lambda: "Not sent" in tui.screen)
        (view,) = tui.app.query(OutgoingView)
        assert "nowhere" in view.prompt.problem
        tui.app.current.session_id = view.prompt.session_id = session_id
        await tui.pilot.press("ctrl+r")
        await tui.until(lambda: tui.idle and "echo: precious words" in tui.answers)


async def test_esc_takes_an_unsent_prompt_back_to_be_changed(tmp_path: Path) -> None:
    server = local_server(tmp_path, ScriptedModel.echo())
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(AsyncExitStack())
        await running.enter_async_context(server.serving())
        tui = await stack.enter_async_context(open_tui(server))
        await running.aclose()
        await tui.until(lambda: tui.app.connection.away is not None)
        await tui.say("a thougt")
        await tui.until(lambda: tui.app.query(OutgoingView))
        await tui.pilot.press("escape")
        assert tui.app.composer.input.text == "a thougt"
        await tui.say("a thought")
        told = tui.app.farewell("")
        assert "a thought" in told
        await running.enter_async_context(server.serving())
        await tui.until(lambda: tui.idle and tui.answers == ["echo: a thought"])


async def test_esc_calls_off_a_prompt_that_is_on_its_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F2: what was taken back does not run, even if the server takes it a moment later."""
    gate, submit = Gate(), Client.submit

    async def held(self: Client, *of: Any) -> Any:
        await gate.arrive()
        return await submit(self, *of)

    server = local_server(tmp_path, ScriptedModel([[Say("never"), Hang()]]))
    async with server.serving(), open_tui(server) as tui:
        monkeypatch.setattr(Client, "submit", held)
        await tui.say("delete everything")
        await gate.reached()
        await tui.pilot.press("escape")
        await tui.until(lambda: tui.app.composer.input.text == "delete everything")
        gate.open()
        client, workspace_id = tui.app.connection.client, tui.app.connection.workspace_id
        while not (runs := (await client.runs(workspace_id)).items) or runs[0].state != "finished":
            await tui.pilot.pause()
        assert [run.outcome for run in runs] == ["canceled"]
        assert tui.app.composer.input.text == "delete everything"


async def test_who_comes_later_sees_the_jobs_that_run(tmp_path: Path) -> None:
    """F2, F6: also those that began before."""
    server = local_server(tmp_path, ScriptedModel.echo())
    async with server.serving(), open_tui(server) as first:
        await first.say("! sleep 1000 &")
        await first.until(lambda: first.idle)
        (job,) = first.app.connection.mirror.jobs
        async with open_tui(server) as late:
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
    server = local_server(tmp_path, ScriptedModel.echo())
    async with Client(socket=server.socket, client_id="me") as client:
        app = LongboatApp(client, server.project)
        async with app.run_test() as pilot:
            app.composer.input.put("early")
            await pilot.press("enter")
            async with server.serving():
                while not (app.current.session_id and not app.current.unfinished and not app.sender.waiting):
                    await pilot.pause()
                assert [prompt.progress for prompt in app.sender.unsent if prompt.progress is not Progress.SENT] == []


async def test_prompts_of_a_new_session_stay_together_whatever_is_shown_meanwhile(tmp_path: Path) -> None:
    server = local_server(tmp_path, ScriptedModel.echo())
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(AsyncExitStack())
        await running.enter_async_context(server.serving())
        tui = await stack.enter_async_context(open_tui(server))
        await tui.say("old session")
        await tui.until(lambda: tui.idle)
        old = tui.app.current.session_id
        await tui.say("/new")
        await running.aclose()
        await tui.until(lambda: tui.app.connection.away is not None)
        await tui.say("one")
        await tui.say("two", key="ctrl+q")
        tui.app.open_session(old)
        await running.enter_async_context(server.serving())
        client, workspace = tui.app.connection.client, tui.app.connection.workspace_id
        await tui.until(lambda: not tui.app.sender.unsent)
        runs = {run.prompt: run.session_id for run in (await client.runs(workspace)).items}
        assert runs["one"] == runs["two"] != runs["old session"] == old
        assert tui.app.current.session_id == old
