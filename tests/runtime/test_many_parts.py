"""Answers in very many parts: what a model does costs a run its answer at most, never the server its memory (E5)."""

from pathlib import Path

import pytest
from checks import check_ends, check_requests, finish_of
from mirror import log_of
from running_app import launch

from longboat.core.stream import MAX_PARTS
from longboat.testing import CallTool, Say, ScriptedModel, Step, Think
from longboat.wire.models import Outcome

BACK_AND_FORTH: Step = [item for _ in range(MAX_PARTS) for item in (Say("a"), Think("b"))]
CALLS: Step = [Say("x" * 10_000), *(CallTool("look", call_id=f"c{index}") for index in range(2 * MAX_PARTS))]


@pytest.mark.parametrize(("answer", "text"), [(BACK_AND_FORTH, "a" * (MAX_PARTS // 2)), (CALLS, "x" * 10_000)])
async def test_an_answer_of_too_many_parts_ends_its_run_with_an_error(tmp_path: Path, answer: Step, text: str) -> None:
    """T3, E3: what was said is kept, the reason is told, nothing is tried again, and the session goes on."""
    model = ScriptedModel([answer, [Say("fine")]])
    async with launch(tmp_path, model) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.ERROR, text)
        assert f"more than {MAX_PARTS} parts" in complete.error
        assert finish_of((await running.messages())[1]).title == "The model's answer has too many parts"
        await running.submit("again", "r2")
        assert (await running.completed("r2")).text == "fine"
        assert len(model.requests) == 2
        check_requests(model.requests)
        await check_ends(running)


async def test_an_answer_of_as_many_parts_as_there_may_be_is_whole(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([BACK_AND_FORTH[:MAX_PARTS]])) as running:
        await running.submit("go", "r1")
        complete = await running.completed("r1")
        assert (complete.outcome, complete.text) == (Outcome.END_TURN, "a" * (MAX_PARTS // 2))
        assert sum(len(row["frames"]) for row in await log_of(running.workspace)) < 10_000_000
        await check_ends(running)
