"""Numbers on the command line: what runs took and cost, and what failed."""

import json
from pathlib import Path

import pytest
from cli_home import Home
from test_cli_agent import call

from longboat.testing import Gate, Pause, Refuse, Say, Use

pytestmark = pytest.mark.acceptance


def columns(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_runs_say_how_long_they_worked_what_they_cost_and_for_whom(home: Home, cwd: Path) -> None:
    home.endpoint.script("paid", [Say("x"), Use(input_tokens=10, cost=0.25)])
    home.endpoint.script("unknown", [Say("x"), Use(input_tokens=10)])
    for name in ("paid", "unknown"):
        home.longboat("run", f"[[{name}]]", cwd=cwd, LOGNAME="ann")
    head, unknown, paid = home.longboat("runs", cwd=cwd).lines
    assert columns(head) == ["RUN", "STATE", "ACCEPTED", "TOOK", "COST", "BY", "PROMPT"]
    run_id, state, _, worked, cost, by, prompt = columns(paid)
    assert (len(run_id), state, cost, by, prompt) == (36, "done", "$0.25", "ann", "[[paid]]")
    assert worked.endswith("s")
    assert columns(unknown)[4] == "unknown"


def test_a_canceled_run_says_who_canceled_it(home: Home, cwd: Path) -> None:
    home.endpoint.script("stopped", [Say("so far"), Pause(Gate("forever"))])
    run_id = home.longboat("run", "--detach", "[[stopped]]", cwd=cwd).out.strip()
    home.endpoint.wait_for_gate("forever")
    home.longboat("cancel", run_id, cwd=cwd, LOGNAME="ben")
    home.longboat("watch", run_id, cwd=cwd)
    assert columns(home.longboat("runs", cwd=cwd).lines[1])[1] == "canceled by ben"


def test_a_session_whose_last_turn_failed_is_marked(home: Home, cwd: Path) -> None:
    home.endpoint.script("fails", [Refuse(status=400, message="no such model")], [Say("Better.")])
    home.longboat("run", "[[fails]]", cwd=cwd)
    _, row = home.longboat("session", "list", cwd=cwd).lines
    session_id, state, *_ = columns(row)
    assert state == "failed"
    home.longboat("run", "-s", session_id, "[[fails]] again", cwd=cwd)
    assert columns(home.longboat("session", "list", cwd=cwd).lines[1])[1] == "idle"


def test_sub_agents_are_listed_under_who_sent_them(home: Home, cwd: Path) -> None:
    home.endpoint.script("sends", [call("agent", prompt="[[sent]]")], [Say("Seen.")])
    home.endpoint.script("sent", [Say("Clear."), Use(input_tokens=10, cost=0.5)])
    home.longboat("run", "[[sends]]", cwd=cwd)
    shown = home.longboat("stats", cwd=cwd).lines
    at = next(index for index, line in enumerate(shown) if line.startswith("[[sends]]"))
    assert shown[at + 1].startswith("↳ [[sent]]")
    assert len(json.loads(home.longboat("stats", "--format", "json", cwd=cwd).out)["sessions"]) == 1
    listed = [columns(line)[-1] for line in home.longboat("session", "list", "--all", cwd=cwd).lines[1:]]
    assert listed == ["[[sends]]", "↳ [[sent]]"]
