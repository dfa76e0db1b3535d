"""What newcomers stumbled over at the command line: outputs that flood, answers that are none, calls without a name."""

import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli_home import Home, finished
from terminal import Terminal

from longboat.cli.activity import LAST_LINES, MAX_LINES
from longboat.testing import CallTool, Say
from longboat.wire.asks import Permission, Question
from longboat.wire.models import Message, Run, Session
from longboat.wire.statistics import Stats

pytestmark = pytest.mark.acceptance


def call(name: str, /, **arguments: Any) -> CallTool:
    return CallTool(name, arguments)


def listed(home: Home, cwd: Path, *command: str) -> list[dict[str, Any]]:
    return home.longboat(*command, "--format", "json", cwd=cwd).events


# Live output


def test_f1_the_live_output_of_a_command_is_bounded_counted_and_ends_with_its_last_lines(home: Home, cwd: Path) -> None:
    home.endpoint.script("seq", [call("bash", command="seq 200000")], [Say("Done.")])
    terminal = Terminal(home, "run", "--yolo", "[[seq]]", cwd=cwd)
    assert terminal.finish() == 0
    lines = terminal.lines
    own = lines[lines.index("● bash seq 200000") + 1 : lines.index("Done.")]
    assert len(own) == MAX_LINES + 1 + 1 + LAST_LINES
    assert own[MAX_LINES] == "    … (more)"
    assert re.fullmatch(r"    … more than [\d,]+ lines, then:", own[MAX_LINES + 1])
    assert own[-1] == "    200000"


def test_f1_wide_characters_do_not_make_two_lines_of_one_and_escapes_are_inert(home: Home, cwd: Path) -> None:
    (cwd / "wide.py").write_text('print("漢" * 500)\nprint("\\x1b[2J\\x1b]52;c;eA==\\x07end")\nprint("\\u202egnol")\n')
    home.endpoint.script("wide", [call("bash", command="python3 wide.py")], [Say("Done.")])
    terminal = Terminal(home, "run", "--yolo", "[[wide]]", cwd=cwd, environ={"COLUMNS": "40"})
    assert terminal.finish() == 0
    at = terminal.lines.index("● bash python3 wide.py")
    assert terminal.lines[at + 1 : at + 4] == ["    " + "漢" * 17 + "…", "    end", "    \ufffdgnol"]
    assert "\x1b[2J" not in terminal.seen


def test_f1_who_watches_late_is_told_which_call_the_output_is_of(home: Home, cwd: Path) -> None:
    home.endpoint.script("slow", [call("bash", command="echo a; read line < pipe; echo $line")], [Say("Done.")])
    home.longboat("session", "list", cwd=cwd)
    os.mkfifo(cwd / "pipe")
    run_id = home.longboat("run", "--yolo", "--detach", "[[slow]]", cwd=cwd).out.strip()
    pipe = os.open(cwd / "pipe", os.O_RDWR)  # so that neither end waits for the other to be opened
    try:
        terminal = Terminal(home, "watch", run_id, cwd=cwd)
        terminal.until("● bash echo a; read line < pipe; echo $line")
        os.write(pipe, b"b\n")
        assert terminal.finish() == 0
    finally:
        os.close(pipe)
    assert "    b" in terminal.lines
    assert "tool call" not in terminal.seen


# Calls that failed


def test_a1_a_plan_that_was_not_taken_does_not_look_like_one_that_was(home: Home, cwd: Path) -> None:
    home.endpoint.script("plan", [call("todos", items=[{"text": "a", "state": "done"}])], [Say("Done.")])
    terminal = Terminal(home, "run", "--yolo", "[[plan]]", cwd=cwd)
    assert terminal.finish() == 0
    assert "● todos failed" in terminal.lines
    assert "of 1 done" not in terminal.seen
    result = listed(home, cwd, "session", "show", listed(home, cwd, "session", "list")[0]["id"])[2]["parts"][0]
    assert result["content"].endswith("Expected one of: completed, in_progress, pending.")


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a2_a_call_that_waited_for_an_answer_when_the_server_stopped_was_not_run(own_home: Home, how: str) -> None:
    """Nor those behind it: nobody has to fear effects that they cannot have had."""
    own_home.endpoint.script(how, [call("bash", command="touch x"), call("bash", command="touch y")], [Say("Done.")])
    here = own_home.workspace("here")
    process = own_home.start("run", "--wait-for-answers", f"[[{how}]]", cwd=here)
    assert process.stderr is not None
    assert any("Waiting for an answer" in line for line in process.stderr)
    if how == "killed":
        own_home.kill_server()
    else:
        assert own_home.longboat("stop", "--force", cwd=here).code == 0
    (session,) = listed(own_home, here, "session", "list")
    shown = own_home.longboat("session", "show", session["id"], cwd=here).out
    assert shown.count("[failed: This call was not run: the server stopped before anyone approved it") == 2
    finished(process)


