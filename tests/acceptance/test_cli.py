"""`longboat run` as a user has it: real processes, a real server, a scripted model (R1–R5)."""

import json
import os
import pty
import signal
from pathlib import Path
from typing import Any

import pytest
from cli_home import Home, finished, wait_for_line
from terminal import read_until

from longboat.models.protocol import StopReason
from longboat.testing import Gate, Hang, Pause, Refuse, Say, Stop, words

pytestmark = pytest.mark.acceptance


def ledger(home: Home, cwd: Path) -> dict[str, dict[str, Any]]:
    """The runs of a workspace by prompt."""
    runs = [json.loads(line) for line in home.longboat("runs", "--format", "json", cwd=cwd).lines]
    return {run["prompt"]: run for run in runs}


def test_r2_piped_it_prints_the_final_text_once_and_exits_0(home: Home, cwd: Path) -> None:
    done = home.longboat("run", "hello", "there", cwd=cwd)
    assert (done.code, done.out) == (0, "echo: hello there\n")


def test_r2_json_is_one_line_per_event_of_its_own_run_with_the_terminal_event_last(home: Home, cwd: Path) -> None:
    done = home.longboat("run", "--format", "json", "--run-id", "my-run.1", "hi", cwd=cwd)
    events = done.events
    assert done.code == 0
    assert {event["payload"]["payload"]["run_id"] for event in events} == {"my-run.1"}
    assert [event["type"] for event in events].count("run_complete") == 1
    last = events[-1]["payload"]["payload"]
    assert (events[-1]["type"], last["text"], last["outcome"]) == ("run_complete", "echo: hi", "end_turn")


def test_r2_on_a_terminal_the_text_is_there_before_the_run_is_over(home: Home, cwd: Path) -> None:
    home.endpoint.script("live", [Say("first "), Pause(Gate("live")), Say("second")])
    outer, inner = pty.openpty()
    process = home.start("run", "[[live]]", cwd=cwd, stdout=inner)
    os.close(inner)
    seen = read_until(outer, b"first")  # a space at the end is written with the next word
    assert b"second" not in seen
    home.endpoint.open_gate("live")
    read_until(outer, b"second\r\n")
    done = finished(process)
    os.close(outer)
    assert done.code == 0
    assert "longboat run -c" in done.err


def test_r1_a_model_that_refuses_ends_in_exit_1_and_one_readable_line(home: Home, cwd: Path) -> None:
    home.endpoint.script("refused", [Refuse(401, message="bad key")])
    done = home.longboat("run", "[[refused]]", cwd=cwd)
    assert (done.code, done.out) == (1, "")
    first, hint = done.err.splitlines()
    assert first.startswith("longboat: ")
    assert "bad key" in first
    assert "longboat run -s" in hint


def test_a_retry_is_told_on_stderr_and_the_answer_comes_once(home: Home, cwd: Path) -> None:
    home.endpoint.script("flaky", [Refuse(503)], words("all is well"))
    done = home.longboat("run", "[[flaky]]", cwd=cwd)
    assert (done.code, done.out) == (0, "all is well\n")
    assert done.err.strip()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_r4_a_stop_signal_cancels_its_own_run_and_exits_130(home: Home, cwd: Path, stop: signal.Signals) -> None:
    own, foreign = f"mine-{stop.name}", f"other-{stop.name}"
    for name in (own, foreign):
        home.endpoint.script(name, [Say("some"), Pause(Gate(name)), Say(" more")])
    other = home.start("run", f"[[{foreign}]]", cwd=cwd)
    mine = home.start("run", f"[[{own}]]", cwd=cwd)
    home.endpoint.wait_for_gate(foreign)
    home.endpoint.wait_for_gate(own)
    mine.send_signal(stop)
    done = finished(mine)
    assert (done.code, done.err.splitlines()[1:]) == (130, ["canceled"])
    home.endpoint.open_gate(foreign)
    done = finished(other)
    assert (done.code, done.out) == (0, "some more\n")
    runs = ledger(home, cwd)
    assert (runs[f"[[{own}]]"]["outcome"], runs[f"[[{foreign}]]"]["outcome"]) == ("canceled", "end_turn")


