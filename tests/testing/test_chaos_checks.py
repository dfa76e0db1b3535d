"""The checks of `make chaos` can fail: evidence in which all is well, and what they say when it is doctored."""

import asyncio
import random
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from chaos.checks import violations
from chaos.evidence import (
    Effect,
    Event,
    Evidence,
    Exchange,
    Json,
    Piece,
    Seen,
    Takeover,
    Violation,
    WorkspaceEvidence,
)
from chaos.model import complaint_about
from chaos.plan import COMMAND_TEXT, Kind, Step, call_command, command_of, encode
from chaos.readers import GIVE_UP_S, Reader, Temper
from chaos.server import MARK
from chaos.site import Site
from chaos.trouble import Way

from longboat.testing.cutoff import Cutoff

MOMENT = "2026-11-16T05:00:{:02d}.000000Z"
BEGAN_AT = 1794805200.0
"""05:00:00 on that day."""
BASH = Step(Kind.BASH, "c1.1.0.bash")
WRITE = Step(Kind.WRITE, "c1.1.1.write")


def run(run_id: str, seq: int, state: str, **more: Any) -> Json:
    empty = dict.fromkeys(("outcome", "folded_into", "parent_run_id", "started_at", "finished_at"))
    known = {"run_id": run_id, "seq": seq, "session_id": "s1", "state": state, "prompt": f"Prompt of {run_id}"}
    return empty | known | {"accepted_at": MOMENT.format(1), "cancel_requested": False} | more


def ended(run_id: str, outcome: str) -> Event:
    return Event("run_complete", "created", {"run_id": run_id, "outcome": outcome, "folded_into": None})


def message(message_id: str, role: str, *parts: Json, run_id: str = "r1") -> Json:
    known = {"id": message_id, "session_id": "s1", "run_id": run_id, "role": role, "parts": list(parts)}
    return known | {"summary": False, "finished_at": MOMENT.format(5)}


def call(step: Step) -> Json:
    return {"type": "tool_call", "id": f"call-{step.token}", "name": "bash", "input": "{}", "finished": True}


def result(step: Step) -> Json:
    return {"type": "tool_result", "tool_call_id": f"call-{step.token}", "finished": True, "is_error": False}


def exchange(kind: str, second: float, status: int, answer: Json | None = None, **more: Any) -> Exchange:
    times = {"sent_at": BEGAN_AT + second, "ended_at": BEGAN_AT + second + 0.1}
    known = {"client": "c1", "workspace": "w", "session_id": "s1", "status": status, "answer": answer or {}}
    body = {"prompt": f"Prompt at {second}", "command": f"true {second}"} | more.pop("body", {})
    return Exchange(kind=kind, body=body, **(known | times | more))


R1 = run("r1", 1, "finished", outcome="end_turn", started_at=MOMENT.format(2), finished_at=MOMENT.format(5))
R1["prompt"] = encode([BASH, WRITE])
R2 = run("r2", 2, "finished", outcome="canceled", finished_at=MOMENT.format(7))
ASK = {"id": "a1", "run_id": "r1", "tool_call_id": f"call-{BASH.token}"}
ASK_END = {"id": "a1", "run_id": "r1", "state": "answered", "answer": "once", "answered_by": "c1"}
TRANSCRIPT = [
    message("m1", "user", {"type": "text", "text": R1["prompt"]}),
    message("m2", "assistant", call(BASH), call(WRITE)),
    message("m3", "tool", result(BASH), result(WRITE)),
    message("m4", "assistant", {"type": "text", "text": "Done."}),
]


def effect(token: str, what: str, after_s: float) -> Effect:
    return Effect(token, what, BEGAN_AT + after_s, "a.1")


