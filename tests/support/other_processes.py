"""What other processes do: nobody reports it, so these look until it is so."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path


async def wait_until(condition: Callable[[], object], *, within_s: float = 60) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def wait_until_gone(pids: Iterable[int], *, within_s: float = 60) -> None:
    left = list(pids)
    await wait_until(lambda: not any(map(is_alive, left)), within_s=within_s)


async def wait_until_replacing(directory: Path) -> None:
    """A tool has written the new content beside the file, and waits for the lock, which the test holds."""
    await wait_until(lambda: list(directory.glob(".longboat-*")))


def is_alive(pid: int) -> bool:
    """A zombie is not."""
    return process_state(pid) not in ("", "Z", "X")


def is_stopped(pid: int) -> bool:
    """By SIGSTOP."""
    return process_state(pid) == "T"


def process_state(pid: int) -> str:
    """The letter that /proc has for it; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
