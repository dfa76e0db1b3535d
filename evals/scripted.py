"""A model that makes the moves of an attempt: it shows that a task can be solved, and that its judge can fail.

Runs behind the real server like any other model; `longboat.testing.endpoint` plays it.
"""

from typing import assert_never

from evals.task import Answer, Attempt, Edit, Shell, Task, Write
from longboat.testing import CallTool, HttpStep, Say


def play(task: Task, attempt: Attempt) -> list[HttpStep]:
    """The attempt as steps: view what is there, then change it, one kind of call after the other."""
    steps: list[HttpStep] = []
    known = [move.path for move in attempt if isinstance(move, Edit | Write) and move.path in task.files]
    if known:
        steps.append([CallTool("view", {"path": path}) for path in dict.fromkeys(known)])
    pending: list[CallTool] = []
    words = "Done."
    for move in attempt:
        if isinstance(move, Answer):
            words = move.text
            continue
        if isinstance(move, Shell) and pending:
            steps.append(pending)
            pending = []
        pending.append(_call(move))
        if isinstance(move, Shell):
            steps.append(pending)
            pending = []
    if pending:
        steps.append(pending)
    return [*steps, [Say(words)]]


def _call(move: Edit | Write | Shell) -> CallTool:
    match move:
        case Edit(path, old, new):
            return CallTool("edit", {"path": path, "old_text": old, "new_text": new, "replace_all": True})
        case Write(path, content):
            return CallTool("write", {"path": path, "content": content})
        case Shell(command):
            return CallTool("bash", {"command": command})
        case _:
            assert_never(move)
