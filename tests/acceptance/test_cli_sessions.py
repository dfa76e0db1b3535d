"""Sessions as things, and numbers, from the command line against a real server."""

import json
import re
from pathlib import Path

import pytest
from cli_home import Home

from longboat.testing import CallTool, Gate, Pause, Raw, Say, Use

pytestmark = pytest.mark.acceptance


def test_a_session_goes_out_as_a_file_and_comes_in_again_elsewhere(home: Home, cwd: Path) -> None:
    home.longboat("run", "hello", cwd=cwd)
    session = json.loads(home.longboat("session", "list", "--format", "json", cwd=cwd).out)["id"]
    export = home.longboat("session", "export", session, cwd=cwd).out
    file = cwd / "session.json"
    file.write_text(export)
    elsewhere = home.workspace("elsewhere")
    made = home.longboat("session", "import", str(file), cwd=elsewhere)
    assert (made.code, made.out.split()[1:]) == (0, ["hello"]), made
    shown = home.longboat("session", "show", made.out.split()[0], cwd=elsewhere).out
    assert shown.split() == ["hello", "you", "hello", "agent", "echo:", "hello"]
    assert home.longboat("session", "import", "-", cwd=elsewhere, given=export).code == 0
    page = home.longboat("session", "export", "--markdown", session, cwd=cwd).out
    assert page.splitlines()[0] == "# hello"
    assert "echo: hello" in page
    file.write_text(export[:100])
    refused = home.longboat("session", "import", str(file), cwd=elsewhere)
    assert (refused.code, refused.out) == (1, "")
    assert "not a complete export" in refused.err


def test_a_session_larger_than_any_prompt_may_be_comes_in_again(home: Home, cwd: Path) -> None:
    """Issue 3: an own export is re-importable, however long the session was."""
    home.longboat("run", "hello", cwd=cwd)
    session = json.loads(home.longboat("session", "list", "--format", "json", cwd=cwd).out)["id"]
    document = json.loads(home.longboat("session", "export", session, cwd=cwd).out)
    document["messages"][0]["parts"][0]["text"] = "long " * 4_000_000
    file = cwd / "session.json"
    file.write_text(json.dumps(document))
    made = home.longboat("session", "import", str(file), cwd=cwd)
    assert (made.code, made.out.split()[1:]) == (0, ["hello"]), made.err
    export = home.longboat("session", "export", made.out.split()[0], cwd=cwd).out
    assert len(export) > 20_000_000
    assert home.longboat("session", "import", "-", cwd=cwd, given=export).code == 0


def test_a_turn_from_before_a_fork_is_undone_and_redone(home: Home, cwd: Path) -> None:
    """A4: its run is the other session's."""
    home.longboat("run", "hello", cwd=cwd)
    session = json.loads(home.longboat("session", "list", "--format", "json", cwd=cwd).out)["id"]
    fork = home.longboat("session", "fork", session, cwd=cwd).out.split()[0]
    for command, told in (("undo", "Undone"), ("redo", "Redone")):
        done = home.longboat(command, "-s", fork, cwd=cwd)
        assert (done.code, done.out) == (0, f"{told}: a turn from before the fork\n  No files were changed.\n")


def test_a_fork_is_a_session_to_go_on_in(home: Home, cwd: Path) -> None:
    home.longboat("run", "hello", cwd=cwd)
    session = json.loads(home.longboat("session", "list", "--format", "json", cwd=cwd).out)["id"]
    forked = home.longboat("session", "fork", session, cwd=cwd)
    assert forked.out.split()[1:] == ["Fork", "of", "hello"]
    assert home.longboat("run", "-s", forked.out.split()[0], "more", cwd=cwd).code == 0
    assert "more" not in home.longboat("session", "show", session, cwd=cwd).out


def test_the_sessions_of_sub_agents_are_listed_only_if_asked_for(home: Home, cwd: Path) -> None:
    home.endpoint.script("sends", [CallTool("agent", {"prompt": "[[sent]]"})], [Say("Done.")])
    home.endpoint.script("sent", [Say("seen")])
    assert home.longboat("run", "--yolo", "[[sends]]", cwd=cwd).out == "Done.\n"
    home.longboat("run", "later", cwd=cwd)
    assert len(home.longboat("session", "list", "--format", "json", cwd=cwd).lines) == 2
    found = [json.loads(line) for line in home.longboat("session", "list", "--all", "--format", "json", cwd=cwd).lines]
    assert [each.get("parent_id") is None for each in found].count(False) == 1
    assert len(home.longboat("session", "list", "--limit", "1", "--format", "json", cwd=cwd).lines) == 1


