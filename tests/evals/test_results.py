"""Results as files, their table, and two of them side by side."""

from pathlib import Path

import msgspec
import pytest
from evals.report import chance, comparison, interval, table
from evals.results import Result, find, load, save
from evals.trial import Failure, Trial

from longboat.models.local.known import KNOWN_MODELS, KnownModel


def trial(task: str, *, solved: bool, sample: int = 0, failure: Failure = Failure.WRONG) -> Trial:
    return Trial(
        task=task,
        sample=sample,
        solved=solved,
        failure=None if solved else failure,
        steps=4,
        calls=3,
        failed_calls=1,
        input_tokens=1200,
        output_tokens=80,
        seconds=2.5,
    )


def result(commit: str, *trials: Trial, label: str = "") -> Result:
    return Result(
        commit=commit,
        model="mine/small",
        label=label,
        measured_at="2026-11-16T12:00Z",
        machine="a machine",
        jobs=1,
        limit_s=600,
        trials=trials,
    )


OLD = result("1111111a", trial("fix-mean", solved=False), trial("add-flag", solved=True), trial("gone", solved=True))
NEW = result(
    "2222222b",
    trial("fix-mean", solved=True),
    trial("fix-mean", solved=False, sample=1, failure=Failure.TIMEOUT),
    trial("add-flag", solved=True),
)


def test_a_result_is_read_as_it_was_written_one_trial_a_line(tmp_path: Path) -> None:
    file = save(NEW, tmp_path)
    assert file.name == "2222222b-mine-small.json"
    assert load(file) == NEW
    assert len(file.read_text().splitlines()) == 2 + len(NEW.trials)


def test_a_label_is_part_of_the_name(tmp_path: Path) -> None:
    assert save(msgspec.structs.replace(NEW, label="steps"), tmp_path).name == "2222222b-mine-small-steps.json"


def test_results_are_found_by_commit_name_and_file(tmp_path: Path) -> None:
    file = save(OLD, tmp_path)
    save(NEW, tmp_path)
    assert find("1111", tmp_path) == find("1111111a-mine", tmp_path) == find(str(file), tmp_path) == [OLD]
    assert find("3333", tmp_path) == []


def test_the_table_has_a_row_for_each_task_and_names_the_failures() -> None:
    assert table(NEW).splitlines() == [
        "mine/small at 2222222b: 2 tasks, 3 trials, 1 at a time, 600 s each",
        "task      solved  steps  calls  failed  tokens in  out  seconds  failures",
        "fix-mean     1/2      4      3       1      1,200   80      2.5  1 timeout",
        "add-flag     1/1      4      3       1      1,200   80      2.5",
        "total        2/3      4      3       1      1,200   80      2.5  1 timeout",
        "Solved 2 of 3 (67%; with 95 % certainty 21% to 94%).",
        "Steps, calls, tokens and seconds are medians; in the last row, of all trials.",
    ]


def test_a_comparison_counts_the_tasks_that_both_have() -> None:
    lines = comparison(OLD, NEW).splitlines()
    assert lines[3].split() == ["fix-mean", "0/1", "1/2", "+", "4", "→", "4", "1,200", "→", "1,200", "2.5", "→", "2.5"]
    assert lines[4].split()[:4] == ["add-flag", "1/1", "1/1", "4"]
    assert lines[-2] == "1 tasks better, 0 worse, 1 the same; may well be chance (sign test, p = 1.00)."
    assert lines[-1] == "Only in one of them, and not counted: gone."


@pytest.mark.parametrize(
    ("better", "worse", "probability"), [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (8, 1, 0.0390625)]
)
def test_few_differences_may_be_chance(better: int, worse: int, probability: float) -> None:
    assert chance(better, worse) == chance(worse, better) == probability


def test_an_interval_is_wide_for_few_trials_and_narrow_for_many() -> None:
    assert [round(bound, 2) for bound in interval(0, 10)] == [0.0, 0.28]
    assert [round(bound, 2) for bound in interval(5, 10)] == [0.24, 0.76]
    assert [round(bound, 2) for bound in interval(500, 1000)] == [0.47, 0.53]


@pytest.mark.parametrize("model", KNOWN_MODELS.values(), ids=KNOWN_MODELS)
def test_what_the_list_of_local_models_claims_was_measured(model: KnownModel) -> None:
    if model.measured is None:
        return
    [measured] = find(model.measured.result)
    assert measured.model.endswith(f"/{model.id}")
    assert (model.measured.solved, model.measured.tasks) == (
        sum(each.solved for each in measured.trials),
        len(measured.trials),
    )
