"""What the model is told of the day and the repository: in the system prompt as they were when the session began, and
with a later prompt if they have changed.

The system prompt stays as it was: with every change there, the provider would have to read the whole conversation anew.
A note stays with its prompt for all later turns, word for word.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from longboat.context.git_head import read_head
from longboat.runtime.workspace.git_changes import changed_files
from longboat.tools.files.paths import printable

MAX_NAMED = 20
"""Files that a note names."""
STATUS_S = 0.5
"""How long git may look for uncommitted changes before the note goes without them."""


async def describe(directory: Path, environ: Mapping[str, str], told: Sequence[str]) -> str | None:
    """What to tell; None if the last of what the model still knows says the same."""
    head = await asyncio.to_thread(read_head, directory)
    git = "no repository" if head is None else f"branch {head.name}" if head.is_branch else f"detached at {head.name}"
    brief = f"Date: {date.today().isoformat()}\nGit: {printable(git)}"
    if told:
        return None if told[-1].split("\nUncommitted", 1)[0] == brief else brief
    changed = await changed_files(directory, environ, timeout_s=STATUS_S) if head is not None else ()
    return f"{brief}\nUncommitted changes: {_listed(changed)}" if changed else brief


def _listed(paths: Sequence[str]) -> str:
    named = [printable(path) for path in paths[:MAX_NAMED]]
    return ", ".join([*named, f"and {len(paths) - MAX_NAMED} more"] if len(paths) > MAX_NAMED else named)
