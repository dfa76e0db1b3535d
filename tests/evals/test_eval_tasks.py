"""Every task can be solved, and every judge can fail: the tasks are tested before any model is."""

import pytest
from evals.batch import run_attempts
from evals.task import IDLE
from evals.tasks import TASKS
from evals.trial import Failure, Kind

from parts import how, missing

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(240),
    pytest.mark.skipif(missing("git"), reason=how("git")),
]
JOBS = 4


async def test_a_model_that_knows_the_answers_solves_every_task() -> None:
    trials = await run_attempts([(task, task.solution) for task in TASKS.values()], jobs=JOBS)
    assert {trial.task: trial.why for trial in trials if not trial.solved} == {}
    assert {trial.task: trial.failed_calls for trial in trials if trial.failed_calls} == {}


async def test_a_model_that_does_nothing_and_says_it_is_done_solves_no_task() -> None:
    trials = await run_attempts([(task, IDLE) for task in TASKS.values()], jobs=JOBS)
    expected = {name: Failure.WRONG if task.kind is Kind.ANSWER else Failure.GAVE_UP for name, task in TASKS.items()}
    assert {trial.task: trial.failure for trial in trials} == expected


async def test_no_judge_accepts_a_plausible_mistake() -> None:
    made = [(task, name, attempt) for task in TASKS.values() for name, attempt in task.mistakes.items()]
    trials = await run_attempts([(task, attempt) for task, _, attempt in made], jobs=JOBS)
    named = [(f"{task.name}: {name}", trial) for (task, name, _), trial in zip(made, trials, strict=True)]
    assert [name for name, trial in named if trial.failure is not Failure.WRONG] == []
    assert {name: trial.failed_calls for name, trial in named if trial.failed_calls} == {}


def test_there_are_forty_tasks_of_every_kind_each_with_a_mistake_and_ten_of_them_quick() -> None:
    assert len(TASKS) == 40
    assert {task.kind for task in TASKS.values()} == set(Kind)
    assert [name for name, task in TASKS.items() if not task.mistakes] == []
    assert sum(task.quick for task in TASKS.values()) == 10
