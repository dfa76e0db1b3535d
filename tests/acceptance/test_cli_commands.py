"""The short commands against a real server."""

import json
from pathlib import Path

import pytest
from cli_home import Home

from longboat.testing import Gate, Pause, Say
from longboat.tools.sandbox import landlock, seccomp

pytestmark = pytest.mark.acceptance


def sessions(home: Home, cwd: Path) -> list[str]:
    return [json.loads(line)["id"] for line in home.longboat("session", "list", "--format", "json", cwd=cwd).lines]


def test_sessions_are_listed_shown_exported_and_deleted(home: Home, cwd: Path) -> None:
    home.longboat("run", "one", cwd=cwd)
    home.longboat("run", "-c", "two", cwd=cwd)
    home.longboat("run", "three", cwd=cwd)
    newest, oldest = sessions(home, cwd)
    shown = home.longboat("session", "show", oldest, cwd=cwd).out
    assert shown.split() == ["one", "you", "one", "agent", "echo:", "one", "you", "two", "agent", "echo:", "two"]
    exported = json.loads(home.longboat("session", "export", oldest, cwd=cwd).out)
    assert exported["session"]["id"] == oldest
    assert [run["prompt"] for run in exported["runs"]] == ["one", "two"]
    assert [message["role"] for message in exported["messages"]] == ["user", "assistant"] * 2
    assert home.longboat("session", "delete", "-y", oldest, cwd=cwd).code == 0
    assert sessions(home, cwd) == [newest]


def test_deleting_asks_first_and_no_means_no(home: Home, cwd: Path) -> None:
    home.longboat("run", "keep me", cwd=cwd)
    (session,) = sessions(home, cwd)
    assert home.longboat("session", "delete", session, cwd=cwd, given="n\n").code == 1
    assert sessions(home, cwd) == [session]


def test_a_session_or_run_that_is_not_there_is_told_with_the_next_step(home: Home, cwd: Path) -> None:
    home.longboat("session", "list", cwd=cwd)  # which starts the server, and says so
    for arguments, hint in (
        (("session", "show", "nope"), "longboat session list"),
        (("run", "-s", "nope", "hi"), "longboat session list"),
        (("cancel", "nope"), "longboat runs"),
    ):
        done = home.longboat(*arguments, cwd=cwd)
        assert (done.code, done.out) == (1, "")
        first, second = done.err.splitlines()
        assert first.startswith("longboat: No ")
        assert hint in second


def test_cwd_names_the_directory_from_anywhere(home: Home, cwd: Path) -> None:
    assert home.longboat("run", "--cwd", str(cwd), "hi", cwd=home.path).code == 0
    assert len(sessions(home, cwd)) == 1
    assert home.longboat("runs", "--cwd", str(cwd / "nowhere"), cwd=home.path).code == 2


def test_runs_shows_what_is_active_and_queued_and_cancel_ends_a_sessions_runs(home: Home, cwd: Path) -> None:
    home.endpoint.script("busy", [Say("x"), Pause(Gate("busy"))])
    active = home.longboat("run", "--detach", "[[busy]]", cwd=cwd).out.strip()
    home.endpoint.wait_for_gate("busy")
    queued = home.longboat("run", "--detach", "-c", "later", cwd=cwd).out.strip()
    head, first, second = home.longboat("runs", cwd=cwd).lines
    assert head.split() == ["RUN", "STATE", "ACCEPTED", "TOOK", "COST", "BY", "PROMPT"]
    assert first.split()[:3] == [queued, "queued,", "next"]
    assert second.split()[:2] == [active, "active"]
    only = home.longboat("runs", "--state", "queued", "--format", "json", cwd=cwd).lines
    assert [json.loads(line)["run_id"] for line in only] == [queued]
    (session,) = sessions(home, cwd)
    canceled = home.longboat("cancel", "--session", session, cwd=cwd)
    assert sorted(line.split()[0] for line in canceled.lines) == sorted([active, queued])
    assert home.longboat("cancel", "--session", session, cwd=cwd).out == "Nothing to cancel.\n"


