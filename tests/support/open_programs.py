"""What starts the programs of a workspace, for tests of those who need it."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from longboat.tools.process.jobs import Jobs
from longboat.tools.process.programs import Programs


@asynccontextmanager
async def open_programs(directory: Path) -> AsyncIterator[Programs]:
    """All of them are ended at the end, and no one else's. Nothing is written to `directory`."""
    jobs = Jobs(directory / f"scratch-{secrets.token_hex(4)}")
    try:
        yield jobs.programs
    finally:
        await jobs.aclose()
