"""Results as files: one for each commit, model and label, small enough to be kept in the repository.

Owns `evals/results/`. Must not know how they were measured or how they are shown.
"""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from evals.trial import Trial

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).with_name("results")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the evaluation."""

    commit: str
    """Of Longboat; with `+` if files were changed since."""
    model: str
    label: str = ""
    """What else was different, such as "steps"."""
    measured_at: str
    machine: str
    jobs: int
    limit_s: float
    trials: tuple[Trial, ...]

    @property
    def name(self) -> str:
        words = (self.commit, self.model, self.label)
        return "-".join(re.sub(r"[^\w.+]+", "-", word) for word in words if word)


def new_result(
    trials: Sequence[Trial], *, commit: str, model: str, label: str, jobs: int, limit_s: float, load: float
) -> Result:
    """`commit` and `load` are those from before the first trial."""
    processors = f"{os.cpu_count()} processors, load average {load:.1f} before the start"
    return Result(
        commit=commit,
        model=model,
        label=label,
        measured_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}",
        machine=f"{platform.system()} {platform.machine()}, {processors}",
        jobs=jobs,
        limit_s=limit_s,
        trials=tuple(trials),
    )


def current_commit() -> str:
    short = _git("rev-parse", "--short=8", "HEAD")
    changed = _git("status", "--porcelain", "--", "src", "evals/*.py", "evals/tasks")
    return f"{short or 'unknown'}{'+' if changed else ''}"


def save(result: Result, folder: Path = FOLDER) -> Path:
    """One line for each trial, so that changes are easy to read."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{result.name}.json"
    head = msgspec.structs.replace(result, trials=())
    trials = b",\n".join(b"  " + msgspec.json.encode(trial) for trial in result.trials)
    file.write_bytes(msgspec.json.encode(head).replace(b'"trials":[]', b'"trials":[\n%b\n]' % trials) + b"\n")
    return file


def load(file: Path) -> Result:
    return msgspec.json.decode(file.read_bytes(), type=Result)


def find(word: str, folder: Path = FOLDER) -> list[Result]:
    """The results that a person means: a file, or the beginning of a commit or of a file's name."""
    if Path(word).is_file():
        return [load(Path(word))]
    names = [word]
    if full := _git("rev-parse", "--quiet", "--verify", "--short=8", f"{word}^{{commit}}"):
        names.append(full)
    fitting = (file for file in sorted(folder.glob("*.json")) if file.name.startswith(tuple(names)))
    return [load(file) for file in fitting]


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
