"""One round: some hundred texts and command lines from one seed, judged, and run if they are allowed.

Owns the loop and what a finding is reported as. Rounds do not depend on each other, so that they may run in any order
and on several cores, and one of them can be repeated alone.
"""

import os
import shlex
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from fuzz.comparison import LongboatReader, Reader, Surprise, Surroundings, surprises_of_program, surprises_of_text
from fuzz.minimising import Given, minimise
from fuzz.mutation import Source
from fuzz.options import ArgvSource, KnownOptions, Program, sweep
from fuzz.sandbox import Observed, Sandbox
from fuzz.workspace import Workspace

ROUND = 1_000
"""So many texts have one seed."""
ARGV_SHARE = 0.15
"""The rest are texts for bash."""
TIME_LIMIT_S = 0.5
"""For one text. Where it is cut off, what it did until then counts."""
MAX_ALIKE = 3
"""So many findings that probably have one cause are minimised and told; others are counted."""

_LOGINS = ("bash -lc", "sh -lc", "env - bash -lc", "env - sh -lc")


@dataclass(frozen=True, slots=True)
class Finding:
    origin: str
    """How to make it again."""
    text: str
    minimised: str
    surprises: tuple[str, ...]

    def __str__(self) -> str:
        told = "".join(f"\n    {each}" for each in self.surprises[:4])
        return (
            f"{self.minimised!r}\n    is allowed without approval, and{told}\n    found in {self.origin}: {self.text!r}"
        )


@dataclass(slots=True)
class Tally:
    origin: str = ""
    texts: int = 0
    allowed: int = 0
    executed: int = 0
    cut_off: int = 0
    surprising: int = 0
    """How many of those that were run did something that the reader did not say."""
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        self.texts += other.texts
        self.allowed += other.allowed
        self.executed += other.executed
        self.cut_off += other.cut_off
        self.surprising += other.surprising
        known = {each.minimised: each for each in self.findings}
        self.findings = list((known | {each.minimised: each for each in other.findings} | known).values())


class Fuzzer:
    """A reader under test, and the place where what it allows is run."""

    def __init__(self, workspace: Workspace, sandbox: Sandbox, reader: Reader | None = None) -> None:
        self._sandbox = sandbox
        self._directory = workspace.directory
        self._reader = reader or LongboatReader(str(workspace.directory))
        self._stubbed = workspace.environ_with_stubs()
        self._plain = workspace.environ(os.environ["PATH"])
        self._bash = shutil.which("bash") or "/bin/bash"
        self._alike = Counter[str]()
        self._options = KnownOptions(self._allows_argv)
        at_login = [each for start in _LOGINS for each in self._run_text(f"{start} ls").executed]
        self._around = Surroundings(
            environ=self._stubbed,
            run_at_login=frozenset(each.argv for each in at_login),
            set_at_login=frozenset(pair for each in at_login for pair in each.environ.items()),
        )

    def run_round(self, seed: int, number: int, size: int = ROUND) -> Tally:
        chance = Random(f"{seed}/{number}")
        texts, lines = Source(chance), ArgvSource(chance, self._options)
        tally, done = Tally(origin=f"seed {seed}, round {number}"), set[Given]()
        while tally.texts < size:
            given = lines.argv() if chance.random() < ARGV_SHARE else texts.text()
            if self._try(given, tally, done) and isinstance(given, str):
                texts.keep(given)
        return tally

    def run_sweep(self, program: Program) -> Tally:
        """Every option of a program that is allowed."""
        tally, done = Tally(origin="the sweep of all options"), set[Given]()
        for argv in sweep(program, self._options):
            self._try(argv, tally, done)
        return tally

    def _try(self, given: Given, tally: Tally, done: set[Given]) -> bool:
        """Whether it is allowed; then it was run, unless that was done before."""
        tally.texts += 1
        if not self._allows(given):
            return False
        tally.allowed += 1
        if given not in done:
            done.add(given)
            tally.executed += 1
            surprises, cut_off = self._surprises(given)
            tally.cut_off += cut_off
            if surprises:
                self._report(given, surprises, tally)
        return True

    def _report(self, given: Given, surprises: tuple[Surprise, ...], tally: Tally) -> None:
        tally.surprising += 1
        likeness = surprises[0].likeness if isinstance(given, str) else f"{given[:2]} {surprises[0].likeness}"
        if self._alike[likeness] < MAX_ALIKE:
            self._alike[likeness] += 1
            tally.findings.append(self._finding(given, surprises, tally.origin))

    def check(self, given: Given) -> tuple[str, ...]:
        """What is wrong with one text or command line; nothing if it is asked."""
        return tuple(map(str, self._surprises(given)[0])) if self._allows(given) else ()

    def _allows(self, given: Given) -> bool:
        if isinstance(given, str):
            return "\0" not in given and self._reader.allows(given)
        return bool(given) and self._allows_argv(given)

    def _allows_argv(self, argv: Sequence[str]) -> bool:
        return self._reader.allows(shlex.join(argv))

    def _surprises(self, given: Given) -> tuple[tuple[Surprise, ...], bool]:
        if isinstance(given, str):
            seen = self._run_text(given)
            found = surprises_of_text(self._reader.parse(given), seen, self._around)
        else:
            path = shutil.which(given[0]) or given[0]
            seen = self._sandbox.run(path, given, self._plain, self._directory)
            found = surprises_of_program(seen)
        return tuple(dict.fromkeys(found)), seen.cut_off

    def _run_text(self, text: str) -> Observed:
        argv = ("bash", "--norc", "--noprofile", "-c", text)
        return self._sandbox.run(self._bash, argv, self._stubbed, self._directory)

    def _finding(self, given: Given, surprises: tuple[Surprise, ...], origin: str) -> Finding:
        def shows_the_same(shorter: Given) -> bool:
            if not shorter or not self._allows(shorter):
                return False
            return any(each.likeness == surprises[0].likeness for each in self._surprises(shorter)[0])

        shortest = minimise(given, shows_the_same)
        return Finding(
            origin=origin,
            text=_written(given),
            minimised=_written(shortest),
            surprises=tuple(map(str, self._surprises(shortest)[0] or surprises)),
        )


def _written(given: Given) -> str:
    return given if isinstance(given, str) else shlex.join(given)


def sandbox_of(workspace: Workspace) -> Sandbox:
    return Sandbox(workspace.temp, readable=workspace.root, time_limit_s=TIME_LIMIT_S)
