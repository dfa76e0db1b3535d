"""A cancel in the middle of every kind of work: it ends once, nothing is left running, the next prompt works.

T3, E4, A1, A2; opencode #20095, #40829; crush #1206.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from controlled_lsp import CAPABLE, RELAY, ControlledServer
from mcp_harness import stdio
from other_processes import is_alive, wait_until, wait_until_gone
from scenario import PLAIN, Parts, Scene, call, open_scenario

from longboat.testing import Gate, Pause, Say, ScriptedModel, ScriptedTool
from longboat.tools.protocol import ToolCall
from longboat.wire.asks import AskState
from longboat.wire.models import Outcome

GONE_S = 30
"""Before the commands would end by themselves. The benchmark `cancel` has the time that it takes (A1: a second)."""
STILL = [Say("Still here.")]
DEAF = """
trap '' TERM INT HUP
echo shell $$
(trap '' TERM; sleep 600) & echo child $!
setsid sleep 600 & echo stray $!
echo ready
sleep 600
"""
"""A shell that ignores TERM, with a child that does too, and one that has left for a session of its own."""


def pids_in(text: str) -> list[int]:
    words = [line.split() for line in text.splitlines()]
    return [int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdigit()]


async def test_in_bash_the_whole_family_of_a_shell_that_ignores_term_is_gone(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, [[call("bash", command=DEAF)], STILL]) as scene:
        await scene.start("work for ever")
        pids = pids_in(await scene.showing("ready"))
        assert len(pids) == 3
        assert all(is_alive(pid) for pid in pids)
        complete = await scene.cancel()
        await wait_until_gone(pids, within_s=GONE_S)
        assert complete.outcome is Outcome.CANCELED
        assert "ready" in scene.results()[0].content, "what was shown stays"
        assert scene.workspace.tools.jobs_shown() == ()
        await scene.canceled_once()


async def test_in_an_edit_that_waits_for_leave_nothing_is_written(tmp_path: Path) -> None:
    steps: list[list[Any]] = [
        [call("view", path="a.txt")],
        [call("edit", path="a.txt", old_text="one", new_text="two"), call("write", path="b.txt", content="b")],
        STILL,
    ]
    async with open_scenario(tmp_path, steps, files={"a.txt": "one\n"}) as scene:
        await scene.start("edit", ask=True)
        ask = await scene.asked()
        assert (ask.tool, "-one" in ask.detail, "+two" in ask.detail) == ("edit", True, True)
        await scene.cancel()
        (told,) = scene.watcher.of("permission_notification")
        assert (told.id, told.state) == (ask.id, AskState.WITHDRAWN)
        assert scene.git("status", "--porcelain") == ""
        await scene.canceled_once(lost=2)


async def test_at_any_instant_of_an_edit_the_file_is_whole_and_undo_knows_of_it(tmp_path: Path) -> None:
    """A3, A4: before the write, at the very instant the new text is on disk, when everybody has heard of it."""

    async def called(scene: Scene) -> None:
        await scene.model.wait_requests(2)

    async def written(scene: Scene) -> None:
        while scene.read("a.txt") == "one\n":  # noqa: ASYNC110 — it only lets the others go first
            await asyncio.sleep(0)

    async def told(scene: Scene) -> None:
        await scene.watcher.until(lambda event: event.type == "file")

    seen: list[str] = []
    for instant in (called, written, told):
        place = tmp_path / instant.__name__
        place.mkdir()
        edits = [call("edit", path="a.txt", old_text=old, new_text=new) for old, new in (("one", "two"), ("x", "y"))]
        async with open_scenario(
            place, [[call("view", path="a.txt")], edits, STILL], files={"a.txt": "one\n"}
        ) as scene:
            await scene.start("edit")
            await instant(scene)
            complete = await scene.cancel()
            seen.append(scene.read("a.txt"))
            assert complete.outcome is Outcome.CANCELED
            assert len(scene.watcher.of("file")) == (seen[-1] == "two\n")
            await scene.check()
            await scene.workspace.undo_turn(scene.running.session_id)
            assert scene.read("a.txt") == "one\n"
    assert seen == ["one\n", "two\n", "two\n"]


@pytest.mark.usefixtures("awaited_servers")
async def test_in_an_mcp_call_the_server_hears_of_it_and_goes_on(tmp_path: Path) -> None:
    steps: list[list[Any]] = [[call("mcp__test__hang")], STILL]
    notes = tmp_path / "notes"
    notes.mkdir()
    async with open_scenario(tmp_path, steps, config={"mcp": {"test": stdio(notes)}}) as scene:
        await scene.start("hang")
        await wait_until((notes / "hanging").exists)
        await scene.cancel()
        await wait_until((notes / "canceled").exists)
        await scene.canceled_once()
        server = int((notes / "pid").read_text())
        assert is_alive(server)
    await wait_until_gone([server], within_s=GONE_S)
    assert (notes / "started").read_text() == "started\n"


async def test_in_a_call_of_a_language_server_the_server_hears_of_it_and_goes_on(tmp_path: Path) -> None:
    entered: asyncio.Queue[ControlledServer] = asyncio.Queue()
    writers: list[asyncio.StreamWriter] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        entered.put_nowait(ControlledServer(int(await reader.readline()), reader, writer))

    door = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = door.sockets[0].getsockname()[1]
    command = {"command": sys.executable, "args": ["-S", "-E", "-c", RELAY, str(port)], "file_types": ["demo"]}
    steps: list[list[Any]] = [[call("definition", path="b.demo", symbol="knot")], STILL]
    files = {"a.demo": "let knot = 1\n", "b.demo": "use knot\n"}
    try:
        config = {"lsp": {**PLAIN["lsp"], "controlled": command}}
        async with open_scenario(tmp_path, steps, files=files, config=config) as scene:
            await scene.start("where is knot")
            controlled = await entered.get()
            await controlled.initialize(**CAPABLE)
            request = await controlled.expect("textDocument/definition")
            await scene.cancel()
            assert (await controlled.expect("$/cancelRequest"))["params"]["id"] == request["id"]
            await scene.canceled_once()
            assert controlled.is_alive
            leaving = asyncio.create_task(controlled.leave())
        await leaving
        await wait_until_gone([controlled.pid], within_s=GONE_S)
    finally:
        for writer in writers:
            writer.close()
        door.close()


async def test_in_sub_agents_their_shells_and_asks_end_with_them(tmp_path: Path) -> None:
    """A1: both children end canceled, one in bash, one waiting for a permission."""
    agent = "---\ndescription: Does things.\nread_only: false\n---\nDo it.\n"
    parts: dict[str, list[list[Any]]] = {
        "share the work": [[call("agent", prompt="run", agent="hand"), call("agent", prompt="ask", agent="hand")]],
        "run": [[call("bash", command="bash deaf.sh")]],
        "ask": [[call("bash", command="touch made")]],
    }
    parts["share the work"].append(STILL)
    files = {".agents/agents/hand.md": agent, "deaf.sh": DEAF}
    config = {"permissions": {"allow": ["bash(bash deaf.sh)"]}}
    async with open_scenario(tmp_path, Parts(parts), files=files, config=config) as scene:
        await scene.start("share the work", ask=True)
        ask = await scene.asked()
        assert (ask.parent_session_id, ask.parent_run_id) == (scene.running.session_id, "r1")
        assert ask.argument == "touch made"
        pids = pids_in(await scene.showing("ready"))
        assert len(pids) == 3
        await scene.cancel()
        await wait_until_gone(pids, within_s=GONE_S)
        children = {run.run_id for run in scene.watcher.of("run") if run.parent_run_id == "r1"}
        ends = [scene.watcher.terminals(run_id) for run_id in children]
        assert [[end.outcome for end in each] for each in ends] == [[Outcome.CANCELED]] * 2
        (told,) = scene.watcher.of("permission_notification")
        assert (told.id, told.state) == (ask.id, AskState.WITHDRAWN)
        assert not (scene.path / "made").exists()
        await scene.canceled_once(lost=4)


async def test_at_any_instant_of_sending_sub_agents_none_works_on_after_its_parent(tmp_path: Path) -> None:
    """A1: also if the cancel comes while a child is being accepted. When the parent has ended, so have they."""
    for turns in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55):
        place = tmp_path / str(turns)
        place.mkdir()
        gates = [Gate(), Gate()]
        parts: dict[str, list[list[Any]]] = {
            "share": [[call("agent", prompt="left"), call("agent", prompt="right")]],
            "left": [[Pause(gates[0])]],
            "right": [[Pause(gates[1])]],
        }
        async with open_scenario(place, Parts(parts)) as scene:
            await scene.start("share")
            await scene.watcher.until(lambda event: event.type == "message" and event.payload.role == "tool")
            for _ in range(turns):
                await asyncio.sleep(0)
            await scene.cancel()
            order = [end.run_id for end in scene.watcher.of("run_complete")]
            children = [run.run_id for run in await scene.running.ledger() if run.run_id != "r1"]
            assert sorted(order) == sorted(["r1", *children])
            assert order[-1] == "r1", f"a child went on after its parent, {turns} turns of the loop after the call"
            await scene.check()


async def test_in_a_question_it_is_withdrawn(tmp_path: Path) -> None:
    steps: list[list[Any]] = [[call("question", text="Red or blue?", choices=["red", "blue"])], STILL]
    async with open_scenario(tmp_path, steps) as scene:
        await scene.start("paint")
        question = (await scene.other.until(lambda event: event.type == "question_request")).payload
        await scene.cancel()
        (told,) = scene.watcher.of("question_notification")
        assert (told.id, told.state) == (question.id, AskState.WITHDRAWN)
        await scene.canceled_once()


async def test_in_a_hook_its_process_ends(tmp_path: Path) -> None:
    """A5: a guard that hangs holds up no cancel, and the call it guards is not made."""
    hook = {"command": "echo $$ > hook.pid; exec sleep 600"}
    steps: list[list[Any]] = [[call("write", path="a.txt", content="a")], STILL]
    async with open_scenario(tmp_path, steps, config={"hooks": {"before_tool": [hook]}}) as scene:
        await scene.start("write")
        pid_file = scene.path / "hook.pid"
        await wait_until(lambda: pid_file.exists() and pid_file.read_text().strip())
        await scene.cancel()
        await wait_until_gone([int(pid_file.read_text())], within_s=GONE_S)
        assert not (scene.path / "a.txt").exists()
        await scene.canceled_once()


async def test_between_two_calls_of_one_answer_the_second_is_not_made(tmp_path: Path) -> None:
    """T3: what was done stays told as done, what was not is told as canceled."""
    gate = Gate()

    def hold(call_: ToolCall) -> str:
        return "held"

    model = ScriptedModel(
        [[call("write", path="a.txt", content="a"), call("hold"), call("write", path="b.txt", content="b")], STILL],
        context_window=100_000,
    )
    async with open_scenario(tmp_path, model, tools=[ScriptedTool("hold", hold, gate=gate)]) as scene:
        await scene.start("write two")
        await gate.reached()
        await scene.cancel()
        assert [part.is_error for part in scene.results()] == [False, True, True]
        assert [(scene.path / name).exists() for name in ("a.txt", "b.txt")] == [True, False]
        await scene.canceled_once(lost=2)
