"""Undo and redo, `init`, the lists of jobs, MCP servers and skills, and prompts that call a command (A4, A5)."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cli_home import Home, finished, wait_for_line
from terminal import Terminal

from longboat.testing import CallTool, Say

pytestmark = pytest.mark.acceptance


def newest_run(home: Home, cwd: Path) -> dict[str, Any]:
    return dict(json.loads(home.longboat("runs", "--limit", "1", "--format", "json", cwd=cwd).out))


# Undo


@pytest.fixture
def written(home: Home, cwd: Path) -> str:
    """A run that wrote two files, and its session."""
    steps = [
        CallTool("write", {"path": "a.txt", "content": "a\n"}),
        CallTool("write", {"path": "b.txt", "content": "b\n"}),
    ]
    home.endpoint.script("write", steps, [Say("Done.")])
    assert home.longboat("run", "--yolo", "--run-id", cwd.name[-40:], "[[write]]", cwd=cwd).code == 0
    return str(newest_run(home, cwd)["session_id"])


def test_a4_undo_puts_the_files_back_and_says_which_and_redo_brings_them_again(
    home: Home, cwd: Path, written: str
) -> None:
    done = home.longboat("undo", cwd=cwd)
    assert done.lines[0] == "Undone: [[write]]"
    assert sorted(done.lines[1:]) == ["  removed a.txt", "  removed b.txt"]
    assert os.listdir(cwd) == []
    again = home.longboat("redo", "-s", written[:35], cwd=cwd)
    assert again.code == 0, again.err
    assert again.lines[0] == "Redone: [[write]]"
    assert sorted(again.lines[1:]) == ["  recreated a.txt", "  recreated b.txt"]
    assert (cwd / "a.txt").read_text() == "a\n"


def test_a4_a_file_that_somebody_changed_keeps_everything_as_it_is(home: Home, cwd: Path, written: str) -> None:
    (cwd / "a.txt").write_text("mine\n")
    done = home.longboat("undo", cwd=cwd)
    assert (done.code, done.out) == (1, "")
    assert "a.txt" in done.err
    assert (cwd / "a.txt").read_text() == "mine\n"
    assert (cwd / "b.txt").read_text() == "b\n"


def test_a4_nothing_to_undo_or_redo_is_said(home: Home, cwd: Path) -> None:
    assert "No sessions in this directory yet." in home.longboat("undo", cwd=cwd).err
    home.longboat("run", "hi", cwd=cwd)
    done = home.longboat("redo", cwd=cwd)
    assert (done.code, "no turn to redo" in done.err) == (1, True)
    assert "No files were changed." in home.longboat("undo", cwd=cwd).out
    done = home.longboat("undo", cwd=cwd)
    assert (done.code, "no turn to undo" in done.err) == (1, True)


# init


def test_init_writes_a_draft_and_never_replaces_a_file_unasked(home: Home, cwd: Path) -> None:
    (cwd / "pyproject.toml").write_text('[project]\nname = "boats"\n')
    assert home.longboat("init", cwd=cwd).code == 0
    draft = (cwd / "AGENTS.md").read_text()
    assert draft.startswith("# boats\n")
    (cwd / "AGENTS.md").write_text("mine")
    refused = home.longboat("init", cwd=cwd)
    assert (refused.code, "--force" in refused.err) == (1, True)
    terminal = Terminal(home, "init", cwd=cwd)
    terminal.until("Replace it?")
    terminal.type("n")
    assert terminal.finish() == 1
    assert (cwd / "AGENTS.md").read_text() == "mine"
    assert home.longboat("init", "--force", cwd=cwd).code == 0
    assert (cwd / "AGENTS.md").read_text() == draft


# Lists


def test_jobs_are_listed(home: Home, cwd: Path) -> None:
    assert home.longboat("jobs", cwd=cwd).out == "No jobs.\n"
    home.endpoint.script(
        "job", [CallTool("bash", {"command": "echo up; exec sleep 600", "run_in_background": True})], [Say("Done.")]
    )
    assert home.longboat("run", "--yolo", "[[job]]", cwd=cwd).code == 0
    (job,) = (json.loads(line) for line in home.longboat("jobs", "--format", "json", cwd=cwd).lines)
    assert (job["state"], job["command"]) == ("running", "echo up; exec sleep 600")
    head, row = home.longboat("jobs", cwd=cwd).lines
    assert head.split() == ["JOB", "STATE", "TIME", "COMMAND"]
    assert row.split()[:2] == [job["id"], "running"]


def test_a_job_is_shown_followed_and_ended_by_a_person(home: Home, cwd: Path) -> None:
    command = "echo up; while [ ! -e go ]; do sleep 0.02; done; echo on; exec sleep 600"
    home.endpoint.script("long", [CallTool("bash", {"command": command, "run_in_background": True})], [Say("Done.")])
    assert home.longboat("run", "--yolo", "[[long]]", cwd=cwd).code == 0
    (job,) = (json.loads(line) for line in home.longboat("jobs", "list", "--format", "json", cwd=cwd).lines)
    shown = home.longboat("jobs", "show", job["id"][:-1], cwd=cwd)
    assert (shown.out, "running" in shown.err) == ("up\n", True), shown.err
    follower = home.start("jobs", "show", "-f", job["id"], cwd=cwd)
    wait_for_line(follower, "up")
    (cwd / "go").touch()
    wait_for_line(follower, "on")
    killed = home.longboat("jobs", "kill", job["id"], cwd=cwd)
    name = killed.out.split(" by ")[1].strip()
    assert killed.out == f"{job['id']} killed by {name}\n", killed.err
    assert f"killed by {name}" in finished(follower).err
    assert home.longboat("jobs", "kill", job["id"], cwd=cwd).out == killed.out, "safe to repeat"
    (again,) = (json.loads(line) for line in home.longboat("jobs", "--format", "json", cwd=cwd).lines)
    assert (again["state"], again["killed_by"]) == ("killed", name)
    missing = home.longboat("jobs", "show", "job-000000", cwd=cwd)
    assert (missing.code, "longboat jobs" in missing.err) == (1, True)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux knows whose a process is that left everything behind")
def test_a_daemon_that_left_everything_behind_ends_with_a_server_that_is_killed(home: Home, cwd: Path) -> None:
    daemon = "setsid env -i sh -c 'echo $$ > pid; exec sleep 600' > /dev/null 2>&1 &"
    wait = "while [ ! -s pid ]; do sleep 0.02; done"
    home.endpoint.script("daemon", [CallTool("bash", {"command": f"{daemon} {wait}"})], [Say("Done.")])
    assert home.longboat("run", "--yolo", "[[daemon]]", cwd=cwd).code == 0
    pid = int((cwd / "pid").read_text())
    os.kill(pid, 0)
    home.kill_server()
    deadline = time.monotonic() + 20
    while _lives(pid):  # nobody tells us of its end
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_commands_run_in_the_environment_of_the_shell_that_prompts(home: Home, cwd: Path) -> None:
    """Not in that of the shell that happened to start the server."""
    show = [CallTool("bash", {"command": 'printf %s "$OWN" > own; printf %s "$LONGBOAT_SOCKET" >> own'})]
    for name in ("one", "two", "three"):
        home.endpoint.script(name, show, [Say("Done.")])
    for prompt, options, wanted in (("one", [], "1"), ("two", [], "2"), ("three", ["--no-send-env"], "2")):
        done = home.longboat("run", "--yolo", *options, f"[[{prompt}]]", cwd=cwd, OWN=wanted if not options else "3")
        assert done.code == 0, done.err
        assert (cwd / "own").read_text() == wanted


def test_mcp_servers_are_listed(home: Home, cwd: Path) -> None:
    assert home.longboat("mcp", cwd=cwd).out == "No MCP servers are configured in longboat.json.\n"
    assert home.longboat("mcp", "--format", "json", cwd=cwd).out == ""


def command(cwd: Path, name: str, text: str) -> None:
    file = cwd / ".agents" / "commands" / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_skills_commands_and_sub_agents_are_listed_with_what_is_wrong(home: Home, cwd: Path) -> None:
    assert home.longboat("skills", cwd=cwd).out == "No skills, commands or sub-agents.\n"
    skill = cwd / ".agents" / "skills" / "knots"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: knots\ndescription: How to tie knots.\n---\nTie them.\n")
    command(cwd, "review", "---\ndescription: Look at it.\nargument-hint: DIR\n---\nReview $1.\n")
    command(cwd, "empty", "")
    done = home.longboat("skills", cwd=cwd)
    assert [line.split()[:2] for line in done.lines[1:]] == [["skill", "knots"], ["command", "/review"]]
    assert "the command is empty" in done.err
    assert json.loads(home.longboat("skills", "--format", "json", cwd=cwd).out)["commands"][0]["name"] == "review"


# Commands


def test_a5_a_prompt_that_calls_a_command_is_its_text(home: Home, cwd: Path) -> None:
    command(cwd, "review", "Review $1 well.\n")
    assert home.longboat("run", "/review", "src/", cwd=cwd).out == "echo: Review src/ well.\n"
    assert newest_run(home, cwd)["prompt"] == "Review src/ well."
    piped = home.longboat("run", "/review src/", cwd=cwd, given="a diff\n")
    assert piped.out == "echo: Review src/ well.\n"


def test_a5_arguments_without_a_place_follow_the_text(home: Home, cwd: Path) -> None:
    command(cwd, "look", "Look at this:\n")
    assert home.longboat("run", "/look", cwd=cwd, given="a diff\n").out == "echo: Look at this:\n\na diff\n"


def test_a5_what_is_no_command_is_left_as_it_is(home: Home, cwd: Path) -> None:
    command(cwd, "usr", "never")
    for prompt in ("/nope src", "/usr/bin/env is odd", "see /usr", "/"):
        assert home.longboat("run", prompt, cwd=cwd).out == f"echo: {prompt}\n"


def test_a5_the_same_call_under_the_same_run_id_is_the_same_run(home: Home, cwd: Path) -> None:
    command(cwd, "review", "One.\n")
    assert home.longboat("run", "--run-id", "again", "/review", cwd=cwd).out == "echo: One.\n"
    command(cwd, "review", "Two, which is longer.\n")
    assert home.longboat("run", "--run-id", "again", "/review", cwd=cwd).out == "echo: One.\n"


def test_a5_a_command_that_names_an_unknown_sub_agent_is_refused(home: Home, cwd: Path) -> None:
    command(cwd, "review", "---\nagent: critic\n---\nReview it.\n")
    done = home.longboat("run", "/review", cwd=cwd)
    assert (done.code, "'critic'" in done.err) == (1, True)
    agent = cwd / ".agents" / "agents" / "critic.md"
    agent.parent.mkdir(parents=True)
    agent.write_text("---\nname: critic\ndescription: Finds fault.\n---\nYou find fault.\n")
    assert home.longboat("run", "/review", cwd=cwd).out == "echo: Review it.\n"