def test_a_prompt_that_waits_to_steer_is_listed_as_one_and_not_as_queued(home: Home, cwd: Path) -> None:
    home.endpoint.script("steered", [Say("x"), Pause(Gate("steered"))])
    home.longboat("run", "--detach", "[[steered]]", cwd=cwd)
    home.endpoint.wait_for_gate("steered")
    home.longboat("run", "--detach", "-c", "later", cwd=cwd)
    home.longboat("run", "--detach", "-c", "--delivery", "steer", "go left", cwd=cwd)
    states = [line.split()[1:-1] for line in home.longboat("runs", cwd=cwd).lines[1:]]
    assert [state[0] for state in states] == ["steers", "queued", "active"]
    home.longboat("cancel", "--all", cwd=cwd)


def test_cancel_all_reaches_every_session_of_the_directory(home: Home, cwd: Path) -> None:
    started = []
    for name in ("a", "b"):
        home.endpoint.script(name, [Say("x"), Pause(Gate(name))])
        started.append(home.longboat("run", "--detach", f"[[{name}]]", cwd=cwd).out.strip())
        home.endpoint.wait_for_gate(name)
    canceled = home.longboat("cancel", "--all", cwd=cwd)
    assert sorted(line.split()[0] for line in canceled.lines) == sorted(started)
    assert home.longboat("cancel", "--all", cwd=cwd).out == "Nothing to cancel.\n"


def test_doctor_finds_nothing_wrong_and_names_what_is_used(home: Home, cwd: Path) -> None:
    home.longboat("run", "hi", cwd=cwd)
    done = home.longboat("doctor", cwd=cwd)
    assert done.code == 0, done
    assert "prompts: mine/m" in done.out
    assert not [line for line in done.lines if line.startswith("error")]


def test_doctor_names_the_sandbox_of_this_system(home: Home, cwd: Path) -> None:
    """A8: also where bubblewrap is missing; that is wrong only if one is required and nothing else is there."""
    (cwd / "longboat.json").write_text(json.dumps({"sandbox": "required"}))
    home.longboat("trust", "--yes", cwd=cwd)
    done = home.longboat("doctor", cwd=cwd, PATH=str(home.path / "empty"))
    (told,) = [line for line in done.lines if "  sandbox  " in line]
    if landlock.version() < landlock.CAN_TRUNCATE or not seccomp.without_sockets():
        assert told.startswith('error  sandbox          "required"; not available: bubblewrap')
    else:
        assert told.startswith('note   sandbox          "required"; available: Landlock sandbox: no network and')
        assert "(bubblewrap (`bwrap`) is not installed)" in told


def test_doctor_tells_a_broken_config_by_file_and_line_and_exits_1(home: Home, cwd: Path) -> None:
    (cwd / "longboat.json").write_text('{\n  // mine\n  "titles": 3\n}')
    done = home.longboat("doctor", cwd=cwd)
    assert done.code == 1
    (told,) = [line for line in done.lines if str(cwd / "longboat.json") in line]
    assert told.startswith(f"error  config           {cwd / 'longboat.json'}:3: titles"), "once, and not as ok"


def test_doctor_tells_of_every_file_that_is_wrong_and_calls_none_right_that_it_did_not_look_at(
    home: Home, cwd: Path
) -> None:
    theirs = home.path / "other" / "longboat" / "longboat.json"
    theirs.parent.mkdir(parents=True)
    theirs.write_text('{"titles": 3}')
    elsewhere = {"XDG_CONFIG_HOME": str(home.path / "other"), "LONGBOAT_RUNTIME_DIR": str(home.path / "r")}
    (cwd / "longboat.json").write_text("{")
    told = [line.split()[0] for line in home.longboat("doctor", cwd=cwd, **elsewhere).lines if "longboat.json" in line]
    assert told == ["error", "error"]
    (cwd / "longboat.json").write_text("{}")
    lines = [line for line in home.longboat("doctor", cwd=cwd, **elsewhere).lines if "longboat.json" in line]
    assert [line.split()[0] for line in lines] == ["error", "note"]
    assert lines[1].endswith("(not checked yet)")


