"""`python -m evals [run | compare | list]`: see docs/evals.md."""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from evals import results
from evals.batch import Unusable, check_ready, chosen, run_attempts, run_batch
from evals.report import comparison, table
from evals.site import StartFailed, open_site
from evals.task import Task
from evals.tasks import TASKS
from evals.trial import Order, Trial
from longboat.config.jsonc import parse
from longboat.errors import LongboatError

SCRIPTED = "scripted"


def main() -> int:
    # Every exit unwinds the stack, and with it the server that was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    given = _parser().parse_args()
    try:
        match given.command:
            case "list":
                return _list()
            case "compare":
                return _compare(given.before, given.after, given.model, given.results)
            case _:
                return asyncio.run(_run(given))
    except (Unusable, StartFailed, LongboatError) as error:
        print(f"evals: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evals", description="Measure how well a model works with Longboat."
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=results.FOLDER,
        metavar="DIR",
        help="directory of the results; default: evals/results",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="Give a model the tasks and judge what it did.")
    run.add_argument(
        "--model", default=SCRIPTED, help="PROVIDER/MODEL as configured; default: a script that knows all answers"
    )
    run.add_argument("--tasks", default="", help="names, kinds or `quick`, separated by commas; default: all")
    run.add_argument("--samples", type=int, default=1, help="number of trials for each task; default: 1")
    run.add_argument("--jobs", type=int, default=2, help="number of trials to run at a time; default: 2")
    run.add_argument("--limit-s", type=float, default=600, help="time limit for one trial, in seconds; default: 600")
    run.add_argument("--config", type=Path, help="a longboat.json to use instead of your own")
    run.add_argument("--label", default="", help="text to add to the result's name, such as `steps`")
    run.add_argument("--transcripts", type=Path, metavar="DIR", help="write one JSON file per trial to this directory")
    compare = commands.add_parser("compare", help="Show two results side by side.")
    compare.add_argument("before", help="a commit, the beginning of a result's name, or a file")
    compare.add_argument("after")
    compare.add_argument("--model", help="only this model, if a commit has results of several")
    commands.add_parser("list", help="List the tasks.")
    return parser


async def _run(given: argparse.Namespace) -> int:
    tasks = chosen(TASKS, given.tasks)
    progress = _Progress(given, len(tasks) * given.samples)
    print(f"evals: {given.model}, {len(tasks)} tasks × {given.samples}", file=sys.stderr, flush=True)
    if given.model == SCRIPTED:
        attempts = [(task, task.solution) for task in tasks for _ in range(given.samples)]
        await run_attempts(attempts, jobs=given.jobs, report=progress.tell)
    else:
        await _ask_model(given, tasks, progress)
    print(table(progress.result()))
    if progress.kept is not None:
        print(f"Kept as {progress.kept}")
        return 0
    return 0 if all(trial.solved for trial in progress.trials) else 1


async def _ask_model(given: argparse.Namespace, tasks: list[Task], progress: "_Progress") -> None:
    config = None if given.config is None else _read_config(given.config)
    orders = [
        Order(task=task, sample=sample, model=given.model, limit_s=given.limit_s, transcripts=given.transcripts)
        for sample in range(given.samples)
        for task in tasks
    ]
    async with open_site(config) as site:
        await check_ready(site, given.model)
        await run_batch(site, orders, jobs=given.jobs, report=progress.tell)


def _read_config(file: Path) -> dict[str, object]:
    try:
        content = parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unusable(f"{file}: {error}") from None
    if not isinstance(content, dict):
        raise Unusable(f"{file}: this is not a longboat.json.")
    return content


class _Progress:
    """Tells and keeps each trial as it ends: an evaluation that is interrupted after hours is not lost."""

    def __init__(self, given: argparse.Namespace, count: int) -> None:
        self.trials: list[Trial] = []
        self.kept: Path | None = None
        self._given = given
        self._count = count
        self._commit = results.current_commit()
        self._load = os.getloadavg()[0]

    def tell(self, trial: Trial) -> None:
        self.trials.append(trial)
        said = "solved" if trial.solved else f"{trial.failure}: {trial.why}"
        number = f"{len(self.trials)}/{self._count}"
        print(f"{number} {trial.task}: {said} ({trial.seconds:.0f} s)", file=sys.stderr, flush=True)
        if self._given.model != SCRIPTED:
            self.kept = results.save(self.result(), self._given.results)

    def result(self) -> results.Result:
        given = self._given
        return results.new_result(
            sorted(self.trials, key=lambda trial: (list(TASKS).index(trial.task), trial.sample)),
            commit=self._commit,
            model=given.model,
            label=given.label,
            jobs=given.jobs,
            limit_s=given.limit_s,
            load=self._load,
        )


def _compare(before: str, after: str, model: str | None, folder: Path) -> int:
    old, new = (
        [each for each in results.find(word, folder) if model in (None, each.model)] for word in (before, after)
    )
    pairs = [(a, b) for a in old for b in new if (a.model, a.label) == (b.model, b.label)]
    if len(old) == len(new) == 1:
        pairs = [(old[0], new[0])]  # whatever they are: both were named
    if not pairs:
        raise Unusable(f"No results of the same model and label for {before} and {after} in {folder}.")
    print("\n\n".join(comparison(*pair) for pair in pairs))
    return 0


def _list() -> int:
    for task in TASKS.values():
        print(
            f"{task.name:<22} {task.kind:<9} {'quick  ' if task.quick else '       '}{task.prompt.splitlines()[0][:90]}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
