"""`python -m evals [run | compare | list]`: see docs/evals.md."""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from evals import results
from evals.batch import chosen, run_attempts, run_batch
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
                return _compare(given.before, given.after, given.model)
            case _:
                return asyncio.run(_run(given))
    except (LookupError, StartFailed, LongboatError) as error:
        print(f"evals: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evals", description="How well a model works with Longboat.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="Give a model the tasks and judge what it did.")
    run.add_argument(
        "--model", default=SCRIPTED, help="PROVIDER/MODEL as configured; default: one that knows all answers"
    )
    run.add_argument("--tasks", default="", help="names, kinds or `quick`, separated by commas; default: all")
    run.add_argument("--samples", type=int, default=1, help="how often each task is tried; default: 1")
    run.add_argument("--jobs", type=int, default=2, help="how many trials run at a time; default: 2")
    run.add_argument("--limit-s", type=float, default=600, help="seconds for one trial; default: 600")
    run.add_argument("--config", type=Path, help="a longboat.json to use instead of your own")
    run.add_argument("--label", default="", help="added to the result's name, such as `steps`")
    run.add_argument("--transcripts", type=Path, metavar="DIR", help="keep what the model said and called there")
    compare = commands.add_parser("compare", help="Show two results side by side.")
    compare.add_argument("before", help="a commit, the beginning of a result's name, or a file")
    compare.add_argument("after")
    compare.add_argument("--model", help="only this model, if a commit has results of several")
    commands.add_parser("list", help="List the tasks.")
    return parser


async def _run(given: argparse.Namespace) -> int:
    tasks = chosen(TASKS, given.tasks)
    load = os.getloadavg()[0]
    count = len(tasks) * given.samples
    print(f"evals: {given.model}, {len(tasks)} tasks × {given.samples}", file=sys.stderr, flush=True)
    progress = _Progress(count)
    if given.model == SCRIPTED:
        attempts = [(task, task.solution) for task in tasks for _ in range(given.samples)]
        trials = await run_attempts(attempts, jobs=given.jobs, report=progress.tell)
    else:
        trials = await _ask_model(given, tasks, progress)
    result = results.new_result(
        trials, model=given.model, label=given.label, jobs=given.jobs, limit_s=given.limit_s, load=load
    )
    print(table(result))
    if given.model != SCRIPTED:
        print(f"Kept as {results.save(result)}")
        return 0
    return 0 if all(trial.solved for trial in trials) else 1


async def _ask_model(given: argparse.Namespace, tasks: list[Task], progress: "_Progress") -> list[Trial]:
    config = None if given.config is None else parse(given.config.read_text(encoding="utf-8"))
    orders = [
        Order(task=task, sample=sample, model=given.model, limit_s=given.limit_s, transcripts=given.transcripts)
        for sample in range(given.samples)
        for task in tasks
    ]
    async with open_site(config) as site:
        return await run_batch(site, orders, jobs=given.jobs, report=progress.tell)


class _Progress:
    def __init__(self, count: int) -> None:
        self._count = count
        self._done = 0

    def tell(self, trial: Trial) -> None:
        self._done += 1
        said = "solved" if trial.solved else f"{trial.failure}: {trial.why}"
        print(f"{self._done}/{self._count} {trial.task}: {said} ({trial.seconds:.0f} s)", file=sys.stderr, flush=True)


def _compare(before: str, after: str, model: str | None) -> int:
    shown = 0
    for old in results.find(before):
        for new in results.find(after):
            same = (old.model, old.label) == (new.model, new.label) or (
                Path(before).is_file() and Path(after).is_file()
            )
            if same and model in (None, old.model):
                print(comparison(old, new), end="\n\n")
                shown += 1
    if not shown:
        raise LookupError(f"No results of the same model for {before} and {after} in {results.FOLDER}.")
    return 0


def _list() -> int:
    for task in TASKS.values():
        print(
            f"{task.name:<22} {task.kind:<9} {'quick  ' if task.quick else '       '}{task.prompt.splitlines()[0][:90]}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