def test_r1_a_run_that_another_client_cancels_exits_130(home: Home, cwd: Path) -> None:
    home.endpoint.script("victim", [Say("x"), Pause(Gate("victim"))])
    process = home.start("run", "--run-id", "victim", "[[victim]]", cwd=cwd)
    home.endpoint.wait_for_gate("victim")
    assert home.longboat("cancel", "victim", cwd=cwd).code == 0
    done = finished(process)
    assert (done.code, done.out) == (130, "x\n")


def test_r4_a_second_ctrl_c_leaves_at_once(home: Home, cwd: Path) -> None:
    home.endpoint.script("stuck", [Say("x"), Pause(Gate("stuck"))])
    process = home.start("run", "--run-id", "stuck", "[[stuck]]", cwd=cwd)
    home.endpoint.wait_for_gate("stuck")
    server = home.discovery().pid
    os.kill(server, signal.SIGSTOP)  # so that the cancel is not answered and it has to wait
    try:
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "Ctrl-C again" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 130
    finally:
        os.kill(server, signal.SIGCONT)
    assert home.longboat("cancel", "stuck", cwd=cwd).code == 0


def test_b2_when_its_reader_goes_away_it_leaves_quietly_and_the_run_goes_on(home: Home, cwd: Path) -> None:
    home.endpoint.script("unread", [Say("x"), Pause(Gate("unread")), Say("y")])
    process = home.start("run", "--format", "json", "--run-id", "unread", "[[unread]]", cwd=cwd)
    home.endpoint.wait_for_gate("unread")
    assert process.stdout is not None
    process.stdout.close()
    home.endpoint.open_gate("unread")
    assert process.wait(30) == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""
    again = home.longboat("run", "-c", "--run-id", "unread", "[[unread]]", cwd=cwd)
    assert (again.code, again.out) == (0, "xy\n")


def test_b2_a_killed_client_does_not_end_its_run_and_the_same_run_id_finds_it_again(home: Home, cwd: Path) -> None:
    home.endpoint.script("orphan", [Say("still "), Pause(Gate("orphan")), Say("here")])
    process = home.start("run", "--run-id", "orphan", "[[orphan]]", cwd=cwd)
    home.endpoint.wait_for_gate("orphan")
    process.kill()
    process.wait()
    again = home.start("run", "-c", "--run-id", "orphan", "[[orphan]]", cwd=cwd)
    home.endpoint.open_gate("orphan")
    done = finished(again)
    assert (done.code, done.out) == (0, "still here\n")


def test_an_answer_that_is_cut_off_is_said_to_be_so_also_in_a_pipe(home: Home, cwd: Path) -> None:
    home.endpoint.script("long", [Say("so far"), Stop(StopReason.MAX_TOKENS)])
    done = home.longboat("run", "--run-id", "long", "[[long]]", cwd=cwd)
    assert (done.code, done.out) == (0, "so far\n")
    assert "The answer was cut off" in done.err


def test_a_mistake_in_the_configuration_is_told_as_such(home: Home, cwd: Path) -> None:
    (cwd / "longboat.json").write_text('{"tilte": 1}')
    done = home.longboat("run", "hi", cwd=cwd)
    assert done.code == 1
    assert "unknown key" in done.err
    assert "could not continue" not in done.err


def test_going_on_where_nothing_began_begins_and_says_so(home: Home, cwd: Path) -> None:
    done = home.longboat("run", "-c", "hi", cwd=cwd)
    assert (done.code, done.out) == (0, "echo: hi\n")
    assert "Starting a new one." in done.err
    assert "Starting a new one." not in home.longboat("run", "-c", "again", cwd=cwd).err