# Answers


def test_a2_a_line_that_is_no_answer_is_told_why_and_a_question_mark_explains(home: Home, cwd: Path) -> None:
    home.endpoint.script("ask", [call("write", path="long.txt", content="x\n" * 100)], [Say("Done.")])
    terminal = Terminal(home, "run", "[[ask]]", cwd=cwd)
    terminal.until("> ")
    terminal.forget()
    terminal.type("maybe")
    terminal.until("'maybe' is not an answer: type one of the letters, then Enter. ? explains them.")
    terminal.until("> ")
    terminal.forget()
    terminal.type("?")
    shown = terminal.until("> ")
    assert "y, once: allow this call only" in shown
    assert terminal.lines.count("    +x") == 100
    assert not (cwd / "long.txt").exists()
    terminal.type("yes")
    assert terminal.finish() == 0
    assert (cwd / "long.txt").exists()


# Undone turns


def test_a4_a_session_with_undone_turns_says_so_and_how_to_bring_them_back(home: Home, cwd: Path) -> None:
    (cwd / "old.txt").write_text("old\n")
    steps = [call("view", path="old.txt")]
    changes = [call("write", path="new.txt", content="x"), call("write", path="old.txt", content="new\n")]
    home.endpoint.script("change", steps, changes, [Say("Done.")])
    home.longboat("run", "--yolo", "hello", cwd=cwd)
    home.longboat("run", "--yolo", "-c", "[[change]]", cwd=cwd)
    assert sorted(home.longboat("undo", cwd=cwd).lines[1:]) == ["  removed new.txt", "  restored old.txt"]
    (session,) = listed(home, cwd, "session", "list")
    shown = home.longboat("session", "show", session["id"], cwd=cwd).lines
    assert shown[-1].startswith("[1 undone turn is not shown. Redo the last one with: longboat redo -s ")
    home.longboat("undo", cwd=cwd)
    shown = home.longboat("session", "show", session["id"], cwd=cwd).lines
    assert shown[-1].startswith("[2 undone turns are not shown. ")
    home.longboat("redo", cwd=cwd)
    assert sorted(home.longboat("redo", cwd=cwd).lines[1:]) == ["  recreated new.txt", "  restored old.txt"]
    assert "undone" not in home.longboat("session", "show", session["id"], cwd=cwd).out


# longboat_info


def test_a1_the_agent_can_tell_what_it_runs_on_and_no_secret(home: Home, cwd: Path) -> None:
    secrets = ["sk-in-the-project", "Bearer mcp-token", "env-secret", "search-secret", "url-secret"]
    config = {
        "providers": {"other": {"type": "openai", "api_key": secrets[0]}},
        "permissions": {"allow": ["bash(make *)"], "deny": ["bash(rm *)"]},
        "mcp": {
            "near": {"command": ["false"], "env": {"KEY": secrets[2]}},
            "far": {"url": "http://127.0.0.1:9/?key=url-secret", "headers": {"Authorization": secrets[1]}},
        },
        "web": {"search": {"kind": "brave", "endpoint": "http://127.0.0.1:9/", "key": secrets[3]}},
    }
    (cwd / "longboat.json").write_text(json.dumps(config))
    skill = cwd / ".agents" / "skills" / "sail" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: sail\ndescription: Sails.\n---\nSail.\n")
    assert home.longboat("trust", "--yes", cwd=cwd).code == 0
    home.endpoint.script("info", [call("longboat_info")], [Say("Done.")])
    done = home.longboat("run", "--yolo", "[[info]]", cwd=cwd)
    assert done.code == 0, done.err
    (session,) = listed(home, cwd, "session", "list")
    (run,) = listed(home, cwd, "runs")
    told = listed(home, cwd, "session", "show", session["id"])[2]["parts"][0]["content"]
    for line in (
        f"Workspace: {cwd}",
        f"Session: {session['id']}",
        f"Run: {run['run_id']}",
        "Model: mine/m",
        f"Configuration files: {home.path}/config/longboat/longboat.json, {cwd}/longboat.json",
        "Permissions: anything that no rule denies is allowed",
        "Allow rules: bash(make *)",
        "Deny rules: bash(rm *)",
        "Sandbox for bash: off",
        "Skills: sail",
        "Sub-agents: none",
        "Jobs: none",
    ):
        assert line in told.splitlines()
    assert told.startswith("Longboat ")
    assert "Context window: " in told
    assert "near (failed, 0 tools)" in told
    assert not [secret for secret in secrets if secret in told]


