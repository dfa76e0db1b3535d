"""Runs and sessions by the beginning of their ids, and sessions by new titles."""

import json
from pathlib import Path

import pytest
from cli_home import Home

from longboat.testing import Gate, Pause, Say

pytestmark = pytest.mark.acceptance


def sessions(home: Home, cwd: Path) -> dict[str, str]:
    found = [json.loads(line) for line in home.longboat("session", "list", "--format", "json", cwd=cwd).lines]
    return {each["id"]: each["title"] for each in found}


def test_every_command_takes_the_beginning_of_an_id(home: Home, cwd: Path) -> None:
    home.endpoint.script("held", [Say("x"), Pause(Gate("held")), Say("y")])
    run_id = home.longboat("run", "--detach", "[[held]]", cwd=cwd).out.strip()
    home.endpoint.wait_for_gate("held")
    (session,) = sessions(home, cwd)
    begins = session[:10] + "…"  # as a narrow terminal shows it
    assert home.longboat("runs", "-s", begins, "--format", "json", cwd=cwd).events[0]["run_id"] == run_id
    assert home.longboat("cancel", run_id[:10], cwd=cwd).out.startswith(run_id)
    assert home.longboat("watch", run_id[:10], cwd=cwd).code == 130
    assert home.longboat("cancel", "-s", begins, cwd=cwd).out == "Nothing to cancel.\n"
    assert home.longboat("run", "-s", begins, "two", cwd=cwd).out == "echo: two\n"
    assert "echo: two" in home.longboat("session", "show", begins, cwd=cwd).out
    assert json.loads(home.longboat("session", "export", begins, cwd=cwd).out)["session"]["id"] == session
    renamed = home.longboat("session", "rename", begins, "Of two halves", cwd=cwd)
    assert (renamed.code, renamed.out) == (0, f"{session} Of two halves\n")
    assert sessions(home, cwd) == {session: "Of two halves"}
    assert home.longboat("session", "delete", "-y", begins, cwd=cwd).out == f"{session} deleted\n"


def test_a_beginning_that_several_have_is_refused_with_all_that_have_it(home: Home, cwd: Path) -> None:
    for run_id in ("job-1", "job-2", "job-1b"):
        home.longboat("run", "--run-id", run_id, run_id, cwd=cwd)
    done = home.longboat("cancel", "job-", cwd=cwd)
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "longboat: 3 runs start with 'job-': type more of the id.",
        "  job-1b",
        "  job-2",
        "  job-1",
    ]
    assert home.longboat("watch", "job-1", cwd=cwd).out == "echo: job-1\n", "a whole id is meant as such"
    assert home.longboat("watch", "job-9", cwd=cwd).err.startswith("longboat: No run 'job-9' in this directory")
    assert "'job' is too short for a run id: type at least 4 char" in home.longboat("watch", "job", cwd=cwd).err
    both = sessions(home, cwd)
    common = next(iter(both))[:4]
    assert "3 sessions start with" in home.longboat("session", "show", common, cwd=cwd).err


def test_an_id_that_is_empty_is_no_beginning_of_everything(home: Home, cwd: Path) -> None:
    home.longboat("run", "hi", cwd=cwd)
    for command in (("cancel", ""), ("session", "delete", "-y", ""), ("session", "show", " ")):
        done = home.longboat(*command, cwd=cwd)
        assert (done.code, done.err.splitlines()[0]) == (1, "longboat: The id is empty.")
    assert len(sessions(home, cwd)) == 1


@pytest.mark.parametrize("name", ["a/b", "../sessions", "..", "a b", "x" * 200])
def test_what_cannot_be_an_id_is_told_like_one_that_is_not_there(home: Home, cwd: Path, name: str) -> None:
    for kind, command in (("run", ("watch", name)), ("run", ("cancel", name)), ("session", ("session", "show", name))):
        done = home.longboat(*command, cwd=cwd)
        assert (done.code, done.err.splitlines()[0]) == (1, f"longboat: No {kind} {name!r} in this directory.")


def test_a_title_that_is_too_long_is_refused_in_words(home: Home, cwd: Path) -> None:
    home.longboat("run", "hi", cwd=cwd)
    (session,) = sessions(home, cwd)
    done = home.longboat("session", "rename", session, "x" * 501, cwd=cwd)
    assert done.code == 1
    assert done.err.startswith("longboat: ")
    assert sessions(home, cwd) == {session: "hi"}
