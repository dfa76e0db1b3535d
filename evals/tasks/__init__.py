"""All tasks, by name."""

from evals.task import Task
from evals.tasks import add, answer, files, fix, git, refactor, testing

TASKS: dict[str, Task] = {
    task.name: task for group in (fix, add, refactor, testing, answer, git, files) for task in group.TASKS
}
