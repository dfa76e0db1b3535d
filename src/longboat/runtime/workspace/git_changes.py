"""The files with uncommitted changes in a git repository."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from longboat.context.process import run
from longboat.tools.process.git_config import find_doubt

_STATUS = (
    "git", "-c", "core.fsmonitor=false", "status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules",
)  # fmt: skip


async def changed_files(directory: Path, environ: Mapping[str, str], *, timeout_s: float) -> tuple[str, ...]:
    """Their paths, relative to the repository's root. None if git takes too long, or cannot be asked because the
    repository's configuration could make it run a program."""
    if await asyncio.to_thread(find_doubt, directory):
        return ()
    try:
        done = await run(
            _STATUS, directory=directory, environ={**environ, "GIT_OPTIONAL_LOCKS": "0"}, timeout_s=timeout_s
        )
    except OSError:  # no git here
        return ()
    if done.code != 0:
        return ()
    fields = iter(done.stdout.decode(errors="replace").split("\0"))
    paths: list[str] = []
    for field in fields:
        if field:
            paths.append(field[3:])
            if field[0] in "RC":
                next(fields, None)  # the name before
    return tuple(paths)
