"""`make fuzz`, shortly: the reader of shell commands against bash and real programs; and that the fuzzer can fail."""

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from fuzz.comparison import LongboatReader, Reader
from fuzz.minimising import minimise
from fuzz.mutation import Source
from fuzz.options import programs
from fuzz.rounds import Fuzzer, sandbox_of
from fuzz.sandbox import Changed, Sandbox, _Memory, unavailable
from fuzz.workspace import Workspace, make_workspace

from longboat.permissions.shell.script import Script, parse
from parts import how, missing

WHY_NOT = unavailable()
pytestmark = [
    pytest.mark.skipif(bool(WHY_NOT), reason=f"programs cannot be watched here: {WHY_NOT}"),
    *(pytest.mark.skipif(missing(name), reason=how(name)) for name in ("bash", "git", "rg")),
]
SEED = 10


class Gullible:
    """A reader that calls everything harmless."""

    def allows(self, text: str) -> bool:
        return True

    def parse(self, text: str) -> Script:
        return parse(text)


class CommentBlind:
    """A reader that takes every `#` for the beginning of a comment."""

    def __init__(self, directory: Path) -> None:
        self._real = LongboatReader(str(directory))

    def allows(self, text: str) -> bool:
        return self._real.allows(text.partition("#")[0])

    def parse(self, text: str) -> Script:
        return parse(text.partition("#")[0])


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_workspace(tmp_path_factory.mktemp("fuzz"))


@pytest.fixture(scope="module")
def sandbox(workspace: Workspace) -> Iterator[Sandbox]:
    with sandbox_of(workspace) as sandbox:
        yield sandbox


def fuzzer(workspace: Workspace, sandbox: Sandbox, reader: Reader | None = None) -> Fuzzer:
    return Fuzzer(workspace, sandbox, reader)


def test_bash_runs_nothing_beside_what_the_reader_said(workspace: Workspace, sandbox: Sandbox) -> None:
    tally = fuzzer(workspace, sandbox).run_round(SEED, 0, 600)

    assert tally.executed > 100
    assert [str(each) for each in tally.findings] == []


@pytest.mark.parametrize("name", ["rg", "sort", "find"])
def test_no_option_that_is_allowed_runs_or_writes_anything(name: str, workspace: Workspace, sandbox: Sandbox) -> None:
    (program,) = (each for each in programs() if each.start == (name,))
    tally = fuzzer(workspace, sandbox).run_sweep(program)

    assert tally.executed > 20
    assert [str(each) for each in tally.findings] == []


@pytest.mark.parametrize(
    "known",
    [
        pytest.param("BASH_ENV='$(touch p)' bash -c ''", id="D1"),
        pytest.param("LD_PRELOAD=./x.so env sh -c 'x=1'", id="D1 through a wrapper"),
        pytest.param("echo \"$(cat <<'EOF'\nhi\nEOF)$(touch p; git push)\nEOF\n)\"", id="D2"),
        pytest.param(("rg", "-e", "--", "--pre=./evil.sh", "src"), id="D3 rg"),
        pytest.param(("git", "log", "-L", "--", "--output=a"), id="D3 git"),
        pytest.param(("git", "log", "--format=%+G?"), id="D14"),
    ],
)
def test_the_holes_of_the_review_would_be_found(
    known: str | tuple[str, ...], workspace: Workspace, sandbox: Sandbox
) -> None:
    """Allowed by a reader that allows everything, each of them shows itself."""
    assert fuzzer(workspace, sandbox, Gullible()).check(known)


def test_a_reader_that_allows_everything_is_found_out_by_chance(workspace: Workspace, sandbox: Sandbox) -> None:
    tally = fuzzer(workspace, sandbox, Gullible()).run_round(SEED, 0, 60)

    assert tally.surprising > 5
    assert any("runs: " in str(each) for each in tally.findings)


def test_a_reader_that_ends_at_any_hash_is_found_out_and_the_text_is_short(
    workspace: Workspace, sandbox: Sandbox
) -> None:
    tally = fuzzer(workspace, sandbox, CommentBlind(workspace.directory)).run_round(SEED, 0, 600)

    assert tally.findings
    assert min(len(each.minimised) for each in tally.findings) < 40


def test_whatever_a_text_tries_nothing_changes_and_everything_is_noted(workspace: Workspace, sandbox: Sandbox) -> None:
    text = "touch new; echo x > a; mkdir d; rm b; mv a c; ln -s a l; chmod 0 a; cat < /dev/tcp/127.0.0.1/9; (touch z &)"
    before = {path: path.stat().st_mtime_ns for path in workspace.directory.rglob("*")}
    environ = {"PATH": "/usr/bin:/bin"}

    seen = sandbox.run("/bin/bash", ("bash", "-c", text), environ, workspace.directory)

    assert {path: path.stat().st_mtime_ns for path in workspace.directory.rglob("*")} == before
    assert {each.target for each in seen.changed} >= {"new", "a", "d", "b", "z", "family 2"}
    assert Changed("openat", "a") in seen.changed
    names = [each.argv[0] for each in seen.executed]
    assert names[0] == "bash"
    assert sorted(names[1:]) == sorted(["touch", "mkdir", "rm", "mv", "ln", "chmod", "touch"])
    assert {each.environ["PATH"] for each in seen.executed} == {environ["PATH"]}


def test_of_a_process_that_was_killed_in_its_call_nothing_is_noted(
    workspace: Workspace, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memory is gone between the look at it and the answer: what was read is not what it asked for."""
    open_memory = _Memory.__init__

    def open_and_kill(self: _Memory, pid: int) -> None:
        open_memory(self, pid)
        process = os.pidfd_open(pid)
        signal.pidfd_send_signal(process, signal.SIGKILL)
        select.select([process], [], [])
        os.close(process)

    monkeypatch.setattr(_Memory, "__init__", open_and_kill)
    seen = sandbox.run("/bin/touch", ("touch", "new"), {"PATH": "/usr/bin:/bin"}, workspace.directory)
    assert (seen.executed, seen.changed) == ([], [])


def test_what_does_not_end_is_cut_off(workspace: Workspace, sandbox: Sandbox) -> None:
    for text in ("while :; do :; done", "while :; do true | ls; done", "setsid sleep 100 & sleep 100"):
        seen = sandbox.run("/bin/bash", ("bash", "-c", text), {"PATH": "/usr/bin:/bin"}, workspace.directory)
        assert seen.cut_off


def test_the_same_seed_makes_the_same_texts() -> None:
    one, other = (Source(Random("1/2")) for _ in range(2))
    texts = [one.text() for _ in range(200)]

    assert texts == [other.text() for _ in range(200)]
    assert len(set(texts)) > 150


def test_minimising_keeps_what_matters() -> None:
    assert minimise("a long text; with rm in it", lambda text: "rm" in text) == "rm"
    assert minimise(("git", "log", "-L", "--", "-p"), lambda words: "-L" in words) == ("-L",)
