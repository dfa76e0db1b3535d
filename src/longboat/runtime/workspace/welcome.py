"""What a client shows before the first prompt: the git branch, and three things to try."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from longboat.context.git_head import read_head
from longboat.context.process import run
from longboat.context.suggestions import suggest
from longboat.tools.process.git_config import find_doubt
from longboat.wire.listings import Welcome
from longboat.wire.plain import plain_line

STATUS_S = 2.0
"""How long git may look for changes. A repository that is too large for that gets no suggestion to review them."""
_STATUS = ("git", "-c", "core.fsmonitor=false", "status", "--porcelain", "--untracked-files=no", "--ignore-submodules")


async def welcome(directory: Path, environ: Mapping[str, str]) -> Welcome:
    head = await asyncio.to_thread(read_head, directory)
    changes = head is not None and await _has_changes(directory, environ)
    return Welcome(
        branch=None if head is None else plain_line(head.name),
        suggestions=await asyncio.to_thread(suggest, directory, has_changes=changes),
    )


async def _has_changes(directory: Path, environ: Mapping[str, str]) -> bool:
    """Git is asked only where the repository's configuration cannot make it run a program."""
    if await asyncio.to_thread(find_doubt, directory):
        return False
    try:
        done = await run(
            _STATUS, directory=directory, environ={**environ, "GIT_OPTIONAL_LOCKS": "0"}, timeout_s=STATUS_S
        )
    except OSError:  # no git here
        return False
    return done.code == 0 and bool(done.stdout.strip())
