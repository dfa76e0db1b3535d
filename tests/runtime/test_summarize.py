"""A summary on request (A7): a run like any other."""

from pathlib import Path

import pytest
from checks import check_ends, check_requests
from crash import RESUME, check_log, restarted
from running_app import RunningApp, launch

from longboat.core.history import SUMMARY_LEAD
from longboat.core.prompts import SUMMARIZE
from longboat.errors import RunIdTaken, RunNotEditable, SessionNotFound
from longboat.models.protocol import ModelRequest
from longboat.testing import Gate, Pause, Say, ScriptedModel
from longboat.testing.scripted import last_prompt
from longboat.wire.models import Outcome
from longboat.wire.requests import EditRun, Summarize

BIG = 100_000


async def summarize(running: RunningApp, run_id: str = "s") -> None:
    accepted = await running.workspace.summarize_session(running.session_id, Summarize(run_id=run_id))
    assert accepted.run_id == run_id


async def test_a_summary_on_request_is_the_answer_of_its_run_and_what_the_model_goes_on_from(tmp_path: Path) -> None:
    """A7, E1: one terminal event, whose text is the summary; nothing is left as a request to go on with."""
    model = ScriptedModel([[Say("noted")], [Say("We spoke of boats.")], [Say("later")]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("Boats!", "r1")
        await running.completed("r1")
        await summarize(running)
        complete = await running.completed("s")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "We spoke of boats.")
        assert last_prompt(model.requests[1]) == SUMMARIZE
        assert len(model.requests[1].messages) == 3, "what people read as the prompt is not for the model"
        prompt, summary = (await running.messages())[2:]
        assert "Summarize this conversation." in str(prompt.parts)
        assert (summary.id, summary.summary) == (complete.message_id, True)
        await running.submit("And now?", "r2")
        await running.completed("r2")
        first, second = model.requests[2].messages
        assert f"{SUMMARY_LEAD}We spoke of boats." in str(first.parts).replace("\\n", "\n")
        assert "And now?" in str(second.parts)
        check_requests(model.requests)
        await check_ends(running)


async def test_what_steers_while_a_summary_is_made_runs_after_it(tmp_path: Path) -> None:
    """L10; crush #1422: neither lost nor swallowed by the summary."""
    gate = Gate()
    model = ScriptedModel([[Say("noted")], [Say("Sum."), Pause(gate)], [Say("answered")]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        await summarize(running)
        await gate.reached()
        steer = (await running.submit("two")).run_id
        await running.watcher.in_state(steer, "queued")
        gate.open()
        assert (await running.completed("s")).text == "Sum."
        complete = await running.completed(steer)
        assert (complete.text, complete.folded_into) == ("answered", None)
        check_requests(model.requests)
        await check_ends(running)


async def test_a_request_for_a_summary_waits_its_turn_cannot_be_edited_and_can_be_canceled(tmp_path: Path) -> None:
    """L8, L12."""
    gate = Gate()
    model = ScriptedModel([[Say("x"), Pause(gate)], [Say("Sum.")]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await gate.reached()
        await summarize(running)
        await summarize(running)  # the same again is the same run
        with pytest.raises(RunIdTaken):
            await running.submit("Summarize this conversation.", "s")
        await running.watcher.in_state("s", "queued")
        with pytest.raises(RunNotEditable):
            await running.workspace.edit_run("s", EditRun(prompt="Sing"))
        await summarize(running, "s2")
        await running.workspace.cancel_run("s2")
        assert (await running.completed("s2")).outcome is Outcome.CANCELED
        gate.open()
        assert (await running.completed("s")).text == "Sum."
        await check_ends(running)


async def test_half_a_summary_that_was_canceled_is_withdrawn_and_the_model_sees_all_as_before(tmp_path: Path) -> None:
    """T2, T3, T8."""
    gate = Gate()
    model = ScriptedModel([[Say("noted")], [Say("Ha"), Pause(gate)], [Say("still here")]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        await summarize(running)
        await gate.reached()
        await running.workspace.cancel_session(running.session_id)
        assert (await running.completed("s")).outcome is Outcome.CANCELED
        assert not any(message.summary for message in await running.messages())
        await running.submit("two", "r2")
        await running.completed("r2")
        assert "one" in str(model.requests[2].messages[0].parts)
        check_requests(model.requests)
        await check_ends(running)


async def test_nothing_to_summarize_ends_the_run_with_an_error_that_says_so(tmp_path: Path) -> None:
    """E3: also right after a summary."""
    model = ScriptedModel([[Say("noted")], [Say("Sum.")]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await summarize(running, "empty")
        assert (await running.completed("empty")).error.startswith("Nothing to summarize")
        await running.submit("one", "r1")
        await running.completed("r1")
        await summarize(running, "s1")
        assert (await running.completed("s1")).outcome is Outcome.END_TURN
        await summarize(running, "s2")
        assert (await running.completed("s2")).error.startswith("Nothing to summarize")
        assert len(model.requests) == 2
        await check_ends(running)
        with pytest.raises(SessionNotFound):
            await running.workspace.summarize_session("nope", Summarize())


async def test_undoing_a_summary_shows_the_model_everything_again(tmp_path: Path) -> None:
    """A4."""
    model = ScriptedModel([[Say("noted")], [Say("Sum.")], [Say("all")]], context_window=BIG)
    async with launch(tmp_path, model) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        await summarize(running)
        await running.completed("s")
        assert (await running.workspace.undo_turn(running.session_id)).run_id == "s"
        await running.submit("two", "r2")
        await running.completed("r2")
        assert "one" in str(model.requests[2].messages[0].parts)
        check_requests(model.requests)


async def test_a_summary_that_a_crash_cut_off_is_made_again(tmp_path: Path) -> None:
    """B6: the run still knows that it is one for a summary."""
    gate = Gate()
    model = ScriptedModel([[Say("noted")], [Say("Ha"), Pause(gate)]], context_window=BIG)
    after = ScriptedModel([[Say("Sum.")]], context_window=BIG)
    async with launch(tmp_path, model, config=RESUME) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        await summarize(running)
        await gate.reached()
        async with restarted(running, after, config=RESUME) as again:
            assert (await again.workspace.run("s", wait_s=60)).outcome is Outcome.END_TURN
            assert last_prompt(after.requests[0]) == SUMMARIZE
            assert [message.summary for message in await again.messages()][-1]
            await check_log(again)
        await running.workspace.cancel_session(running.session_id)
        await running.completed("s")


async def test_undo_and_redo_bring_the_models_view_back_with_the_summary(tmp_path: Path) -> None:
    """A4, A7: redo reverses undo, also what the model goes on from; an older summary counts again."""

    def answer(request: ModelRequest) -> list[Say]:
        asked = last_prompt(request)
        return [Say(f"summary {len(request.messages)}" if asked.startswith(SUMMARIZE[:20]) else "yes")]

    model = ScriptedModel(answer, context_window=100_000)
    async with launch(tmp_path, model) as running:

        async def seen() -> int:
            """How many messages the next prompt's model is shown; the prompt is taken back."""
            run_id = (await running.submit("and now?")).run_id
            await running.completed(run_id)
            await running.workspace.undo_turn(running.session_id)
            return len(model.requests[-1].messages)

        async def summed_up() -> None:
            accepted = await running.workspace.summarize_session(running.session_id, Summarize())
            await running.completed(accepted.run_id)

        for number in range(3):
            await running.submit(f"prompt {number}", f"r{number}")
            await running.completed(f"r{number}")
        assert await seen() == 7
        await summed_up()
        assert await seen() == 2
        await running.submit("more", "more")
        await running.completed("more")
        assert await seen() == 4
        await summed_up()
        await running.workspace.undo_turn(running.session_id)
        await running.workspace.redo_turn(running.session_id)
        assert await seen() == 2
        await running.workspace.undo_turn(running.session_id)
        assert await seen() == 4, "the first summary counts again"
