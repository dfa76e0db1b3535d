"""Window, threads and memory of a local model: from its file and the machine, unless the configuration sets them."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from longboat.models.local.fit import MAX_WINDOW, SLOTS, Machine, Overrides, fit, this_machine
from longboat.models.local.gguf import ModelFile

GB = 1_000_000_000
FILE = ModelFile(
    architecture="llama", name="m", size=5 * GB, trained_window=131_072, kv_bytes=131_072, has_template=True
)
LARGE = Machine(processors=16, memory=64 * GB, available=60 * GB)


def test_a_large_machine_gets_a_window_that_a_processor_can_read() -> None:
    assert fit(FILE, Overrides(), LARGE).context_window == MAX_WINDOW
    short = replace(FILE, trained_window=8_192)
    assert fit(short, Overrides(), LARGE).context_window == 8_192


def test_a_small_model_gets_a_small_window_unless_it_is_asked_for_more() -> None:
    small = replace(FILE, size=GB)
    assert fit(small, Overrides(), LARGE).context_window == 12_288
    assert fit(small, Overrides(context_window=30_000), LARGE).context_window == 30_000


@pytest.mark.parametrize(("memory", "window"), [(16, 6_144), (12, 2_048), (4, 2_048)])
def test_the_window_shrinks_with_the_memory(memory: int, window: int) -> None:
    found = fit(FILE, Overrides(), replace(LARGE, memory=memory * GB))
    assert found.context_window == window


def test_where_nobody_knows_the_memory_the_model_decides() -> None:
    machine = Machine(processors=1, memory=None, available=None)
    assert fit(replace(FILE, trained_window=20_000), Overrides(), machine).context_window == 20_000
    assert fit(replace(FILE, trained_window=None), Overrides(), machine).context_window == 4_096


@pytest.mark.parametrize(("processors", "threads"), [(1, 1), (2, 1), (8, 4), (64, 8)])
def test_half_the_processors_work_on_it(processors: int, threads: int) -> None:
    assert fit(FILE, Overrides(), replace(LARGE, processors=processors)).threads == threads


def test_the_configuration_overrides_it_all() -> None:
    overrides = Overrides(context_window=100_000, max_output_tokens=20_000, threads=12)
    found = fit(FILE, overrides, LARGE)
    assert (found.context_window, found.max_output_tokens, found.threads) == (100_000, 20_000, 12)


def test_an_answer_leaves_half_the_window_to_the_conversation() -> None:
    assert fit(FILE, Overrides(context_window=4_096), LARGE).max_output_tokens == 2_048
    assert fit(FILE, Overrides(context_window=4_096, max_output_tokens=300), LARGE).max_output_tokens == 300


def test_the_memory_counts_weights_and_the_conversation_of_every_slot() -> None:
    small, large = (fit(FILE, Overrides(context_window=window), LARGE).memory for window in (1_000, 2_000))
    assert small > FILE.size
    assert large - small == 1_000 * FILE.kv_bytes * SLOTS


# The machine


def machine(root: Path, files: dict[str, str]) -> Machine:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return this_machine(root)


MEMINFO = {"proc/meminfo": "MemTotal:       16000 kB\nMemFree:  100 kB\nMemAvailable:   9000 kB\nHugePages_Total: 0\n"}


def test_the_system_tells_its_memory(tmp_path: Path) -> None:
    found = machine(tmp_path, MEMINFO)
    assert (found.memory, found.available) == (16_000 * 1024, 9_000 * 1024)
    assert found.processors == len(os.sched_getaffinity(0))


def test_a_container_has_what_it_was_given_and_cached_files_give_way(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/"
    limits = {
        f"{group}memory.max": "8000000\n",
        f"{group}memory.current": "5000000\n",
        f"{group}memory.stat": "anon 1000000\nfile 4000000\nfile_mapped 1\n",
        f"{group}cpu.max": "100000 100000\n",
    }
    assert machine(tmp_path, MEMINFO | limits) == Machine(processors=1, memory=8_000_000, available=7_000_000)


def test_an_old_container_too(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/memory/memory."
    limits = {
        f"{group}limit_in_bytes": "8000000\n",
        f"{group}usage_in_bytes": "5000000\n",
        f"{group}stat": "cache 1\ntotal_cache 4000000\n",
    }
    found = machine(tmp_path, MEMINFO | limits)
    assert (found.memory, found.available) == (8_000_000, 7_000_000)


@pytest.mark.parametrize("limit", ["max", "9223372036854771712"])
def test_a_container_without_a_limit_has_the_machine(tmp_path: Path, limit: str) -> None:
    limits = {"sys/fs/cgroup/memory.max": limit, "sys/fs/cgroup/cpu.max": "max 100000"}
    assert machine(tmp_path, MEMINFO | limits).memory == 16_000 * 1024
