"""The turn as a person meets it: it answers, streams, and leaves a whole transcript."""

from pathlib import Path

from boat import launch

from longboat.testing import Gate, Pause, Say, ScriptedModel
from longboat.wire.models import FinishPart, FinishReason, Outcome, TextPart


async def test_a_prompt_is_answered_and_its_terminal_event_comes_last(tmp_path: Path) -> None:
    """E1, T5: one terminal event, after the final state of the messages."""
    model = ScriptedModel([[Say("Hello, "), Say("crew.")]])
    async with launch(tmp_path, model) as boat:
        await boat.submit("Say hello", "r1")
        complete = await boat.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "Hello, crew.")
        assert len(boat.watcher.terminals("r1")) == 1
        kinds = [event.type for event in boat.watcher.events]
        last_message = max(index for index, kind in enumerate(kinds) if kind == "message")
        assert last_message < kinds.index("run_complete")
        user, answer = await boat.messages()
        assert user.parts == (TextPart(text="Say hello"),)
        assert answer.parts == (TextPart(text="Hello, crew."), FinishPart(reason=FinishReason.END_TURN))


async def test_busy_lasts_until_the_turn_has_unwound(tmp_path: Path) -> None:
    """T6."""
    gate = Gate()
    async with launch(tmp_path, ScriptedModel([[Say("a"), Pause(gate), Say("b")]])) as boat:
        await boat.submit("go", "r1")
        await gate.reached()
        assert (await boat.workspace.session_status(boat.session_id)).busy
        gate.open()
        await boat.completed("r1")
        assert not (await boat.workspace.session_status(boat.session_id)).busy