def evidence() -> Evidence:
    """r1 runs, asks once and is allowed; r2 is canceled while it waits."""
    log = [
        Event("run", "created", run("r1", 1, "accepted", prompt=R1["prompt"])),
        Event("run", "created", run("r2", 2, "queued")),
        Event("permission_request", "created", ASK),
        Event("permission_notification", "updated", ASK_END),
        *(Event("message", "created", each) for each in TRANSCRIPT),
        Event("run", "updated", R1),
        ended("r1", "end_turn"),
        Event("run", "updated", R2),
        ended("r2", "canceled"),
    ]
    replay = [Seen(f"w/1/{number}", bytes([number])) for number in range(1, len(log) + 1)]
    workspace = WorkspaceEvidence(
        name="w",
        log=log,
        replay=replay,
        readers={name: [Piece("w/1/0", list(replay))] for name in ("ann", "ben")},
        takeovers=[Takeover(BEGAN_AT, "a.1")],
        ledger=[R2, R1],
        transcripts={"s1": TRANSCRIPT},
        effects=[effect(BASH.token, "begin", 3), effect(BASH.token, "end", 3.1)],
        files={WRITE.token},
    )
    exchanges = [
        exchange("submit", 1.0, 202, {"run_id": "r1", "seq": 1}, body={"approve": "ask", "prompt": R1["prompt"]}),
        exchange("submit", 1.2, 202, {"run_id": "r2", "seq": 2}, body={"prompt": R2["prompt"]}),
        exchange("answer", 2.5, 200, ask_id="a1", body={"answer": "once"}),
        exchange("cancel_session", 6.9, 200, {"canceled": ["r2"]}),
    ]
    return Evidence(exchanges=exchanges, workspaces=[workspace])


def promises(doctored: Evidence) -> set[str]:
    return {violation.promise for violation in violations(doctored)}


def without(workspace: WorkspaceEvidence, event: Event) -> None:
    """The log as if that had never been in it, for the readers as well."""
    workspace.log = [each for each in workspace.log if each != event]


def test_sound_evidence_has_no_violation() -> None:
    assert violations(evidence()) == []


def test_what_was_found_on_the_way_is_a_violation() -> None:
    found = Violation(promise="no command outlives its server", what="pid 7")
    assert violations(Evidence(found=[found])) == [found]


def test_a_lost_terminal_event_is_found() -> None:
    doctored = evidence()
    without(doctored.workspaces[0], ended("r1", "end_turn"))
    assert "one terminal event for every accepted run" in promises(doctored)


def test_an_accepted_run_that_nobody_ever_heard_of_again_is_found() -> None:
    doctored = evidence()
    doctored.exchanges.append(exchange("submit", 3.0, 202, {"run_id": "r3", "seq": 3}))
    assert promises(doctored) == {"one terminal event for every accepted run", "ledger and log agree"}


def test_two_terminal_events_are_found() -> None:
    doctored = evidence()
    doctored.workspaces[0].log.append(ended("r1", "end_turn"))
    assert promises(doctored) == {"one terminal event for every accepted run"}


def test_another_outcome_in_the_ledger_than_in_the_log_is_found() -> None:
    doctored = evidence()
    doctored.workspaces[0].ledger[1] = R1 | {"outcome": "error"}
    assert promises(doctored) == {"ledger and log agree"}


def test_a_run_that_never_ends_is_found() -> None:
    doctored = evidence()
    doctored.workspaces[0].ledger[1] = run("r1", 1, "active")
    assert promises(doctored) == {"every run ends"}


def test_a_repeated_submit_that_made_a_second_run_is_found() -> None:
    doctored = evidence()
    doctored.exchanges.append(exchange("repeat", 4.0, 202, {"run_id": "r1", "seq": 3}))
    assert promises(doctored) == {"a run has one seq of its own"}


def test_a_run_that_started_after_its_cancel_is_found() -> None:
    doctored = evidence()
    late = R2 | {"started_at": MOMENT.format(8), "finished_at": MOMENT.format(9)}
    doctored.workspaces[0].log.append(Event("run", "updated", late))
    assert promises(doctored) == {"a canceled run does not start, go on or come back"}


def test_a_canceled_run_that_a_restart_interrupts_is_found() -> None:
    doctored = evidence()
    late = R2 | {"outcome": "interrupted", "started_at": MOMENT.format(2), "finished_at": MOMENT.format(9)}
    doctored.workspaces[0].log.append(Event("run", "updated", late))
    assert promises(doctored) == {"a canceled run does not start, go on or come back"}