def test_stop_names_the_directory_in_which_something_runs(home: Home, cwd: Path) -> None:
    home.endpoint.script("holds", [Say("x"), Pause(Gate("holds"))])
    home.longboat("run", "--detach", "[[holds]]", cwd=cwd)
    home.endpoint.wait_for_gate("holds")
    done = home.longboat("stop", cwd=home.path)
    first, hint = done.err.splitlines()
    assert (done.code, first) == (1, f"longboat: A run is unfinished in {cwd}: wait for it, or cancel it.")
    assert f"longboat runs --cwd {cwd}" in hint
    home.longboat("cancel", "--all", cwd=cwd)


def test_doctor_tells_a_provider_that_nobody_answers_for(home: Home, cwd: Path) -> None:
    provider = {"type": "openai-compatible", "base_url": "http://127.0.0.1:9/v1", "models": [{"id": "m"}]}
    config = {"providers": {"gone": provider}, "models": {"large": "gone/m"}}
    (cwd / "longboat.json").write_text(json.dumps(config))
    home.longboat("trust", "--yes", cwd=cwd)
    done = home.longboat("doctor", cwd=cwd)
    assert done.code == 1
    assert "http://127.0.0.1:9/v1 cannot be reached" in done.out


def test_config_shows_what_holds_without_secrets(home: Home, cwd: Path) -> None:
    provider = {"type": "openai", "api_key": "sk-very-secret", "headers": {"x-key": "also-secret", "x": "$OPENAI_X"}}
    search = {"kind": "brave", "endpoint": "https://search.example", "key": "search-secret"}
    (cwd / "longboat.json").write_text(json.dumps({"providers": {"p": provider}, "web": {"search": search}}))
    home.longboat("trust", "--yes", cwd=cwd)
    shown = home.longboat("config", cwd=cwd).out
    assert json.loads(shown)["web"]["search"]["key"] == "(hidden)"
    assert "secret" not in shown
    assert json.loads(shown)["providers"]["p"]["headers"] == {"x-key": "(hidden)", "x": "$OPENAI_X"}
    assert json.loads(shown)["providers"]["mine"]["base_url"] == f"{home.endpoint.url}/v1"
    assert "properties" in json.dumps(json.loads(home.longboat("config", "--schema", cwd=cwd).out))


def test_models_lists_providers_and_says_who_answers(home: Home, cwd: Path) -> None:
    done = home.longboat("models", cwd=cwd)
    assert "The running server uses mine/m." in done.out
    assert "Run `longboat connect anthropic`, or set ANTHROPIC_API_KEY." in done.out
    assert json.loads(home.longboat("models", "--format", "json", cwd=cwd).out)["large"] == "mine/m"


def test_models_and_doctor_show_the_list_and_who_is_passed_over(home: Home, cwd: Path) -> None:
    gone = {"type": "openai-compatible", "base_url": "http://127.0.0.1:9/v1", "models": [{"id": "m"}]}
    config = {"providers": {"gone": gone}, "models": {"large": ["gone/m", "mine/m"]}, "retry": {"attempts": 1}}
    (cwd / "longboat.json").write_text(json.dumps(config))
    home.longboat("trust", "--yes", cwd=cwd)
    before = home.longboat("models", cwd=cwd).out
    assert "The running server uses gone/m.\nModels for prompts, in this order: gone/m, mine/m.\n" in before
    done = home.longboat("run", "hello", cwd=cwd)
    assert (done.code, done.out) == (0, "echo: hello\n")
    assert "gone/m: The provider cannot be reached. Continuing with mine/m." in done.err
    shown = home.longboat("models", cwd=cwd).out
    assert "The running server uses mine/m." in shown
    assert "gone/m is skipped for another " in shown
    assert "A server started from this shell would" not in shown
    (cooldown,) = json.loads(home.longboat("models", "--format", "json", cwd=cwd).out)["cooldowns"]
    assert (cooldown["name"], cooldown["why"]) == ("gone/m", "The provider cannot be reached")
    told = home.longboat("doctor", cwd=cwd).out
    assert "prompts: gone/m (then mine/m)" in told
    assert "gone/m is skipped for another " in told


def test_status_and_version_tell_of_the_server(home: Home, cwd: Path) -> None:
    home.longboat("run", "hi", cwd=cwd)
    status = json.loads(home.longboat("status", "--format", "json", cwd=cwd).out)
    assert status["running"]
    assert str(cwd) in {workspace["path"] for workspace in status["workspaces"]}
    assert str(home.socket) in home.longboat("version", cwd=cwd).out
