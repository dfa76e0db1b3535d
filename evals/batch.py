"""Many trials on one server, some of them at a time; and the models that play attempts."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from evals.scripted import play
from evals.site import Site, open_site, scripted_config
from evals.task import Attempt, Task
from evals.trial import Order, Trial, run_trial
from longboat.testing.endpoint import ScriptedEndpoint


class Unusable(Exception):
    """What was asked for cannot be done; the text says what to do."""


Report = Callable[[Trial], None]


async def run_batch(site: Site, orders: Iterable[Order], *, jobs: int, report: Report = lambda _: None) -> list[Trial]:
    """The trials, in the order of the orders."""
    free = asyncio.Semaphore(jobs)

    async def make(order: Order) -> Trial:
        async with free:
            trial = await run_trial(site, order)
        report(trial)
        return trial

    try:
        async with asyncio.TaskGroup() as group:
            made = [group.create_task(make(order)) for order in orders]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in made]


async def check_ready(site: Site, model: str) -> None:
    """Raises `Unusable` if this model cannot be asked."""
    workspace = await site.client.join(site.work)
    agent = await site.client.agent(workspace.id, model=model)
    await site.client.release(workspace.id)
    if not agent.ready:
        raise Unusable(agent.problem or f"{model} is not ready.")


async def run_attempts(
    attempts: Sequence[tuple[Task, Attempt]], *, jobs: int, report: Report = lambda _: None
) -> list[Trial]:
    """Each attempt once, made by a scripted model behind a real server."""
    async with ScriptedEndpoint() as endpoint, open_site(scripted_config(endpoint.base_url)) as site:
        orders = []
        for number, (task, attempt) in enumerate(attempts):
            endpoint.add(*play(task, attempt), name=f"attempt-{number}")
            orders.append(Order(task=task, sample=number, marker=f" [[attempt-{number}]]"))
        return await run_batch(site, orders, jobs=jobs, report=report)


def chosen(tasks: Mapping[str, Task], words: str) -> list[Task]:
    """The tasks that a person means: names, kinds, `quick`, or the beginning of a name; nothing means all of them."""
    found: dict[str, Task] = {}
    for word in words.replace(",", " ").split():
        fitting = {
            name: task
            for name, task in tasks.items()
            if word in (name, task.kind) or (word == "quick" and task.quick) or name.startswith(word)
        }
        if not fitting:
            raise Unusable(f"No task is named {word!r}. `python -m evals list` lists them.")
        found |= fitting
    return list((found or tasks).values())