def test_a_command_that_begins_under_the_next_server_after_a_cancel_is_found() -> None:
    doctored = evidence()
    token = "c1.2.0.bash"
    late = R2 | {"prompt": encode([Step(Kind.BASH, token)]), "started_at": MOMENT.format(2)}
    doctored.workspaces[0].log.append(Event("run", "updated", late | {"finished_at": MOMENT.format(9)}))
    doctored.workspaces[0].effects.append(effect(token, "begin", 8.5))
    assert promises(doctored) == set()
    doctored.workspaces[0].takeovers.append(Takeover(BEGAN_AT + 8, "a.2"))
    assert promises(doctored) == {"a canceled run does not start, go on or come back"}


def test_a_cancel_that_left_out_what_was_accepted_before_it_is_found() -> None:
    doctored = evidence()
    doctored.exchanges[-1] = exchange("cancel_session", 6.0, 200, {"canceled": []})
    assert promises(doctored) == {"a cancel covers all that was accepted before it"}


def test_a_cancel_that_took_a_later_run_is_found() -> None:
    """L6."""
    doctored = evidence()
    doctored.exchanges[1] = exchange("submit", 7.5, 202, {"run_id": "r2", "seq": 2})
    doctored.workspaces[0].log.append(Event("run", "updated", R2 | {"finished_at": MOMENT.format(9)}))
    assert promises(doctored) == {"a cancel leaves a later run alone"}


def test_a_cancel_may_take_a_run_whose_first_submit_was_heard_and_not_answered() -> None:
    fine = evidence()
    fine.exchanges[1] = exchange("submit", 1.2, 0, body={"run_id": "r2"})
    fine.exchanges.append(exchange("repeat", 8.0, 202, {"run_id": "r2", "seq": 2}, body={"run_id": "r2"}))
    assert violations(fine) == []


def test_a_cancel_whose_sender_gave_up_may_arrive_later() -> None:
    """Another server had it when the one that passed it on was killed."""
    fine = evidence()
    fine.exchanges[-1] = exchange("cancel_session", 0.5, 0)
    assert violations(fine) == []
    fine.exchanges[-1] = exchange("cancel_session", 0.5, 200, {"canceled": []})
    assert promises(fine) == {"a cancel leaves a later run alone"}


@pytest.mark.parametrize("place", [0, 4, -1])
def test_a_reader_that_missed_an_event_is_found(place: int) -> None:
    doctored = evidence()
    del doctored.workspaces[0].readers["ben"][0].seen[place]
    assert promises(doctored) == {"all readers see the same events"}


def test_a_reader_that_saw_other_bytes_is_found() -> None:
    doctored = evidence()
    doctored.workspaces[0].readers["ben"][0].seen[3] = Seen("w/1/4", b"other")
    assert promises(doctored) == {"all readers see the same events"}


def test_a_reader_that_saw_something_twice_is_found() -> None:
    """G4."""
    doctored = evidence()
    seen = doctored.workspaces[0].readers["ben"][0].seen
    seen[5:5] = seen[2:5]
    assert promises(doctored) == {"all readers see the same events"}


def test_a_reader_whose_cursor_was_refused_is_found() -> None:
    doctored = evidence()
    (whole,) = doctored.workspaces[0].readers["ben"]
    doctored.workspaces[0].readers["ben"] = [Piece("w/1/0", whole.seen[:4]), Piece("w/1/6", whole.seen[6:])]
    assert promises(doctored) == {"a cursor stays good over a restart"}
    doctored.crashes = 1
    assert promises(doctored) == {"a cursor stays good over a restart"}, "its last event is still there"


def test_a_reader_may_lose_its_place_if_a_crash_of_the_database_lost_what_it_saw() -> None:
    """G4."""
    fine = evidence()
    fine.crashes = 1
    (whole,) = fine.workspaces[0].readers["ben"]
    lost = [Seen("w/1/5", b"lost"), Seen("w/1/6", b"lost")]
    fine.workspaces[0].replay[4:] = [Seen(f"w/2/{each.cursor[4:]}", each.digest) for each in whole.seen[4:]]
    for reader in ("ann", "ben"):
        after = Piece("w/2/6", fine.workspaces[0].replay[6:])
        fine.workspaces[0].readers[reader] = [Piece("w/1/0", [*whole.seen[:4], *lost]), after]
    assert violations(fine) == []
    fine.workspaces[0].readers["ben"][0].seen.insert(2, lost[0])
    assert promises(fine) == {"a cursor stays good over a restart"}


