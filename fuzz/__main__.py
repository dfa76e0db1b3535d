"""`python -m fuzz [--seed N] [--texts N] [--jobs N] [--check TEXT]`: exit status 1 if there is a finding."""

import argparse
import multiprocessing
import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzz.options import Program, programs
from fuzz.rounds import ROUND, Fuzzer, Tally, sandbox_of
from fuzz.sandbox import unavailable
from fuzz.workspace import make_workspace

ENOUGH = 30
"""Stop after this number of findings, which probably have different causes."""


def main() -> int:
    wanted = _arguments()
    if why := unavailable():
        print(f"fuzz: {why}", file=sys.stderr)
        return 2
    start = time.monotonic()
    tally = Tally()
    with TemporaryDirectory(prefix="longboat-fuzz-") as place:
        if wanted.check:
            return _check(Path(place), wanted.check)
        for each in _rounds(Path(place), wanted):
            known = len(tally.findings)
            tally.add(each)
            for finding in tally.findings[known:]:
                print(f"\n{finding}", flush=True)
            _progress(tally, wanted.texts)
            if len(tally.findings) >= ENOUGH:
                break
    spent_s = time.monotonic() - start
    print(
        f"\n{tally.texts:,} texts in {spent_s:,.0f} s ({tally.texts / spent_s:,.0f} texts/s), seed {wanted.seed}: "
        f"{tally.allowed:,} allowed without approval, {tally.executed:,} run ({tally.cut_off:,} cut off), "
        f"{tally.surprising} findings"
    )
    return 1 if tally.surprising else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Compare the shell command parser with bash.")
    parser.add_argument("--seed", type=int, default=0, help="the same seed generates the same texts")
    parser.add_argument("--texts", type=int, default=30_000, help="number of texts to generate")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--check", metavar="TEXT", help="check only this text, and run it if the parser allows it")
    return parser.parse_args()


def _check(place: Path, text: str) -> int:
    workspace = make_workspace(_made(place))
    with sandbox_of(workspace) as sandbox:
        fuzzer = Fuzzer(workspace, sandbox)
        found = fuzzer.check(text)
        with suppress(ValueError):  # It has quotes that only a shell understands.
            found = found or fuzzer.check(tuple(shlex.split(text)))
    print("\n".join(found) or "no finding")
    return 1 if found else 0


def _made(place: Path) -> Path:
    root = place / str(os.getpid())
    root.mkdir()
    return root


def _rounds(place: Path, wanted: argparse.Namespace) -> Iterator[Tally]:
    sizes = [min(ROUND, wanted.texts - done) for done in range(0, wanted.texts, ROUND)]
    tasks = [(wanted.seed, number, size) for number, size in enumerate(sizes)]
    sweeps = programs()
    with multiprocessing.get_context("fork").Pool(wanted.jobs, _start_worker, (place,)) as pool:
        yield from pool.imap_unordered(_run_sweep, sweeps)
        yield from pool.imap_unordered(_run_round, tasks)


_worker: Fuzzer
"""Of this process."""


def _start_worker(place: Path) -> None:
    global _worker  # noqa: PLW0603 - a pool gives its workers no other place
    workspace = make_workspace(_made(place))
    _worker = Fuzzer(workspace, ExitStack().enter_context(sandbox_of(workspace)))


def _run_sweep(program: Program) -> Tally:
    return _worker.run_sweep(program)


def _run_round(task: tuple[int, int, int]) -> Tally:
    return _worker.run_round(*task)


def _progress(tally: Tally, texts: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{tally.texts:,} of {texts:,}, {tally.surprising} findings", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
