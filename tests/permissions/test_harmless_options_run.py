"""Commands that only look, run for real with each of their harmless options (A2): they write nothing and run nothing.

Programs that one of them might start (a pager, gpg, a compressor) are stand-ins that leave a mark.
"""

import os
import subprocess
from pathlib import Path

import pytest
from program_help import installed
from test_option_tables import TABLES, dashed, with_optional_value, with_value, without_value

from longboat.permissions.shell.harmless import FIND_BARE, FIND_VALUED, harmless_paths
from longboat.permissions.shell.script import Command, Word

WAITING = {("tail", "f"), ("tail", "F"), ("tail", "follow"), ("tail", "retry")}
STARTED = """awk bash bzip2 cat compress dash diff ed emacs find gawk gpg gpg2 gpgsm gunzip gzip less lz4 man more nano
pager pr rm sed sh sort ssh ssh-keygen tar tee touch tree uncompress unxz vi vim xdg-open xz zcat zstd""".split()  # noqa: SIM905
EVERY_PLACEHOLDER = (
    "%H%h%T%P%an%cI%d%D%e%+s%-b% B%f%N%gD%m%C(red)%Creset%<(5)%s%>|(9)%h%w(5)%x41%n%%(trailers)%(decorate)"
)

SIGNED = """tree {tree}
author x <x@y> 1700000000 +0000
committer x <x@y> 1700000000 +0000
gpgsig -----BEGIN PGP SIGNATURE-----
\x20
 aGVsbG8=
 -----END PGP SIGNATURE-----

signed
"""


class Bench:
    """A directory with a repository in it, and nothing else to run than stand-ins."""

    def __init__(self, place: Path) -> None:
        self.mark = place / "mark"
        self._stand_ins = place / "bin"
        self._stand_ins.mkdir()
        for name in STARTED:
            path = self._stand_ins / name
            path.write_text(f"#!/bin/sh\n: > {self.mark}\n")
            path.chmod(0o755)
        self.directory = place / "repository"
        self.directory.mkdir()
        for name in ("1", "a.txt"):
            (self.directory / name).write_text("1\n2\n")
        git = [installed("git"), "-c", "user.name=x", "-c", "user.email=x@y"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "1"]):
            subprocess.run([*git, *words], cwd=self.directory, check=True)
        tree = self._git("rev-parse", "HEAD^{tree}")
        commit = self._git("hash-object", "-t", "commit", "-w", "--stdin", given=SIGNED.format(tree=tree))
        self._git("reset", "-q", "--hard", commit)

    def _git(self, *words: str, given: str = "") -> str:
        done = subprocess.run(
            [installed("git"), *words], cwd=self.directory, input=given, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def run(self, argv: list[str]) -> None:
        environ = {"PATH": str(self._stand_ins), "HOME": "/nonexistent", "GIT_OPTIONAL_LOCKS": "0", "TMPDIR": "/tmp"}
        subprocess.run(
            [installed(argv[0]), *argv[1:]],
            cwd=self.directory,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )

    def traces(self) -> tuple[bool, dict[str, tuple[int, bytes]]]:
        """Whether a stand-in ran, and what is on the disk. The time of the last write too: `sort -o 1 1` may write what
        is there already."""
        paths = [Path(at, name) for at, _, names in os.walk(self.directory) for name in names]
        files = {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}
        return self.mark.exists(), files


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


def forms(command: str, operands: tuple[str, ...]) -> list[list[str]]:
    options = TABLES[command]
    base = command.split()
    alone = [*without_value(options), *with_optional_value(options)]
    found = [[*base, dashed(name), *operands] for name in alone if (command, name) not in WAITING]
    for name in with_value(options):
        found.append([*base, dashed(name), "1", *operands])
    if command in ("git log", "git show"):
        found.append([*base, f"--format={EVERY_PLACEHOLDER}", *operands])
    return found


@pytest.mark.parametrize("command", sorted(set(TABLES) - {"type", "which"}))
def test_no_harmless_option_writes_or_runs_anything(command: str, bench: Bench) -> None:
    operands = () if TABLES[command].max_operands == 0 or command == "date" else ("1",)
    if command in ("git log", "git show", "git diff", "git rev-list", "git describe", "git cat-file", "git ls-tree"):
        operands = ("HEAD",)
    before = bench.traces()
    for argv in forms(command, operands):
        assert harmless_paths(Command(tuple(map(Word, argv)))) is not None, argv
        bench.run(argv)

    assert bench.traces() == before


def test_no_harmless_predicate_of_find_writes_or_runs_anything(bench: Bench) -> None:
    before = bench.traces()
    for each in FIND_VALUED | FIND_BARE:
        bench.run(["find", ".", each, *(["1"] if each in FIND_VALUED else [])])

    assert bench.traces() == before


@pytest.mark.parametrize(
    "argv",
    [
        ["git", "log", "--show-signature"],
        ["git", "log", "--format=%+G?"],
        ["git", "log", "--format=% %G?"],
        ["git", "log", "--output=written"],
        ["git", "log", "-L", "--", "--output=written"],
        ["rg", "-e", "--", "--pre=cat", "."],
        ["rg", "-z", "1", "x.gz"],
        ["sort", "-o", "written", "1"],
        ["find", ".", "-name", "1", "-fprint", "written"],
    ],
)
def test_the_bench_notices_what_writes_or_runs_d3(argv: list[str], tmp_path: Path) -> None:
    """And none of these counts as a command that only looks."""
    bench = Bench(tmp_path)
    (bench.directory / "x.gz").write_bytes(b"\x1f\x8b")
    (bench.directory / "a.txt").write_text("other\n")
    before = bench.traces()
    bench.run(argv)

    assert bench.traces() != before
    assert harmless_paths(Command(tuple(map(Word, argv)))) is None