def test_a_command_that_still_runs_when_another_server_is_the_owner_is_found() -> None:
    """G3."""
    doctored = evidence()
    doctored.workspaces[0].takeovers.append(Takeover(BEGAN_AT + 3.05, "b.1"))
    assert promises(doctored) == {"no command outlives a takeover"}


def test_a_command_that_runs_after_its_workspace_was_moved_is_found() -> None:
    """G12: the next node claims the workspace with its first request, and until then nothing may run."""
    doctored = evidence()
    doctored.exchanges.append(exchange("move", 2.0, 200, {"owner": "b"}, body={"node": "b"}))
    assert promises(doctored) == {"no command outlives a move"}
    doctored.workspaces[0].takeovers.append(Takeover(BEGAN_AT + 2.5, "b.1"))
    doctored.workspaces[0].effects = [replace(each, server="b.1") for each in doctored.workspaces[0].effects]
    assert violations(doctored) == []


def test_a_move_that_led_elsewhere_is_found() -> None:
    """G12."""
    doctored = evidence()
    doctored.exchanges.append(exchange("move", 8.0, 200, {"owner": "a"}, body={"node": "b"}))
    assert promises(doctored) == {"a move leads where it was told"}


@pytest.mark.parametrize(
    ("status", "code"), [(503, "server_leaving"), (503, "owner_unreachable"), (409, "tree_away"), (404, "")]
)
def test_a_prompt_that_was_refused_and_is_a_run_is_found(status: int, code: str) -> None:
    """B1, L15, G5."""
    doctored = evidence()
    doctored.exchanges[1] = exchange("submit", 1.2, status, {"code": code}, body={"prompt": R2["prompt"]})
    assert "what is refused is not accepted" in promises(doctored)


@pytest.mark.parametrize(("status", "answer"), [(0, {}), (503, {"code": "owner_lost"})])
def test_a_prompt_whose_outcome_is_unknown_may_be_a_run(status: int, answer: Json) -> None:
    fine = evidence()
    fine.exchanges[1] = exchange("submit", 1.2, status, answer, body={"prompt": R2["prompt"]})
    fine.exchanges.append(exchange("repeat", 8, 503, {"code": "server_leaving"}, body={"prompt": R2["prompt"]}))
    assert violations(fine) == []


def test_a_custom_command_that_was_refused_and_is_a_run_is_found() -> None:
    doctored = evidence()
    words = "Prompt 2 of c1: plan[say:c1.2]"
    late = R2 | {"prompt": f"{COMMAND_TEXT} {words}"}
    doctored.workspaces[0].log.append(Event("run", "updated", late))
    assert violations(doctored) == []
    doctored.exchanges[1] = exchange("submit", 1.2, 409, body={"prompt": call_command(words)})
    assert promises(doctored) == {"what is refused is not accepted"}


def test_a_custom_command_that_was_not_put_in_is_found() -> None:
    doctored = evidence()
    doctored.workspaces[0].log.append(Event("run", "updated", R2 | {"prompt": call_command("Prompt 2 of c1")}))
    assert promises(doctored) == {"a custom command is put in"}


def typed(**more: Any) -> Evidence:
    """Evidence in which r2 is a command that a person typed. It began."""
    step = Step(Kind.BASH, "c1.2.shell.bash")
    doctored = evidence()
    doctored.exchanges[1] = exchange("shell", 1.2, 202, {"run_id": "r2", "seq": 2}, body={"command": command_of(step)})
    late = R2 | {"prompt": f"!{command_of(step)}", "started_at": MOMENT.format(2)} | more
    doctored.workspaces[0].log.append(Event("run", "updated", late))
    doctored.workspaces[0].effects.append(effect(step.token, "begin", 3.5))
    return doctored