def test_sessions_are_listed_by_last_use_and_what_is_left_out_is_counted(home: Home, cwd: Path) -> None:
    for prompt in ("first", "second", "third"):
        home.longboat("run", prompt, cwd=cwd)
    first = home.longboat("session", "list", cwd=cwd).lines[-1].split()[0]
    home.longboat("run", "-s", first, "again", cwd=cwd)
    listed = home.longboat("session", "list", cwd=cwd)
    assert [line.split()[-1] for line in listed.lines] == ["TITLE", "first", "third", "second"]
    assert listed.err == ""
    short = home.longboat("session", "list", "--limit", "1", cwd=cwd)
    assert [line.split()[-1] for line in short.lines] == ["TITLE", "first"]
    assert short.err == "2 more: longboat session list --limit 3\n"
    json_list = home.longboat("session", "list", "--limit", "1", "--format", "json", cwd=cwd)
    assert (len(json_list.lines), json_list.err) == (1, "")
    runs = home.longboat("runs", "--limit", "3", cwd=cwd)
    assert (len(runs.lines), runs.err) == (4, "More runs: longboat runs --limit 15\n")


def test_whoever_sent_a_prompt_is_named_and_you_are_only_yourself(home: Home, cwd: Path) -> None:
    home.longboat("run", "hello", cwd=cwd, LOGNAME="anna")
    home.longboat("run", "-c", "and me", cwd=cwd, LOGNAME="ben")
    session = json.loads(home.longboat("session", "list", "--format", "json", cwd=cwd).out)["id"]
    shown = home.longboat("session", "show", session, cwd=cwd, LOGNAME="ben").lines
    assert [line for line in shown if line in ("anna", "ben", "you", "agent")] == ["anna", "agent", "you", "agent"]
    forked = home.longboat("session", "fork", session, cwd=cwd).out.split()[0]
    copied = home.longboat("session", "show", forked, cwd=cwd, LOGNAME="ben").lines
    assert ("user" in copied, "you" in copied) == (True, False), "who sent what was copied is not known"


def test_sessions_are_searched_by_the_words_of_their_titles(home: Home, cwd: Path) -> None:
    for prompt in ("The broken build", "Tides", "A build that works"):
        home.longboat("run", prompt, cwd=cwd)
    found = home.longboat("session", "list", "--search", "build", cwd=cwd)
    assert [line.split()[-1] for line in found.lines] == ["TITLE", "works", "build"]
    short = home.longboat("session", "list", "--search", "a build", "--limit", "1", cwd=cwd)
    assert len(short.lines) == 2
    more = home.longboat("session", "list", "--search", "build", "--limit", "1", cwd=cwd)
    assert more.err == "1 more: longboat session list --search build --limit 2\n"
    none = home.longboat("session", "list", "--search", "boats", cwd=cwd)
    assert (none.code, none.out) == (0, "No session has 'boats' in its title.\n")


def test_a_rename_is_no_use_neither_in_the_list_nor_for_whoever_goes_on(home: Home, cwd: Path) -> None:
    for prompt in ("first", "second"):
        home.longboat("run", prompt, cwd=cwd)
    first = home.longboat("session", "list", cwd=cwd).lines[-1].split()[0]
    home.longboat("session", "rename", first, "renamed", cwd=cwd)
    listed = home.longboat("session", "list", cwd=cwd).lines
    assert [line.split()[-1] for line in listed] == ["TITLE", "second", "renamed"]
    assert home.longboat("run", "-c", "more", cwd=cwd).code == 0
    assert "more" not in home.longboat("session", "show", first, cwd=cwd).out


def test_a7_a_session_is_summed_up_on_request(home: Home, cwd: Path) -> None:
    home.longboat("run", "hello", cwd=cwd)
    session = json.loads(home.longboat("session", "list", "--format", "json", cwd=cwd).out)["id"]
    home.endpoint.script(None, [Say("They said hello.")])
    done = home.longboat("session", "summarize", session, cwd=cwd)
    assert (done.code, done.out) == (0, "They said hello.\n"), done.err


