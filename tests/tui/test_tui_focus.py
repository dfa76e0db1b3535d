"""Where the keys go: what is typed is never lost, whatever was clicked or chosen before (F2)."""

from pathlib import Path

from tui_deck import Deck, aboard, harbour

from longboat.client import Client
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel
from longboat.tui.dialogs.sessions import SessionList
from longboat.tui.panels.queue import QueuePanel
from longboat.tui.status import StatusBar
from longboat.wire.models import Delivery
from longboat.wire.requests import Submit


def typed(deck: Deck) -> str:
    return deck.app.composer.input.text


async def test_tab_without_a_queue_leaves_nothing_unheard(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await deck.pilot.press("tab", *"hello", "enter")
        await deck.until(lambda: deck.prompts == ["hello"])


async def test_who_clicks_into_the_transcript_goes_on_typing(tmp_path: Path) -> None:
    async with harbour(tmp_path, ScriptedModel.echo()).serving() as port, aboard(port) as deck:
        await deck.say("first")
        await deck.until(lambda: deck.idle)
        await deck.pilot.click("#transcript")
        await deck.pilot.press(*"second", "enter")
        await deck.until(lambda: deck.prompts == ["first", "second"])


async def test_tab_goes_to_the_queue_and_letters_that_mean_nothing_there_go_to_the_prompt(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Pause(gate), Say("a")], [Say("b")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("one")
        await gate.reached()
        await deck.say("two", key="ctrl+q")
        panel = deck.app.query_one(QueuePanel)
        await deck.until(lambda: panel.display)
        assert "tab" in deck.text_of(panel.query_one(".heading"))
        await deck.pilot.press("tab")
        assert panel.has_focus_within
        await deck.pilot.press("z", "y")
        assert typed(deck) == "zy"
        assert deck.app.composer.input.has_focus


async def test_a_letter_that_means_something_in_the_queue_is_not_typed_as_well(tmp_path: Path) -> None:
    gate = Gate()
    async with harbour(tmp_path, ScriptedModel([[Pause(gate), Say("a")]])).serving() as port, aboard(port) as deck:
        await deck.say("one")
        await gate.reached()
        await deck.say("two", key="ctrl+q")
        await deck.until(lambda: [run.delivery for run in deck.app.desk.unfinished][1:] == [Delivery.QUEUE])
        await deck.pilot.press("tab", "t")
        await deck.until(lambda: [run.delivery for run in deck.app.desk.unfinished][1:] == [Delivery.STEER])
        assert typed(deck) == ""
        assert deck.app.query_one(QueuePanel).has_focus_within
        await deck.pilot.press("d")
        await deck.until(lambda: len(deck.app.desk.unfinished) == 1)
        assert typed(deck) == ""


async def test_a_queue_that_runs_empty_gives_the_keys_back(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([[Pause(gate), Say("a")], [Say("b")]])
    async with harbour(tmp_path, model).serving() as port, aboard(port) as deck:
        await deck.say("one")
        await gate.reached()
        await deck.say("two", key="ctrl+q")
        panel = deck.app.query_one(QueuePanel)
        await deck.until(lambda: panel.display)
        await deck.pilot.press("tab")
        gate.open()
        await deck.until(lambda: not panel.display)
        assert deck.app.composer.input.has_focus


async def test_what_another_session_waits_for_is_told_and_found(tmp_path: Path) -> None:
    """A2: an ask is shown to every client."""
    model = ScriptedModel([[CallTool("bash", {"command": "touch x"})], [Say("done")]])
    async with (
        harbour(tmp_path, model).serving() as port,
        aboard(port) as deck,
        Client(socket=port.socket, client_id="ann") as ann,
    ):
        workspace = await ann.join(port.project)
        other = await ann.create_session(workspace.id, "of ann")
        await ann.submit(workspace.id, Submit(session_id=other.id, prompt="go"))
        bar = deck.app.query_one(StatusBar)
        await deck.until(lambda: "1 approval needed in another session (ctrl+s)" in str(bar.render()))
        await deck.pilot.press("ctrl+s")
        await deck.until(lambda: isinstance(deck.app.screen, SessionList) and "of ann" in deck.screen)
        row = next(line.text for line in deck.lines if "of ann" in line.text)
        assert "needs an answer" in row