def test_what_a_person_typed_is_checked_like_a_call_of_the_model() -> None:
    assert violations(typed()) == []
    doctored = typed()
    doctored.workspaces[0].effects *= 2
    assert promises(doctored) == {"a command runs at most once"}
    assert promises(typed(started_at=None)) == {"a run that did not start does nothing"}
    doctored = typed()
    doctored.exchanges[1] = replace(doctored.exchanges[1], status=409, answer={"code": "tree_away"})
    assert promises(doctored) == {"what is refused is not accepted"}
    doctored = typed(finished_at=MOMENT.format(20))
    doctored.workspaces[0].effects[-1] = effect("c1.2.shell.bash", "begin", 14)
    assert promises(doctored) == {"a canceled run does not start, go on or come back"}


@pytest.mark.parametrize("way", Way)
async def test_trouble_with_a_link_is_what_it_is_called_and_can_be_healed(way: Way) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, Cutoff(("127.0.0.1", server.sockets[0].getsockname()[1])) as link:
        assert await _echoed(link) == b"ahoy\n"
        for seed in range(4):
            reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
            writer.write(b"first\n")
            await reader.readline()
            way.apply(link, random.Random(seed))
            passing = asyncio.create_task(_echoed(link))
            if way is Way.HALF_CLOSED:
                assert await reader.read() == b"", "either it is the client that sees the end, or the server has closed"
            if way.cuts:
                done, _ = await asyncio.wait([passing], timeout=0.1)
                assert not done or passing.result() == b""
            link.heal()
            assert await passing == (b"" if way is Way.RESET else b"ahoy\n")
            assert await _echoed(link) == b"ahoy\n"
            writer.close()


