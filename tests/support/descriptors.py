"""File descriptors as a scarce good."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def none_left() -> Iterator[None]:
    """Within, whatever wants a new file descriptor gets EMFILE."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def open_files() -> list[str]:
    """What this process has open, by name."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the one by which they were listed
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return found
