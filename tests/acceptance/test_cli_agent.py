"""`longboat run` with an agent that has tools: what is shown, what is asked, and who answers (A2, F1)."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_home import Home, finished
from terminal import Terminal

from longboat.testing import CallTool, Gate, Pause, Say

pytestmark = pytest.mark.acceptance


def call(name: str, **arguments: Any) -> CallTool:
    return CallTool(name, arguments)


def pending(home: Home, cwd: Path, kind: str = "permissions") -> list[dict[str, Any]]:
    return [json.loads(line) for line in home.longboat(kind, "--format", "json", cwd=cwd).lines]


def wait_pending(process: Any) -> None:
    """Until a command whose stderr is a pipe says that it waits for an answer."""
    for line in process.stderr:
        if "Waiting for an answer" in line:
            return
    raise AssertionError("it never asked")


# What is shown


def test_piped_the_answer_alone_is_on_stdout_and_nothing_on_stderr(home: Home, cwd: Path) -> None:
    home.endpoint.script("piped", [Say("I look."), call("bash", command="echo loud")], [Say("Done.")])
    home.longboat("session", "list", cwd=cwd)  # which starts the server, and says so
    done = home.longboat("run", "--yolo", "[[piped]]", cwd=cwd)
    assert (done.code, done.out, done.err) == (0, "Done.\n", "")


def test_at_a_terminal_each_tool_call_is_a_line_with_what_became_of_it(home: Home, cwd: Path) -> None:
    (cwd / "sums.py").write_text("def add(a, b):\n    return a - b\n")
    home.endpoint.script(
        "shown",
        [call("view", path="sums.py")],
        [call("edit", path="sums.py", old_text="a - b", new_text="a + b")],
        [call("bash", command="echo one; echo two; exit 3")],
        [call("view", path="nowhere.py")],
        [Say("Done.")],
    )
    terminal = Terminal(home, "run", "--yolo", "[[shown]]", cwd=cwd)
    assert terminal.finish() == 0
    lines = terminal.lines
    assert "● view sums.py" in lines
    at = lines.index("● edit sums.py +1 -1")
    assert lines[at + 1 : at + 3] == ["    -    return a - b", "    +    return a + b"]
    at = lines.index("● bash echo one; echo two; exit 3")
    assert lines[at + 1 : at + 3] == ["    one", "    two"]
    assert lines[at + 3].startswith("  └ exit code 3 after ")
    assert lines[lines.index("● view nowhere.py") + 1].startswith("  └ nowhere.py ")
    assert "Done." in lines


def test_with_the_answer_piped_away_the_tools_are_still_told_of_at_the_terminal(home: Home, cwd: Path) -> None:
    home.endpoint.script("half", [call("bash", command="echo loud")], [Say("Done.")])
    file = cwd / "answer"
    with file.open("w") as out:
        terminal = Terminal(home, "run", "--yolo", "[[half]]", cwd=cwd, stdout=out)
        assert terminal.finish() == 0
    assert file.read_text() == "Done.\n"
    assert terminal.lines[:2] == ["● bash echo loud", "    loud"]


def test_f1_what_a_sub_agent_does_is_told_in_short_and_its_run_is_marked(home: Home, cwd: Path) -> None:
    (cwd / "sums.py").write_text("x = 1\n")
    home.endpoint.script("sending", [call("agent", prompt="[[looks]]")], [Say("It is one.")])
    home.endpoint.script("looks", [Say("I look."), call("view", path="sums.py")], [Say("x is 1.")])
    terminal = Terminal(home, "run", "[[sending]]", cwd=cwd)
    assert terminal.finish() == 0
    at = terminal.lines.index("● agent [[looks]]")
    assert terminal.lines[at + 1] == "    view sums.py"
    assert terminal.lines[at + 2].startswith("    done (1 call, ")
    assert terminal.lines[at + 2].endswith(" s): x is 1.")
    assert "I look." not in terminal.seen, "what it says is for the agent that sent it"
    assert "It is one." in terminal.lines
    assert [line.split()[-1] for line in home.longboat("runs", cwd=cwd).lines] == ["PROMPT", "[[sending]]"]
    _, own, child = home.longboat("runs", "--all", cwd=cwd).lines
    assert child.endswith("  ↳ [[looks]]")
    assert own.endswith("  [[sending]]")
    watching = Terminal(home, "watch", child.split()[0], cwd=cwd)
    assert watching.finish() == 0
    assert "x is 1." in watching.lines, "who watches a sub-agent's run sees its answer"


def test_programs_are_not_told_what_sub_agents_do(home: Home, cwd: Path) -> None:
    """They take the text of the run for the answer."""
    home.endpoint.script("quiet", [call("agent", prompt="[[quietly]]")], [Say("Done.")])
    home.endpoint.script("quietly", [Say("hidden")])
    done = home.longboat("run", "--format", "json", "[[quiet]]", cwd=cwd)
    assert len({each["payload"]["payload"].get("session_id") for each in done.events}) == 1


def test_live_output_is_shown_while_the_command_runs(home: Home, cwd: Path) -> None:
    home.endpoint.script("live", [call("bash", command="echo begun; until [ -e go ]; do sleep 0.05; done")], [Say("x")])
    terminal = Terminal(home, "run", "--yolo", "[[live]]", cwd=cwd)
    terminal.until("    begun")
    (cwd / "go").touch()
    assert terminal.finish() == 0


def test_json_has_every_event_of_the_run(home: Home, cwd: Path) -> None:
    home.endpoint.script("events", [call("write", path="new.txt", content="x\n")], [Say("Done.")])
    done = home.longboat("run", "--yolo", "--format", "json", "[[events]]", cwd=cwd)
    kinds = [event["type"] for event in done.events]
    assert kinds[-1] == "run_complete"
    assert {"run", "message", "file"} <= set(kinds)


# A person answers


def test_a2_a_permission_is_asked_at_the_terminal_and_once_is_once(home: Home, cwd: Path) -> None:
    home.endpoint.script("once", [call("bash", command="touch made")], [call("bash", command="touch more")], [Say("x")])
    terminal = Terminal(home, "run", "[[once]]", cwd=cwd)
    shown = terminal.until("\n> ")
    assert "? Run touch made" in shown
    assert "[y]es, once  [s]ession  [a]lways" in shown
    assert "session, always: will allow " in shown
    terminal.forget()
    terminal.type("o")
    terminal.until("? Run touch more")
    assert (cwd / "made").exists()
    terminal.until("\n> ")
    terminal.type("o")
    assert terminal.finish() == 0
    assert (cwd / "more").exists()


def test_a2_for_the_session_it_is_not_asked_again_and_always_is_a_rule_in_the_project(home: Home, cwd: Path) -> None:
    home.endpoint.script("more", [call("bash", command="touch made")], [call("bash", command="touch made")], [Say("x")])
    terminal = Terminal(home, "run", "[[more]]", cwd=cwd)
    terminal.until("\n> ")
    terminal.type("s")
    assert terminal.finish() == 0
    home.endpoint.script("ever", [call("bash", command="touch made")], [Say("x")])
    terminal = Terminal(home, "run", "[[ever]]", cwd=cwd)
    terminal.until("\n> ")
    terminal.type("always")
    assert terminal.finish() == 0
    rules = json.loads((cwd / "longboat.json").read_text().replace("},", "}"))["permissions"]["allow"]
    assert len(rules) == 1
    home.endpoint.script("now", [call("bash", command="touch made")], [Say("unasked")])
    assert home.longboat("run", "[[now]]", cwd=cwd).out == "unasked\n"


def test_a2_a_denial_and_its_reason_reach_the_model(home: Home, cwd: Path) -> None:
    home.endpoint.script("denied", [call("bash", command="touch made")], [Say("Then not.")])
    terminal = Terminal(home, "run", "--run-id", "denied", "[[denied]]", cwd=cwd)
    terminal.until("\n> ")
    terminal.type("perhaps")  # is no answer
    terminal.until("perhaps")
    terminal.type("d not in my house")
    assert terminal.finish() == 0
    assert not (cwd / "made").exists()
    assert "Then not." in terminal.seen
    session = json.loads(home.longboat("session", "list", "--format", "json", cwd=cwd).out)["id"]
    assert "not in my house" in home.longboat("session", "export", session, cwd=cwd).out


def test_a2_what_was_typed_before_the_question_is_no_answer_to_it(home: Home, cwd: Path) -> None:
    wait = "until [ -e go ]; do sleep 0.05; done"
    steps = [call("bash", command=f"echo begun; {wait}")], [call("bash", command="touch a")], [Say("Done.")]
    home.endpoint.script("early", *steps)
    terminal = Terminal(home, "run", "[[early]]", cwd=cwd)
    terminal.until("    begun")
    terminal.type("always")
    terminal.until("always\r\n")
    (cwd / "go").touch()
    terminal.until("? Run touch a")
    terminal.until("\n> ")
    assert not (cwd / "a").exists()
    assert len(pending(home, cwd)) == 1
    terminal.type("d")
    assert terminal.finish() == 0


def test_a2_when_somebody_else_is_first_the_prompt_goes_and_says_who(home: Home, cwd: Path) -> None:
    home.endpoint.script("other", [call("bash", command="touch made")], [Say("Done.")])
    terminal = Terminal(home, "run", "[[other]]", cwd=cwd)
    terminal.until("\n> ")
    (ask,) = pending(home, cwd)
    done = home.longboat("permissions", "answer", ask["id"][:35], "once", cwd=cwd, LOGNAME="bob")
    assert (done.code, done.out) == (0, f"{ask['id']} once\n")
    terminal.until("\r\x1b[Kbob answered: once")
    assert terminal.finish() == 0
    assert "Done." in terminal.seen
    late = home.longboat("permissions", "answer", ask["id"], "deny", cwd=cwd, LOGNAME="carl")
    assert late.code == 1
    assert "bob answered first: the answer was once." in late.err


def test_a2_questions_take_numbers_several_and_free_words(home: Home, cwd: Path) -> None:
    home.endpoint.script(
        "ask",
        [call("question", text="Which color?", choices=["red", "blue"])],
        [call("question", text="Which of them?", choices=["x", "y", "z"], multiple=True)],
        [call("question", text="Why?")],
        [Say("Thanks.")],
    )
    terminal = Terminal(home, "run", "[[ask]]", cwd=cwd)
    for question, answer in (("Which color?", "2"), ("Which of them?", "1, 3"), ("Why?", "because, well")):
        terminal.until(f"? {question}")
        terminal.until("\n> ")
        terminal.forget()
        terminal.type(answer)
    terminal.until("→ because, well")
    assert terminal.finish() == 0
    (session,) = (
        json.loads(line)["id"] for line in home.longboat("session", "list", "--format", "json", cwd=cwd).lines
    )
    exported = json.loads(home.longboat("session", "export", session, cwd=cwd).out)
    results = [part["content"] for each in exported["messages"] if each["role"] == "tool" for part in each["parts"]]
    assert results == ["blue", "x\nz", "because, well"]


def test_a_number_that_is_no_choice_is_refused_at_the_prompt_and_by_the_command(home: Home, cwd: Path) -> None:
    home.endpoint.script("slip", [call("question", text="Which color?", choices=["red", "blue"])], [Say("Thanks.")])
    terminal = Terminal(home, "run", "[[slip]]", cwd=cwd)
    terminal.until("\n> ")
    terminal.type("9")
    terminal.until("'9' is not a choice. The choices are 1 to 2;")
    (ask,) = pending(home, cwd, "questions")
    refused = home.longboat("questions", "answer", ask["id"], "9", cwd=cwd)
    assert refused.code == 1
    assert "'9' is not a choice. The choices are 1 to 2;" in refused.err
    assert home.longboat("questions", "answer", ask["id"], "9 of each", cwd=cwd).code == 0
    assert terminal.finish() == 0
    assert "answered: 9 of each" in terminal.seen


def test_the_lists_end_with_the_command_that_answers(home: Home, cwd: Path) -> None:
    home.endpoint.script(
        "listed",
        [call("bash", command="touch made")],
        [call("question", text="Which color?", choices=["red", "blue"])],
        [Say("Done.")],
    )
    process = home.start("run", "--wait-for-answers", "[[listed]]", cwd=cwd)
    wait_pending(process)
    for kind, command in (("permissions", "once"), ("questions", "1")):
        (ask,) = pending(home, cwd, kind)
        last = home.longboat(kind, cwd=cwd).lines[-1].strip()
        assert last.startswith(f"answer: longboat {kind} answer {ask['id']} {command}   (or ")
        elsewhere = home.longboat(kind, "--cwd", str(cwd), cwd=home.path).lines[-1].strip()
        words = elsewhere.removeprefix("answer: longboat ").partition("   (")[0].split()
        assert "--cwd" not in words, "it works from any directory"
        assert home.longboat(*words, cwd=home.path).code == 0
        if kind == "permissions":
            wait_pending(process)
    assert finished(process).out == "Done.\n"


def test_a2_a_terminal_that_has_no_more_input_leaves_the_answer_to_others(home: Home, cwd: Path) -> None:
    home.endpoint.script("mute", [call("bash", command="touch made")], [Say("Done.")])
    terminal = Terminal(home, "run", "[[mute]]", cwd=cwd)
    terminal.until("\n> ")
    terminal.press(b"\x04")
    terminal.until("Input closed")
    (ask,) = pending(home, cwd)
    home.longboat("permissions", "answer", ask["id"], "once", cwd=cwd, LOGNAME="bob")
    assert terminal.finish() == 0
    assert "bob answered: once" in terminal.lines
    assert "Done." in terminal.lines


def test_ctrl_c_at_the_prompt_cancels_the_run(home: Home, cwd: Path) -> None:
    home.endpoint.script("quit", [call("bash", command="touch made")])
    terminal = Terminal(home, "run", "[[quit]]", cwd=cwd)
    terminal.until("\n> ")
    terminal.process.send_signal(2)
    assert terminal.finish() == 130
    assert "Canceling…" in terminal.seen
    canceled, way_on = [line for line in terminal.lines if line][-2:]
    assert canceled == "canceled"
    assert way_on.endswith('; continue with: longboat run -c "…"')
    assert pending(home, cwd) == []


def test_a2_watch_asks_too(home: Home, cwd: Path) -> None:
    home.endpoint.script("watched", [call("bash", command="touch made")], [Say("Done.")])
    home.longboat("run", "--detach", "--run-id", "watched", "[[watched]]", cwd=cwd)
    terminal = Terminal(home, "watch", "watched", cwd=cwd)
    terminal.until("\n> ")
    terminal.type("o")
    assert terminal.finish() == 0
    assert (cwd / "made").exists()


def test_a1_what_a_sub_agent_asks_is_asked_of_whoever_waits(home: Home, cwd: Path) -> None:
    (home.path / "outside.txt").write_text("secret\n")
    home.endpoint.script("parent", [call("agent", prompt="[[child]]")], [Say("Done.")])
    home.endpoint.script("child", [call("view", path=str(home.path / "outside.txt"))], [Say("seen")])
    terminal = Terminal(home, "run", "[[parent]]", cwd=cwd)
    terminal.until("(asked by a sub-agent)")
    terminal.until("\n> ")
    terminal.type("o")
    assert terminal.finish() == 0
    assert "Done." in terminal.seen
    home.endpoint.script("parent", [call("agent", prompt="[[child]]")], [Say("Done.")])
    home.endpoint.script("child", [call("view", path=str(home.path / "outside.txt"))], [Say("seen")])
    done = home.longboat("run", "[[parent]]", cwd=cwd)
    assert done.code == 1
    assert "outside.txt" in done.err
    assert home.longboat("run", "-c", "hi", cwd=cwd).out == "echo: hi\n"
    newest, before = (
        json.loads(line) for line in home.longboat("runs", "--all", "--limit", "2", "--format", "json", cwd=cwd).lines
    )
    assert newest["parent_session_id"] is None
    assert before["parent_session_id"] == newest["session_id"]


def test_a2_who_watches_later_is_asked_what_a_sub_agent_asked_before(home: Home, cwd: Path) -> None:
    outside = str(home.path / "config" / "longboat")
    steps = [call("ls", path=outside)], [call("ls", path=outside)], [Say("seen")]
    home.endpoint.script("sender", [call("agent", prompt="[[sent]]")], [Say("Done.")])
    home.endpoint.script("sent", *steps)
    first = home.start("run", "--wait-for-answers", "--run-id", "sender", "[[sender]]", cwd=cwd)
    wait_pending(first)
    terminal = Terminal(home, "watch", "sender", cwd=cwd)
    terminal.until("(asked by a sub-agent)")
    terminal.until("\n> ")
    terminal.type("s")  # for the session: the second time it is not asked
    assert terminal.finish() == 0
    done = finished(first)
    assert done.out == "Done.\n"
    assert "ann answered: session" in done.err


def test_at_a_terminal_permissions_and_questions_are_answered_one_by_one(home: Home, cwd: Path) -> None:
    steps = (
        [call("bash", command="touch a && rm -rf b")],
        [call("bash", command="touch c")],
        [call("question", text="Why?")],
    )
    home.endpoint.script("each", *steps, [Say("Done.")])
    process = home.start("run", "--wait-for-answers", "[[each]]", cwd=cwd)
    wait_pending(process)
    terminal = Terminal(home, "permissions", cwd=cwd)
    shown = terminal.until("\n> ")
    assert "? Run touch a && rm -rf b" in shown
    assert "⚠ Dangerous. It permanently deletes files." in shown
    terminal.type("")
    assert terminal.finish() == 0
    assert len(pending(home, cwd)) == 1, "an empty line decides nothing"
    terminal = Terminal(home, "permissions", cwd=cwd)
    terminal.until("\n> ")
    terminal.type("maybe")
    terminal.until("'maybe' is not an answer")
    terminal.type("y")
    terminal.until("'y' does not allow a dangerous call")
    terminal.type("d leave b alone")
    terminal.until("Denied.")
    assert terminal.finish() == 0
    wait_pending(process)
    terminal = Terminal(home, "permissions", cwd=cwd)
    terminal.until("\n> ")
    terminal.type("y")
    terminal.until("Allowed.")
    assert terminal.finish() == 0
    wait_pending(process)
    terminal = Terminal(home, "questions", cwd=cwd)
    terminal.until("\n> ")
    terminal.type("because")
    terminal.until("Answered.")
    assert terminal.finish() == 0
    assert finished(process).out == "Done.\n"
    assert (cwd / "c").exists()
    assert not (cwd / "a").exists()


# Nobody can answer


def test_a2_without_a_terminal_the_run_ends_and_says_what_was_asked_and_how_to_go_on(home: Home, cwd: Path) -> None:
    home.endpoint.script("alone", [call("bash", command="touch made")], [Say("never")])
    done = home.longboat("run", "--run-id", "alone", "[[alone]]", cwd=cwd)
    assert (done.code, done.out) == (1, "")
    for told in ("? Run touch made", "--yolo", "--wait-for-answers", "longboat permissions", "permissions.allow"):
        assert told in done.err
    assert pending(home, cwd) == []
    assert not (cwd / "made").exists()
    assert json.loads(home.longboat("runs", "--format", "json", cwd=cwd).out)["outcome"] == "canceled"


def test_a2_a_question_without_a_terminal_is_left_to_the_agent(home: Home, cwd: Path) -> None:
    home.endpoint.script("asks", [call("question", text="Which color?")], [Say("I assumed red.")])
    done = home.longboat("run", "--yolo", "[[asks]]", cwd=cwd)
    assert (done.code, done.out, done.err) == (0, "I assumed red.\n", "")


def test_a2_a_question_of_a_piped_run_waits_for_someone_at_another_terminal(home: Home, cwd: Path) -> None:
    home.endpoint.script("busy", [Say("I am here."), Pause(Gate("busy"))])
    home.endpoint.script("piped-asks", [call("question", text="Which color?")], [Say("Thanks.")])
    person = Terminal(home, "run", "[[busy]]", cwd=cwd)
    person.until("I am")
    piped = home.start("run", "[[piped-asks]]", cwd=cwd)
    wait_pending(piped)
    (ask,) = pending(home, cwd, "questions")
    home.longboat("questions", "answer", ask["id"], "red", cwd=cwd)
    assert finished(piped).out == "Thanks.\n"
    home.endpoint.open_gate("busy")
    assert person.finish() == 0


# Limits


def limited(home: Home, cwd: Path, name: str) -> None:
    """A directory where a turn has two steps, and a model that would take four."""
    (cwd / "longboat.json").write_text('{"limits": {"steps": 2, "approved_steps": 3}}')
    assert home.longboat("trust", "--yes", cwd=cwd).code == 0
    home.endpoint.script(name, *[[call("ls", path=".", depth=depth)] for depth in (1, 2, 3)], [Say("Done.")])


def test_a_piped_run_ends_at_a_limit_with_exit_code_1(home: Home, cwd: Path) -> None:
    limited(home, cwd, "limit")
    done = home.longboat("run", "[[limit]]", cwd=cwd)
    assert done.code == 1
    assert "Stopped at a limit: 2 steps (limits.steps in longboat.json)." in done.err
    limited(home, cwd, "higher-limit")
    done = home.longboat("run", "--yolo", "[[higher-limit]]", cwd=cwd)
    assert (done.code, "3 steps (limits.approved_steps in longboat.json)." in done.err) == (1, True)


def test_at_a_terminal_a_limit_is_a_question(home: Home, cwd: Path) -> None:
    limited(home, cwd, "go-on")
    terminal = Terminal(home, "run", "[[go-on]]", cwd=cwd)
    terminal.until("The agent reached a limit: 2 steps. Continue?")
    terminal.until("\n> ")
    terminal.type("1")
    assert terminal.finish() == 0
    assert "Done." in terminal.lines


# Plan first


PROPOSAL = call("propose_plan", summary="A greeting is missing.", items=["Write hello.txt", "Check it"])


def test_at_a_terminal_you_approve_the_plan_or_say_what_to_change(home: Home, cwd: Path) -> None:
    made = call("bash", command="touch made")
    home.endpoint.script("plan", [made], [PROPOSAL], [PROPOSAL], [made], [Say("Done.")])
    terminal = Terminal(home, "run", "--plan", "--yolo", "[[plan]]", cwd=cwd)
    terminal.until("2. Check it")
    terminal.until("\n> ")
    assert not (cwd / "made").exists()
    terminal.forget()
    terminal.type("In French, please.")
    terminal.until("2. Check it")
    terminal.until("\n> ")
    terminal.type("1")
    assert terminal.finish() == 0
    assert "Done." in terminal.lines
    assert (cwd / "made").exists()


def test_a_piped_run_that_plans_first_answers_with_the_plan(home: Home, cwd: Path) -> None:
    home.endpoint.script("plan-only", [call("bash", command="touch made")], [PROPOSAL], [Say("1. Write hello.txt")])
    done = home.longboat("run", "--plan", "--yolo", "[[plan-only]]", cwd=cwd)
    assert (done.code, done.lines) == (0, ["1. Write hello.txt"])
    assert not (cwd / "made").exists()


def test_a2_it_waits_for_somebody_elses_answer_if_told_so(home: Home, cwd: Path) -> None:
    home.endpoint.script("waits", [call("bash", command="touch made")], [call("question", text="Why?")], [Say("Done.")])
    process = home.start("run", "--wait-for-answers", "[[waits]]", cwd=cwd)
    wait_pending(process)
    (ask,) = pending(home, cwd)
    listed = home.longboat("permissions", cwd=cwd).out
    assert "? Run touch made" in listed
    assert ask["id"] in listed
    home.longboat("permissions", "answer", ask["id"], "once", cwd=cwd)
    wait_pending(process)
    (question,) = pending(home, cwd, "questions")
    assert "? Why?" in home.longboat("questions", "list", cwd=cwd).out
    answered = home.longboat("questions", "answer", question["id"], "why not", cwd=cwd)
    assert answered.out == f"{question['id']} why not\n"
    assert finished(process).out == "Done.\n"


def test_a2_yolo_is_for_one_run_alone(home: Home, cwd: Path) -> None:
    home.endpoint.script("all", [call("bash", command="touch made")], [Say("Done.")])
    assert home.longboat("run", "--yolo", "[[all]]", cwd=cwd).out == "Done.\n"
    home.endpoint.script("all", [call("bash", command="touch made")], [Say("Done.")])
    assert home.longboat("run", "-c", "[[all]]", cwd=cwd).code == 1


def test_an_answer_that_does_not_fit_is_refused_with_the_next_step(home: Home, cwd: Path) -> None:
    home.endpoint.script("unfit", [call("view", path="/etc/hostname")])
    process = home.start("run", "--wait-for-answers", "[[unfit]]", cwd=cwd)
    wait_pending(process)
    (ask,) = pending(home, cwd)
    assert home.longboat("permissions", "answer", ask["id"], "once", "--wide", cwd=cwd).code == 2
    assert home.longboat("permissions", "answer", ask["id"], "once", "--reason", "x", cwd=cwd).code == 2
    unknown = home.longboat("permissions", "answer", "ffff", "once", cwd=cwd)
    assert (unknown.code, "longboat permissions" in unknown.err) == (1, True)
    assert home.longboat("questions", "answer", "ffff", "x", cwd=cwd).code == 1
    home.longboat("cancel", "--all", cwd=cwd)
    assert finished(process).code == 130
    gone = home.longboat("permissions", "answer", ask["id"], "once", cwd=cwd)
    assert "its run ended" in gone.err
    assert home.longboat("permissions", cwd=cwd).out == "No pending permission requests.\n"
