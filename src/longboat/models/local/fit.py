"""How a local model fits this machine: its window, its threads, the memory that it needs.

Owns these numbers; the configuration overrides them. Must not know how a model is run. In a container, its limits for
memory and processors apply, not the host's.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from longboat.models.local.gguf import ModelFile

SLOTS = 2
"""How many requests a model answers at a time: that of a turn, and that of a title or a sub-agent. Each slot keeps the
last prompt it read, so the next turn of the same session evaluates only what is new."""
MAX_WINDOW = 32_768
"""The largest window that Longboat chooses on its own: reading more takes a processor too long."""
SMALL_MODEL = 4_000_000_000
"""In bytes of the file. A smaller model has fewer than about 7 billion parameters."""
SMALL_MODEL_WINDOW = 12_288
"""The window that Longboat chooses for these. Models with a small window get few tools and a short system prompt, which
such a model understands better and reads in a quarter of the time."""
MIN_WINDOW = 2_048
MAX_THREADS = 8
MAX_OUTPUT_TOKENS = 8_192

_SHARE = 0.5
"""Share of the memory to use: the rest is for other programs, such as compilers and tests."""
_BUFFERS = 400_000_000
"""For llama.cpp's working memory, in addition to weights and conversations."""
_UNKNOWN_WINDOW = 4_096
_CGROUP = "sys/fs/cgroup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The resources that we may use. None: the system does not say."""

    processors: int
    memory: int | None
    available: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Settings of the configuration; None leaves the choice to us."""

    context_window: int | None = None
    max_output_tokens: int | None = None
    threads: int | None = None


NO_OVERRIDES = Overrides()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    context_window: int
    """Of each slot."""
    max_output_tokens: int
    threads: int
    memory: int
    """The memory that the process needs, in bytes: an upper estimate."""
    old_prompts: int
    """Additional memory for prompts that lost their slot, in bytes."""


def fit(file: ModelFile, overrides: Overrides, machine: Machine) -> Fit:
    window = overrides.context_window or _window(file, machine)
    return Fit(
        context_window=window,
        max_output_tokens=min(overrides.max_output_tokens or MAX_OUTPUT_TOKENS, window // 2 or 1),
        threads=overrides.threads or _threads(machine),
        memory=file.size + _BUFFERS + file.kv_bytes * window * SLOTS,
        old_prompts=file.kv_bytes * window,
    )


def this_machine(root: Path = Path("/")) -> Machine:
    """`root` is where the system describes itself, in `proc` and `sys`."""
    total, available = _meminfo(root / "proc/meminfo")
    limit, left = _container_memory(root / _CGROUP)
    if limit is not None and (total is None or limit < total):
        total, available = limit, left if available is None else min(left, available)
    return Machine(processors=_processors(root / _CGROUP), memory=total, available=available)


def _window(file: ModelFile, machine: Machine) -> int:
    """The window the model was trained for, limited by the memory, in steps of 1,024."""
    usual = SMALL_MODEL_WINDOW if file.size < SMALL_MODEL else MAX_WINDOW
    most = min(file.trained_window or _UNKNOWN_WINDOW, usual)
    if machine.memory is None:
        return most
    left = machine.memory * _SHARE - file.size - _BUFFERS
    affordable = int(left / (file.kv_bytes * (SLOTS + 1))) // 1_024 * 1_024
    return max(min(most, affordable), min(most, MIN_WINDOW))


def _threads(machine: Machine) -> int:
    """Half the processors. The threads wait for each other at every layer: with one thread per processor, one busy
    neighbor makes the model ten times slower (measured on two: 50 tokens/s with one thread, 8 with two)."""
    return max(1, min(MAX_THREADS, machine.processors // 2))


def _processors(cgroup: Path) -> int:
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = _text(cgroup / "cpu.max").partition(" ")
    if quota.isdigit() and period.isdigit() and int(period):
        return max(1, min(found, int(quota) // int(period)))
    return found


def _meminfo(file: Path) -> tuple[int | None, int | None]:
    """Total and free memory, in bytes."""
    try:
        lines = file.read_text().splitlines()
    except OSError:  # not Linux
        return _physical(), None
    fields = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines) if rest}
    return fields.get("MemTotal"), fields.get("MemAvailable")


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _container_memory(cgroup: Path) -> tuple[int | None, int]:
    """A container's memory limit (None if there is none), and what is left of it. Cached files do not count, because
    the system can drop them."""
    for limit_file, used_file, cached in (
        ("memory.max", "memory.current", "file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_cache"),
    ):
        if (limit := _number(cgroup / limit_file)) is not None:
            stat = (cgroup / used_file).with_name("memory.stat")
            used = (_number(cgroup / used_file) or 0) - _field(stat, cached)
            return limit, max(limit - max(used, 0), 0)
    return None, 0


def _field(file: Path, name: str) -> int:
    return next((int(line.split()[1]) for line in _text(file).splitlines() if line.startswith(f"{name} ")), 0)


def _number(file: Path) -> int | None:
    line = _text(file)
    return int(line) if line.isdigit() else None


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