# Programs and shells


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_f1_the_completion_of_each_shell_is_printed(home: Home, cwd: Path, shell: str) -> None:
    done = home.longboat("completion", shell, cwd=cwd)
    assert (done.code, done.err, "_LONGBOAT_COMPLETE" in done.out) == (0, "", True)
    assert home.longboat("completion", cwd=cwd, SHELL=f"/usr/bin/{shell}").out == done.out
    wrong = home.longboat("completion", cwd=cwd, SHELL="/bin/tcsh")
    assert (wrong.code, "bash, zsh, fish" in wrong.err) == (2, True)


def test_fish_is_told_the_whole_help_of_a_candidate(home: Home, cwd: Path) -> None:
    """A candidate comes as `plain,NAME<tab>HELP`, and the help has commas of its own."""
    given = {"_LONGBOAT_COMPLETE": "fish_complete", "COMP_WORDS": "longboat runs", "COMP_CWORD": "runs"}
    assert home.longboat(cwd=cwd, **given).out == "plain,runs\tList active, queued and finished runs.\n"
    assert 'string split --max 1 "," $completion' in home.longboat("completion", "fish", cwd=cwd).out


def completed(home: Home, cwd: Path, *words: str) -> list[str]:
    """What bash is offered for the last word."""
    given = {"COMP_WORDS": " ".join(("longboat", *words)), "COMP_CWORD": str(len(words))}
    done = home.longboat(cwd=cwd, _LONGBOAT_COMPLETE="bash_complete", **given)
    return [line.removeprefix("plain,") for line in done.lines if line]


def test_f1_commands_options_ids_and_models_are_completed(home: Home, cwd: Path) -> None:
    done = home.longboat("run", "--run-id", "a-run-of-mine", "hello", cwd=cwd)
    assert done.code == 0, done.err
    (session,) = listed(home, cwd, "session", "list")
    assert completed(home, cwd, "perm") == ["permissions"]
    assert completed(home, cwd, "session", "ren") == ["rename"]
    assert completed(home, cwd, "runs", "--form") == ["--format"]
    assert completed(home, cwd, "runs", "--state", "fo") == ["folded"]
    assert completed(home, cwd, "session", "show", session["id"][:8]) == [session["id"]]
    assert completed(home, cwd, "run", "-s", session["id"][:8]) == [session["id"]]
    assert completed(home, cwd, "watch", "a-run") == ["a-run-of-mine"]
    assert completed(home, cwd, "run", "-m", "mine/") == ["mine/m"]


def test_f1_completion_starts_no_server_and_says_nothing_where_none_runs(own_home: Home, cwd: Path) -> None:
    assert completed(own_home, cwd, "session", "show", "0") == []
    assert not own_home.socket.exists()


def test_f1_what_programs_are_given_has_the_shapes_of_the_protocol(home: Home, cwd: Path) -> None:
    """`--format json`: one object a line for lists, one object for the rest."""
    home.endpoint.script("ask", [call("question", text="Which?")], [Say("Done.")])
    process = home.start("run", "--wait-for-answers", "[[ask]]", cwd=cwd)
    assert process.stderr is not None
    assert any("Waiting for an answer" in line for line in process.stderr)
    (session,) = [msgspec.convert(each, Session) for each in listed(home, cwd, "session", "list")]
    assert [msgspec.convert(each, Run).session_id for each in listed(home, cwd, "runs")] == [session.id]
    assert [msgspec.convert(each, Message).seq for each in listed(home, cwd, "session", "show", session.id)] == [
        1,
        2,
        3,
    ]
    (question,) = [msgspec.convert(each, Question) for each in listed(home, cwd, "questions")]
    assert [msgspec.convert(each, Permission) for each in listed(home, cwd, "permissions")] == []
    assert home.longboat("questions", "answer", question.id, "this", cwd=cwd).code == 0
    assert finished(process).code == 0
    msgspec.json.decode(home.longboat("stats", "--format", "json", cwd=cwd).out, type=Stats)
    models = json.loads(home.longboat("models", "--format", "json", cwd=cwd).out)
    lists = {"large_list", "small_list", "cooldowns"}
    assert set(models) == {"large", "small", "problem", "advice", "providers", "hint", "server"} | lists


def test_f1_options_before_a_subcommand_hold_for_it_too(home: Home, cwd: Path) -> None:
    home.endpoint.script("else", [call("question", text="Which?")], [Say("Done.")])
    process = home.start("run", "--wait-for-answers", "[[else]]", cwd=cwd)
    assert process.stderr is not None
    assert any("Waiting for an answer" in line for line in process.stderr)
    (question,) = home.longboat("questions", "--format", "json", "--cwd", str(cwd), "list", cwd=home.path).events
    done = home.longboat("questions", "--cwd", str(cwd), "answer", question["id"], "this", cwd=home.path)
    assert done.code == 0, done.err
    assert finished(process).code == 0
