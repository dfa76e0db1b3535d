"""How a trial that was not solved is named, and what is measured, on a real server with a scripted model."""

import json
from pathlib import Path

import pytest
from evals.batch import Unusable, chosen, run_batch
from evals.site import open_site, scripted_config
from evals.tasks import TASKS
from evals.trial import Failure, Order

from longboat.testing import CallTool, Hang, HttpStep, Refuse, Say, Stop, Use
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.testing.script import StopReason
from parts import how, missing

pytestmark = [pytest.mark.acceptance, pytest.mark.skipif(missing("git"), reason=how("git"))]

VIEW = CallTool("view", {"path": "stats.py"})
EDIT = CallTool("edit", {"path": "stats.py", "old_text": "//", "new_text": "/"})
BREAK = CallTool("edit", {"path": "stats.py", "old_text": "//", "new_text": "*"})

CASES: dict[str, tuple[Failure | None, list[HttpStep]]] = {
    "solved": (None, [[VIEW], [EDIT], [Say("Done.")]]),
    "solved-and-stopped": (None, [[VIEW], [EDIT], [Refuse(400, message="no more credit")]]),
    "refused": (Failure.PROVIDER, [[Refuse(400, message="no such model")]]),
    "silent": (Failure.TIMEOUT, [[Hang()]]),
    "looping": (Failure.LIMIT, [[VIEW]] * 12),
    "cut-off": (Failure.LIMIT, [[Say("Let me"), Stop(StopReason.MAX_TOKENS)]]),
    "talking": (Failure.GAVE_UP, [[Say("You should divide with /.")]]),
    "unread": (Failure.TOOL_ERRORS, [[EDIT], [Say("Done.")]]),
    "looking": (Failure.NO_EDIT, [[VIEW], [Say("I see.")]]),
    "guessing": (Failure.WRONG, [[VIEW], [BREAK], [Say("Done.")]]),
}


async def test_each_way_to_fail_has_its_name() -> None:
    async with ScriptedEndpoint() as endpoint, open_site(scripted_config(endpoint.base_url)) as site:
        orders = []
        for name, (_, steps) in CASES.items():
            endpoint.add(*steps, name=name)
            limit_s = 1.0 if name == "silent" else 60.0
            orders.append(Order(task=TASKS["fix-mean"], sample=0, marker=f" [[{name}]]", limit_s=limit_s))
        trials = await run_batch(site, orders, jobs=2)
    found = {name: trial.failure for name, trial in zip(CASES, trials, strict=True)}
    assert found == {name: failure for name, (failure, _) in CASES.items()}
    refused = trials[list(CASES).index("refused")]
    assert "no such model" in refused.why


async def test_steps_calls_and_tokens_are_counted_and_the_transcript_is_kept(tmp_path: Path) -> None:
    async with ScriptedEndpoint() as endpoint, open_site(scripted_config(endpoint.base_url)) as site:
        steps: list[HttpStep] = [
            [Use(100, 7), EDIT],
            [Use(120, 8), VIEW],
            [Use(150, 9), EDIT],
            [Use(200, 2), Say("Done.")],
        ]
        endpoint.add(*steps, name="counted")
        order = Order(task=TASKS["fix-mean"], sample=3, marker=" [[counted]]", transcripts=tmp_path)
        (trial,) = await run_batch(site, [order], jobs=1)
    assert (trial.solved, trial.steps, trial.calls, trial.failed_calls) == (True, 4, 3, 1)
    assert (trial.input_tokens, trial.output_tokens) == (570, 26)
    transcript = json.loads((tmp_path / "fix-mean-3.json").read_text())
    assert [message["role"] for message in transcript][:2] == ["user", "assistant"]
    assert transcript[-1]["parts"][0]["text"] == "Done."


def test_tasks_are_chosen_by_name_by_kind_by_beginning_and_all_without_a_word() -> None:
    assert [task.name for task in chosen(TASKS, "fix-mean,find-commit")] == ["fix-mean", "find-commit"]
    assert {task.kind for task in chosen(TASKS, "git")} >= {"git"}
    assert [task.name for task in chosen(TASKS, "rename")] == ["rename-function", "rename-module"]
    assert len(chosen(TASKS, "quick")) == 10
    assert len(chosen(TASKS, "")) == len(TASKS)
    with pytest.raises(Unusable, match="no-such-task"):
        chosen(TASKS, "no-such-task")