def test_an_interrupted_answer_is_said_to_be_so_once(home: Home, cwd: Path) -> None:
    home.endpoint.script("cut-short", [Say("so far"), Pause(Gate("never"))])
    home.longboat("run", "--detach", "[[cut-short]]", cwd=cwd)
    home.endpoint.wait_for_gate("never")
    home.longboat("stop", "--force", cwd=cwd)
    session = json.loads(home.longboat("session", "list", "--format", "json", cwd=cwd).out)["id"]
    shown = home.longboat("session", "show", session, cwd=cwd).out
    assert "[interrupted] The server stopped" in shown


def test_stats_are_tables_for_people_and_json_for_programs(home: Home, cwd: Path) -> None:
    assert "No usage since" in home.longboat("stats", cwd=cwd).out
    home.endpoint.script("costly", [Say("x"), Use(input_tokens=4000, output_tokens=20)])
    home.longboat("run", "[[costly]]", cwd=cwd)
    shown = home.longboat("stats", cwd=cwd).out
    assert "(UTC): 4,000 tokens in, 20 out, cost unknown." in shown
    assert "4,020 tokens have no known price: set `price` in longboat.json." in shown
    assert "$0" not in shown
    for words in ("mine/m", "done", "queued", "waiting for you", "MEDIAN", "P90", "MAX", "DAY (UTC)", "█"):
        assert words in shown
    found = json.loads(home.longboat("stats", "--days", "2", "--format", "json", cwd=cwd).out)
    assert found["models"][0]["usage"]["input_tokens"] == 4000
    assert [each["runs"] for each in found["outcomes"]] == [1]
    everywhere = json.loads(home.longboat("stats", "--all", "--format", "json", cwd=cwd).out)
    assert everywhere["usage"]["input_tokens"] >= 4000


def test_what_a_run_sent_to_its_model_is_shown(home: Home, cwd: Path) -> None:
    """ADR 0047: a table, one request in full, JSON for programs, and errors that say what to do."""
    home.longboat("run", "hello \x1b[31mred", cwd=cwd)
    run = json.loads(home.longboat("runs", "--format", "json", cwd=cwd).out)["run_id"]
    shown = home.longboat("session", "show", "--wire", run, cwd=cwd)
    assert shown.code == 0, shown.err
    for text in ("MESSAGES", "Request 1 to ", "system prompt", "\nuser\n", "hello", "\ntools\n", "\nsettings\n"):
        assert text in shown.out
    assert "\x1b" not in shown.out
    only = json.loads(home.longboat("session", "show", "--wire", run, "--format", "json", cwd=cwd).out)
    assert only["request"]["number"] == 1
    assert "hello" in json.dumps(only["body"]["messages"])
    missing = home.longboat("session", "show", "--wire", run, "--request", "9", cwd=cwd)
    assert (missing.code, missing.out) == (1, "")
    assert "There is no request 9" in missing.err
    assert home.longboat("session", "show", cwd=cwd).code == 2
    assert home.longboat("session", "show", run, "--request", "1", cwd=cwd).code == 2


def columns(line: str) -> list[str]:
    return re.split(r"  +", line.strip())


def test_what_a_run_sent_is_shown_with_cached_tokens_and_tokens_by_part(home: Home, cwd: Path) -> None:
    counted = {"prompt_tokens": 4_000, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 3_200}}
    ends = [
        Raw(f"data: {json.dumps({'choices': [{'finish_reason': reason}], 'usage': counted})}\n\ndata: [DONE]\n\n")
        for reason in ("tool_calls", "stop")
    ]
    home.endpoint.script("cached", [CallTool("ls", {}), ends[0]], [Say("Seen."), ends[1]])
    home.longboat("run", "[[cached]]", cwd=cwd)
    run = json.loads(home.longboat("runs", "--format", "json", cwd=cwd).out)["run_id"]
    lines = home.longboat("session", "show", "--wire", run, cwd=cwd).out.splitlines()
    head, *sent = [columns(line) for line in lines[:3]]
    found = [dict(zip(head, each, strict=True)) for each in sent]
    assert [(each["INPUT"], each["CACHED"], each["OUTPUT"]) for each in found] == [("4,000", "3,200", "20")] * 2
    assert any("counted 4,000 input tokens, 3,200 of them from its cache." in line for line in lines)
    first = next(number for number, line in enumerate(lines) if line.startswith("PART"))
    parts = [columns(line) for line in lines[first + 1 : first + 7]]
    names = ["system prompt", "tools", "user messages", "agent messages", "tool results", "settings"]
    assert [name for name, _, _ in parts] == names
    tokens = [int(part.removeprefix("about ").replace(",", "")) for _, _, part in parts]
    assert sum(tokens) == 4_000
    assert tokens[1] == max(tokens)
