"""Where the keys go: what is typed is never lost, whatever was clicked or chosen before (F2)."""

from pathlib import Path

from tui_driver import TuiDriver, local_server, open_tui

from longboat.client import Client
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel
from longboat.tui.dialogs.sessions import SessionList
from longboat.tui.panels.queue import QueuePanel
from longboat.tui.status import StatusBar
from longboat.wire.models import Delivery
from longboat.wire.requests import Submit


def typed(tui: TuiDriver) -> str:
    return tui.app.composer.input.text


async def test_tab_without_a_queue_leaves_nothing_unheard(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await tui.pilot.press("tab", *"hello", "enter")
        await tui.until(lambda: tui.prompts == ["hello"])


async def test_who_clicks_into_the_transcript_goes_on_typing(tmp_path: Path) -> None:
    async with local_server(tmp_path, ScriptedModel.echo()).serving() as server, open_tui(server) as tui:
        await tui.say("first")
        await tui.until(lambda: tui.idle)
        await tui.pilot.click("#transcript")
        await tui.pilot.press(*"second", "enter")
        await tui.until(lambda: tui.prompts == ["first", "second"])


async def test_tab_goes_to_the_queue_and_letters_that_mean_nothing_there_go_to_the_prompt(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Pause(gate), Say("a")], [Say("b")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("one")
        await gate.reached()
        await tui.say("two", key="ctrl+q")
        panel = tui.app.query_one(QueuePanel)
        await tui.until(lambda: panel.display)
        assert "tab" in tui.text_of(panel.query_one(".heading"))
        await tui.pilot.press("tab")
        assert panel.has_focus_within
        await tui.pilot.press("z", "y")
        assert typed(tui) == "zy"
        assert tui.app.composer.input.has_focus


async def test_a_letter_that_means_something_in_the_queue_is_not_typed_as_well(tmp_path: Path) -> None:
    gate = Gate()
    async with (
        local_server(tmp_path, ScriptedModel([[Pause(gate), Say("a")]])).serving() as server,
        open_tui(server) as tui,
    ):
        await tui.say("one")
        await gate.reached()
        await tui.say("two", key="ctrl+q")
        await tui.until(lambda: [run.delivery for run in tui.app.current.unfinished][1:] == [Delivery.QUEUE])
        await tui.pilot.press("tab", "t")
        await tui.until(lambda: [run.delivery for run in tui.app.current.unfinished][1:] == [Delivery.STEER])
        assert typed(tui) == ""
        assert tui.app.query_one(QueuePanel).has_focus_within
        await tui.pilot.press("d")
        await tui.until(lambda: len(tui.app.current.unfinished) == 1)
        assert typed(tui) == ""


async def test_a_queue_that_runs_empty_gives_the_keys_back(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Pause(gate), Say("a")], [Say("b")]])
    async with local_server(tmp_path, model).serving() as server, open_tui(server) as tui:
        await tui.say("one")
        await gate.reached()
        await tui.say("two", key="ctrl+q")
        panel = tui.app.query_one(QueuePanel)
        await tui.until(lambda: panel.display)
        await tui.pilot.press("tab")
        gate.open()
        await tui.until(lambda: not panel.display)
        assert tui.app.composer.input.has_focus


async def test_what_another_session_waits_for_is_told_and_found(tmp_path: Path) -> None:
    """A2: an ask is shown to every client."""
    model = ScriptedModel([[CallTool("bash", {"command": "touch x"})], [Say("done")]])
    async with (
        local_server(tmp_path, model).serving() as server,
        open_tui(server) as tui,
        Client(socket=server.socket, client_id="ann") as ann,
    ):
        workspace = await ann.join(server.project)
        other = await ann.create_session(workspace.id, "of ann")
        await ann.submit(workspace.id, Submit(session_id=other.id, prompt="go"))
        bar = tui.app.query_one(StatusBar)
        await tui.until(lambda: "1 approval needed in another session (ctrl+s)" in str(bar.render()))
        await tui.pilot.press("ctrl+s")
        await tui.until(lambda: isinstance(tui.app.screen, SessionList) and "of ann" in tui.screen)
        row = next(line.text for line in tui.lines if "of ann" in line.text)
        assert "needs an answer" in row
