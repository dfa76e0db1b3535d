"""What a client shows before the first prompt: the git branch, and three things to try."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from longboat.context.git_head import read_head
from longboat.context.suggestions import suggest
from longboat.runtime.workspace.git_changes import changed_files
from longboat.wire.listings import Welcome
from longboat.wire.plain import plain_line

STATUS_S = 2.0
"""How long git may look for changes. A repository that is too large for that gets no suggestion to review them."""


async def welcome(directory: Path, environ: Mapping[str, str]) -> Welcome:
    head = await asyncio.to_thread(read_head, directory)
    changes = head is not None and await changed_files(directory, environ, timeout_s=STATUS_S) != ()
    return Welcome(
        branch=None if head is None else plain_line(head.name),
        suggestions=await asyncio.to_thread(suggest, directory, has_changes=changes),
    )