@pytest.mark.parametrize("dash", [[], ["-"]])
def test_the_prompt_is_read_from_a_pipe(home: Home, cwd: Path, dash: list[str]) -> None:
    done = home.longboat("run", *dash, cwd=cwd, given="from afar")
    assert (done.code, done.out) == (0, "echo: from afar\n")


def test_an_empty_prompt_is_refused_before_anything_is_made_for_it(home: Home, cwd: Path) -> None:
    for arguments, given in (([], " \n"), (["-"], ""), ([""], None), (["", " "], "")):
        done = home.longboat("run", *arguments, cwd=cwd, given=given)
        assert done.code == 2
        assert done.err.endswith("Error: The prompt is empty.\n")
    assert "No sessions yet" in home.longboat("session", "list", cwd=cwd).out


def test_r4_detach_prints_the_run_id_and_leaves(home: Home, cwd: Path) -> None:
    home.endpoint.script("behind", [Pause(Gate("behind")), Say("done")])
    done = home.longboat("run", "--detach", "[[behind]]", cwd=cwd)
    home.endpoint.wait_for_gate("behind")
    assert done.lines == [ledger(home, cwd)["[[behind]]"]["run_id"]]
    home.endpoint.open_gate("behind")


def test_two_clients_on_one_session_queue_and_each_gets_its_own_answer(home: Home, cwd: Path) -> None:
    home.endpoint.script("ahead", [Say("one"), Pause(Gate("ahead"))])
    ahead = home.start("run", "[[ahead]]", cwd=cwd)
    home.endpoint.wait_for_gate("ahead")
    behind = home.start("run", "-c", "two", cwd=cwd)
    assert behind.stderr is not None
    assert behind.stderr.readline() == "queued: runs next\n"
    home.endpoint.open_gate("ahead")
    assert finished(ahead).out == "one\n"
    assert finished(behind).out == "echo: two\n"


def test_a_steering_prompt_is_taken_into_the_running_turn_and_ends_with_it(home: Home, cwd: Path) -> None:
    home.endpoint.script("steered", [Say("one"), Pause(Gate("steered"))])
    host = home.start("run", "[[steered]]", cwd=cwd)
    home.endpoint.wait_for_gate("steered")
    steering = home.start("run", "-c", "--delivery", "steer", "turn left", cwd=cwd)
    assert steering.stderr is not None
    assert steering.stderr.readline() == "queued: steers the running turn at its next step\n"
    home.endpoint.open_gate("steered")
    # Without tools the turn has no further step to fold into: it then runs as a turn of its own (L10).
    assert finished(host).code == 0
    assert finished(steering).out == "echo: turn left\n"


def test_r3_a_server_gone_for_good_is_a_clear_error_and_never_exit_0(own_home: Home) -> None:
    own_home.endpoint.script("doomed", [Say("x"), Hang()])
    cwd = own_home.workspace("w")
    own_home.serve()
    process = own_home.start("run", "--format", "json", "--give-up-after", "0.5", "[[doomed]]", cwd=cwd)
    wait_for_line(process, '"active"')
    own_home.kill_server()
    done = finished(process)
    assert done.code == 1
    assert "longboat: Gave up after 0.5 s" in done.err
    assert "run_complete" not in done.out


def test_r3_a_server_killed_and_started_again_gives_every_waiting_client_its_terminal_event(own_home: Home) -> None:
    cwd = own_home.workspace("w")
    own_home.endpoint.script("crash", [Say("x"), Hang()])
    own_home.serve()
    active = own_home.start("run", "--format", "json", "[[crash]]", cwd=cwd)
    wait_for_line(active, '"message_delta"')
    queued = own_home.start("run", "-c", "behind", cwd=cwd)
    assert queued.stderr is not None
    assert queued.stderr.readline() == "queued: runs next\n"
    own_home.kill_server()
    own_home.serve()
    interrupted = finished(active)
    assert interrupted.code == 1
    assert interrupted.events[-1]["payload"]["payload"]["outcome"] == "interrupted"
    done = finished(queued)
    assert (done.code, done.out) == (0, "echo: behind\n")
