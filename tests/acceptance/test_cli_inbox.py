"""`longboat inbox`, and asks of all workspaces: listed and answered from any directory."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import terminal_attacks
from cli_home import Home
from terminal import Terminal

from longboat.testing import CallTool, Say
from longboat.wire.plain import mark_hidden

pytestmark = pytest.mark.acceptance

TOUCH = CallTool("bash", {"command": "touch made"})
QUESTION = CallTool("question", {"text": "Which colour?", "choices": ["red", "blue"]})


def detached(home: Home, name: str, *steps: Any) -> tuple[Path, str]:
    """A run in a directory of its own that nobody waits for: the directory and the run."""
    home.endpoint.script(name, *steps)
    cwd = home.workspace(name)
    done = home.longboat("run", "--detach", "--wait-for-answers", f"[[{name}]]", cwd=cwd)
    assert done.code == 0, done.err
    return cwd, done.out.split()[0]


def listed(home: Home, cwd: Path, *command: str) -> list[dict[str, Any]]:
    done = home.longboat(*command, "--format", "json", cwd=cwd)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.lines]


def wait_listed(home: Home, cwd: Path, kind: str, where: Path) -> dict[str, Any]:
    """The item of that directory, as soon as it is there: `--watch` prints it."""
    watching = home.start("inbox", "--watch", "--format", "json", "--limit", "5000", cwd=cwd)
    assert watching.stdout is not None
    for line in watching.stdout:
        item: dict[str, Any] = json.loads(line)
        if (item["kind"], item["workspace_path"]) == (kind, str(where)):
            watching.kill()
            watching.wait()
            return item
    raise AssertionError("it was never listed")


def test_what_waits_elsewhere_is_listed_and_answered_from_any_directory(own_home: Home) -> None:
    home = own_home
    here = home.workspace("here")
    one, _ = detached(home, "one", [TOUCH], [Say("Made.")])
    two, _ = detached(home, "two", [QUESTION], [Say("Thanks.")])
    permission = wait_listed(home, here, "permission", one)["permission"]
    question = wait_listed(home, here, "question", two)["question"]
    shown = home.longboat("inbox", cwd=here)
    assert shown.lines[0].split() == ["ID", "STATE", "WHEN", "WORKSPACE", "WHAT"]
    assert {line.split()[0] for line in shown.lines[1:-1]} == {permission["id"], question["id"]}
    assert shown.lines[-1] == "2 waiting, 0 new"
    assert "Run touch made" in shown.out
    assert home.longboat("permissions", cwd=here).out == "No pending permission requests.\n"
    told = home.longboat("permissions", "--all", cwd=here).out
    assert f"in {one}" in told
    assert f"longboat permissions answer {permission['id']} once" in told
    assert [ask["id"] for ask in listed(home, here, "permissions", "--all")] == [permission["id"]]
    assert [ask["id"] for ask in listed(home, here, "questions", "list", "--all")] == [question["id"]]
    done = home.longboat("permissions", "answer", permission["id"][:30], "once", cwd=here)
    assert (done.code, done.out) == (0, f"{permission['id']} once\n")
    done = home.longboat("questions", "answer", question["id"], "2", cwd=here)
    assert (done.code, done.out) == (0, f"{question['id']} blue\n")
    wait_listed(home, here, "finished", one)
    wait_listed(home, here, "finished", two)
    assert (one / "made").exists()
    late = home.longboat("permissions", "answer", permission["id"], "deny", cwd=one)
    assert (late.code, "answered" in late.err) == (1, True), late.err
    unknown = home.longboat("permissions", "answer", "ffff", "once", cwd=here)
    assert unknown.err.startswith("longboat: No permission 'ffff' that waits for an answer.")
    assert "longboat permissions --all" in unknown.err


def test_the_table_marks_what_is_new_once_and_json_leaves_it_so(own_home: Home) -> None:
    home = own_home
    here = home.workspace("here")
    assert home.longboat("inbox", cwd=here).out.startswith("Nothing new")
    there, run_id = detached(home, "done", [Say("Done.")])
    item = wait_listed(home, here, "finished", there)
    assert (item["run_id"], item["seen"]) == (run_id, False)
    (_, first, count), (_, second, no_more) = (home.longboat("inbox", cwd=here).lines for _ in range(2))
    assert (count, no_more) == ("0 waiting, 1 new", "0 waiting, 0 new")
    assert "• done" in first
    assert "• done" not in second
    assert " done" in second
    assert [item["seen"] for item in listed(home, here, "inbox")] == [True]


def test_a_run_that_a_person_followed_to_its_end_is_seen_and_that_of_a_script_is_not(own_home: Home) -> None:
    home = own_home
    here = home.workspace("here")
    home.longboat("run", "from a script", cwd=here, LOGNAME="ann")
    terminal = Terminal(home, "run", "by hand", cwd=here)
    terminal.until("echo: by hand")
    assert terminal.finish() == 0
    run_id = home.longboat("run", "--detach", "later", cwd=here, LOGNAME="ann").out.strip()
    terminal = Terminal(home, "watch", run_id, cwd=here)
    assert terminal.finish() == 0
    items = home.longboat("inbox", "--format", "json", cwd=here, LOGNAME="ann").events
    seen = {item["text"] or item["session_title"]: item["seen"] for item in items}
    assert seen == {"from a script": False, "by hand": True, "later": True}


def test_watching_prints_what_comes_until_it_is_stopped(own_home: Home) -> None:
    home = own_home
    here = home.workspace("here")
    home.longboat("session", "list", cwd=here)
    terminal = Terminal(home, "inbox", "--watch", cwd=here)
    detached(home, "seen", [Say("Done.")])
    terminal.until("[[seen]]")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.finish() == 130


def test_nothing_in_it_can_control_the_terminal(own_home: Home) -> None:
    home = own_home
    here = home.workspace("here")
    attacks = [text for text in terminal_attacks.PAYLOADS if "\ud83d" not in text]
    whole = " ".join(attacks)
    there, _ = detached(home, "attack", [CallTool("question", {"text": whole})])
    wait_listed(home, here, "question", there)
    for command in (("inbox",), ("questions", "--all")):
        shown = home.longboat(*command, cwd=here).out
        assert " ".join(shown.split()) == " ".join(mark_hidden(shown).split())
        assert "\x1b" not in shown