async def _echoed(link: Cutoff) -> bytes:
    """What comes back over a new connection."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
        writer.write(b"ahoy\n")
        line = await reader.readline()
        writer.close()
    except ConnectionError:
        return b""
    return line


def test_a_server_that_shows_something_else_is_found() -> None:
    """G2."""
    doctored = evidence()
    doctored.workspaces[0].elsewhere = ["ledger"]
    assert promises(doctored) == {"every server shows the same"}
    doctored = evidence()
    doctored.exchanges.append(exchange("undo", 8.0, 404))
    assert promises(doctored) == {"every server shows the same"}


def test_a_repeated_cancel_with_another_answer_is_found() -> None:
    """G5."""
    doctored = evidence()
    doctored.exchanges[-1] = replace(doctored.exchanges[-1], key="k")
    doctored.exchanges.append(exchange("cancel_session", 8.0, 200, {"canceled": ["r2"]}, key="k"))
    assert violations(doctored) == []
    doctored.exchanges.append(exchange("cancel_session", 8.2, 200, {"canceled": []}, key="k"))
    assert promises(doctored) == {"a repeated cancel has the same answer"}


def test_a_repeated_cancel_that_took_a_later_run_is_found() -> None:
    """G5."""
    doctored = evidence()
    doctored.exchanges[-1] = exchange("cancel_session", 1.1, 200, {"canceled": []}, key="k")
    doctored.exchanges.append(exchange("cancel_session", 6.9, 200, {"canceled": []}, key="k"))
    assert promises(doctored) == {"a cancel leaves a later run alone"}


def test_a_second_end_of_an_ask_is_found() -> None:
    """D6."""
    doctored = evidence()
    doctored.workspaces[0].log.append(Event("permission_notification", "updated", ASK_END | {"state": "withdrawn"}))
    assert "one ask, one end" in promises(doctored)


def test_an_ask_that_outlives_its_run_is_found() -> None:
    doctored = evidence()
    without(doctored.workspaces[0], Event("permission_notification", "updated", ASK_END))
    doctored.workspaces[0].pending = ["a1"]
    assert {"one ask, one end", "no ask outlives its run"} <= promises(doctored)


def test_two_clients_that_both_won_are_found() -> None:
    doctored = evidence()
    doctored.exchanges.append(replace(doctored.exchanges[2], client="c2"))
    assert promises(doctored) == {"the first answer wins"}


def test_a_command_that_ran_twice_is_found() -> None:
    doctored = evidence()
    doctored.workspaces[0].effects.append(effect(BASH.token, "begin", 4))
    assert promises(doctored) == {"a command runs at most once"}


def test_a_command_that_ran_unasked_is_found() -> None:
    doctored = evidence()
    for event in (Event("permission_request", "created", ASK), Event("permission_notification", "updated", ASK_END)):
        without(doctored.workspaces[0], event)
    del doctored.exchanges[2]
    assert promises(doctored) == {"no command runs without the answer that it needs"}


def test_a_call_without_a_result_is_found() -> None:
    doctored = evidence()
    doctored.workspaces[0].transcripts["s1"] = TRANSCRIPT[:2] + TRANSCRIPT[3:]
    assert promises(doctored) == {"a transcript is whole", "the events tell the transcript"}


def test_a_file_that_stayed_after_an_undo_is_found() -> None:
    """A4."""
    doctored = evidence()
    doctored.workspaces[0].log += [Event("message", "deleted", each) for each in TRANSCRIPT]
    doctored.workspaces[0].transcripts["s1"] = []
    assert promises(doctored) == {"undo and files agree"}


def test_a_fork_with_foreign_messages_is_found() -> None:
    doctored = evidence()
    foreign = message("m9", "user", {"type": "text", "text": "Never said."}, run_id="x") | {"session_id": "s2"}
    doctored.workspaces[0].log.append(Event("message", "created", foreign))
    doctored.workspaces[0].transcripts["s2"] = [foreign]
    doctored.exchanges.append(exchange("fork", 8.0, 202, {"id": "s2"}))
    assert promises(doctored) == {"a fork is a copy of its origin"}


def test_a_request_that_fails_inside_the_server_is_found() -> None:
    doctored = evidence()
    doctored.exchanges.append(exchange("undo", 8.0, 500))
    assert promises(doctored) == {"no request fails inside the server"}


def test_a_reader_that_got_no_stream_is_found() -> None:
    doctored = evidence()
    doctored.workspaces[0].refusals = ["ann: 500 Internal Server Error"]
    assert promises(doctored) == {"every reader gets its stream"}


def test_the_model_complains_of_a_call_without_a_result() -> None:
    user, made = {"role": "user", "content": "Go."}, {"role": "assistant", "tool_calls": [{"id": "k1"}]}
    told = {"role": "tool", "tool_call_id": "k1", "content": "ok"}
    assert complaint_about([user, made, told]) == ""
    assert complaint_about([user, made, user]) == "calls without a result: ['k1']"
    assert complaint_about([user, told]) == "a result of the call k1 that nobody made"
    assert complaint_about([user, user]) == "two messages of the user in a row"


def test_a_cancel_that_passed_over_a_lower_seq_is_found() -> None:
    """L6: of runs that were sent at the same time as the cancel, those before the newest that it named are covered."""
    doctored = evidence()
    passed_over = run(
        "r0", 0, "finished", outcome="end_turn", started_at=MOMENT.format(8), finished_at=MOMENT.format(9)
    )
    doctored.workspaces[0].log += [Event("run", "updated", passed_over), ended("r0", "end_turn")]
    doctored.workspaces[0].ledger.append(passed_over)
    assert promises(doctored) == {"a canceled run does not start, go on or come back"}


def test_a_process_of_a_command_is_found_by_its_directory(tmp_path: Path) -> None:
    site = Site(home=tmp_path)
    site.shared.mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"], cwd=site.shared, env={MARK: "a.7"}) as command:
        try:
            (found,) = site.living_commands()
            assert f"'pid': {command.pid}" in found
            assert site.commands_of("a.7") == site.stale_commands() == [found]
            assert site.commands_of("b.7") == []
        finally:
            command.kill()
    assert site.living_commands() == []


async def test_a_reader_that_is_past_a_cursor_has_reached_it() -> None:
    async with httpx2.AsyncClient() as http:
        reader = Reader([http], "/events", "ann", Temper.STEADY, after="w/3/12", seed="")
        async with asyncio.timeout(GIVE_UP_S / 2):
            await reader.reach("w/2/7")
