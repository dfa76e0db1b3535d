"""Hooks: real processes, JSON in and out, exit 2 denies, nothing else blocks (A5)."""

import asyncio
import hashlib
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from open_programs import open_programs
from other_processes import is_alive

from longboat.config.load import load_config, user_config_file
from longboat.config.trust import record, trusted_file
from longboat.context import hooks
from longboat.context.hooks import Hook, HookCall, HookEvent, HookResult, Hooks, ask, read_hooks
from longboat.context.process import StartProgram, start_unguarded
from longboat.errors import ConfigInvalid

ENVIRON = {"PATH": os.environ["PATH"]}


class Bench:
    """A directory where hooks run, and the call they are asked about."""

    def __init__(self, directory: Path, start: StartProgram) -> None:
        self.directory = directory
        self.start = start

    def call(self, event: HookEvent = HookEvent.BEFORE_TOOL, **fields: Any) -> HookCall:
        if event in (HookEvent.BEFORE_TOOL, HookEvent.AFTER_TOOL):
            fields = {"tool": "bash", "input": {"command": "ls"}, **fields}
        return HookCall(event=event, session_id="s1", run_id="r1", directory=str(self.directory), **fields)

    async def ask(self, *commands: str, timeout_s: float = 60.0) -> HookResult:
        before = tuple(Hook(command=command, timeout_s=timeout_s) for command in commands)
        return await ask(Hooks(before_tool=before), self.call(), environ=ENVIRON, start=self.start)

    def says(self, **reply: Any) -> str:
        """A hook that prints this."""
        return f"cat <<'END'\n{json.dumps(reply)}\nEND"

    def read(self, name: str) -> Any:
        return json.loads((self.directory / name).read_text())


@pytest.fixture(params=["below a guard", "alone"])
async def bench(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    async with open_programs(tmp_path) as programs:
        yield Bench(tmp_path, programs.start if request.param == "below a guard" else start_unguarded)


@pytest.fixture
def lone_bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, start_unguarded)


async def wait_for_line(path: Path) -> str:
    """A line of a named pipe, as soon as somebody writes it."""
    return (await asyncio.to_thread(path.read_text)).strip()


async def test_a_hook_that_says_nothing_changes_nothing(bench: Bench) -> None:
    assert await bench.ask("true") == HookResult()


async def test_a_hook_reads_what_happens_as_json_in_the_workspace(bench: Bench) -> None:
    await bench.ask("cat > seen.json")
    assert bench.read("seen.json") == {
        "event": "before_tool",
        "session_id": "s1",
        "run_id": "r1",
        "directory": str(bench.directory),
        "tool": "bash",
        "input": {"command": "ls"},
    }


async def test_each_event_has_its_own_hooks_and_facts(bench: Bench) -> None:
    every = Hooks(**{event.value: (Hook(command=f"cat > {event}.json"),) for event in HookEvent})
    for call in (
        bench.call(HookEvent.AFTER_TOOL, result="ok", is_error=False, call_id="c1"),
        bench.call(HookEvent.PROMPT_SUBMITTED, prompt="do it"),
        bench.call(HookEvent.RUN_FINISHED, outcome="failed", error="no model"),
    ):
        assert await ask(every, call, environ=ENVIRON, start=bench.start) == HookResult()
    assert {key: bench.read("after_tool.json")[key] for key in ("result", "is_error", "call_id")} == {
        "result": "ok",
        "is_error": False,
        "call_id": "c1",
    }
    assert bench.read("prompt_submitted.json")["prompt"] == "do it"
    assert bench.read("run_finished.json")["outcome"] == "failed"
    assert not (bench.directory / "before_tool.json").exists()


async def test_a_hooks_environment_is_the_one_passed_in(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    await bench.ask("env > env.txt")
    text = (bench.directory / "env.txt").read_text()
    assert "secret" not in text
    assert f"PATH={ENVIRON['PATH']}" in text


async def test_exit_2_denies_with_stderr_as_the_reason_and_ends_the_row(bench: Bench) -> None:
    result = await bench.ask("echo ignored; echo 'not on Fridays' >&2; exit 2", "touch later")
    assert result == HookResult(decision="deny", reason="not on Fridays")
    assert not (bench.directory / "later").exists()


async def test_a_reply_can_deny_and_a_denial_always_has_a_reason(bench: Bench) -> None:
    assert await bench.ask(bench.says(decision="deny", reason="no")) == HookResult(decision="deny", reason="no")
    for command in (bench.says(decision="deny"), "exit 2"):
        result = await bench.ask(bench.says(decision="allow", reason="sure"), command)
        assert result == HookResult(decision="deny", reason="A hook denied this without giving a reason.")


async def test_a_reply_can_allow_and_add_context(bench: Bench) -> None:
    result = await bench.ask(bench.says(decision="allow", context="one"), bench.says(context="two"))
    assert result == HookResult(decision="allow", context=("one", "two"))


async def test_the_next_hook_sees_the_replaced_input(bench: Bench) -> None:
    result = await bench.ask(bench.says(input={"command": "ls -l"}), "cat > seen.json")
    assert result == HookResult(input={"command": "ls -l"})
    assert bench.read("seen.json")["input"] == {"command": "ls -l"}


async def test_leave_given_for_one_input_does_not_hold_for_another(bench: Bench) -> None:
    allow = bench.says(decision="allow", reason="harmless")
    change = bench.says(input={"command": "rm -rf x"})
    assert await bench.ask(allow, change) == HookResult(input={"command": "rm -rf x"})
    assert await bench.ask(change, allow) == HookResult(
        decision="allow", reason="harmless", input={"command": "rm -rf x"}
    )


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("echo oops >&2; exit 1", "failed with exit code 1: oops"),
        ("exit 3", "failed with exit code 3: no output"),
        ("kill -9 $$", "failed with exit code -9: no output"),
        ("echo hello", "printed an invalid reply: JSON is malformed: invalid character (byte 0)."),
        ('echo \'{"decison": "deny"}\'', "printed an invalid reply: Object contains unknown field `decison`."),
        ("echo '{\"input\": []}'", "printed an invalid reply: Expected `object | null`, got `array`"),
        ("printf '\"\\377\"'", "printed an invalid reply: "),
        ("yes", "printed more than 256 KB."),
        ("yes >&2", "printed more than 256 KB."),
    ],
)
async def test_other_failures_are_reported_and_never_block(bench: Bench, command: str, problem: str) -> None:
    result = await bench.ask(command, bench.says(context="the next one ran"))
    assert result.decision is None
    assert result.context == ("the next one ran",)
    (told,) = result.problems
    assert told.startswith(f"Hook {command!r} {problem}")


async def test_a_hook_in_a_directory_that_is_gone_is_reported(bench: Bench, tmp_path: Path) -> None:
    bench.directory = tmp_path / "gone"
    (told,) = (await bench.ask("true")).problems
    assert told.startswith("Hook 'true' could not be started: ")


async def test_a_hook_that_takes_too_long_is_ended_with_its_children_and_reported(bench: Bench) -> None:
    result = await bench.ask("trap '' TERM; sleep 600 & echo $! > child; wait", timeout_s=1.0)
    assert result.problems == (
        "Hook \"trap '' TERM; sleep 600 & echo $! > child; wait\" took longer than 1 s and was killed.",
    )
    await _until_dead(int((bench.directory / "child").read_text()))


async def test_a_canceled_run_ends_its_hook_with_its_children(bench: Bench) -> None:
    pipe = bench.directory / "pipe"
    os.mkfifo(pipe)
    asking = asyncio.create_task(bench.ask(f"trap '' TERM; sleep 600 & echo $! > '{pipe}'; wait"))
    child = int(await wait_for_line(pipe))
    assert is_alive(child)
    asking.cancel()
    async with asyncio.timeout(10):
        with pytest.raises(asyncio.CancelledError):
            await asking
        await _until_dead(child)


async def test_a_run_that_is_canceled_while_its_hook_starts_ends_it_with_its_children(
    lone_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe, known = lone_bench.directory / "pipe", asyncio.Event()
    os.mkfifo(pipe)
    start = asyncio.create_subprocess_exec

    async def slowly(*argv: str, **more: Any) -> asyncio.subprocess.Process:
        """On a busy machine the program runs long before its starter hears of it."""
        process = await start(*argv, **more)
        await known.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)
    asking = asyncio.create_task(lone_bench.ask(f"sleep 600 & echo $! > '{pipe}'; wait"))
    child = int(await wait_for_line(pipe))
    asking.cancel()
    await asyncio.wait([asking], timeout=0)  # the cancel has arrived
    known.set()
    async with asyncio.timeout(10):
        with pytest.raises(asyncio.CancelledError):
            await asking
        await _until_dead(child)


async def test_a_cancel_of_a_hook_that_cannot_be_started_is_not_lost(
    lone_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, known = asyncio.Event(), asyncio.Event()

    async def fail(*_: str, **__: Any) -> asyncio.subprocess.Process:
        begun.set()
        await known.wait()
        raise FileNotFoundError("the directory is gone")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", fail)
    asking = asyncio.create_task(lone_bench.ask("true"))
    await begun.wait()
    asking.cancel()
    await asyncio.wait([asking], timeout=0)
    known.set()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_child_that_holds_the_output_open_keeps_nobody_waiting(bench: Bench) -> None:
    async with asyncio.timeout(20):
        result = await bench.ask(f"sleep 600 & echo $! > child; {bench.says(context='done')}")
    assert result == HookResult(context=("done",))
    await _until_dead(int((bench.directory / "child").read_text()))


async def test_a_hook_that_reads_nothing_of_a_large_input_is_fine(bench: Bench) -> None:
    call = bench.call(input={"content": "x" * 1_000_000})
    asking = ask(Hooks(before_tool=(Hook(command="true"),)), call, environ=ENVIRON, start=bench.start)
    assert await asking == HookResult()


async def test_a_hook_sees_a_bounded_result(bench: Bench) -> None:
    call = bench.call(HookEvent.AFTER_TOOL, result="x" * 1_000_000, is_error=False)
    row = Hooks(after_tool=(Hook(command="cat > seen.json"),))
    await ask(row, call, environ=ENVIRON, start=bench.start)
    assert len(bench.read("seen.json")["result"]) == hooks.MAX_RESULT


async def test_hooks_leave_no_descriptors_behind(bench: Bench) -> None:
    await bench.ask("true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await bench.ask("echo x >&2", "exit 2")
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("matcher", "tools"),
    [
        ("*", {"bash", "edit", "mcp_x_y"}),
        ("", {"bash", "edit", "mcp_x_y"}),
        ("bash", {"bash"}),
        ("edit | bash", {"bash", "edit"}),
        ("mcp_*", {"mcp_x_y"}),
        ("?dit", {"edit"}),
        ("Bash", set()),
    ],
)
def test_a_matcher_names_tools(matcher: str, tools: set[str]) -> None:
    hook = Hook(command="true", matcher=matcher)
    assert {tool for tool in ("bash", "edit", "mcp_x_y") if hook.matches(tool)} == tools


async def test_only_hooks_that_match_are_run(bench: Bench) -> None:
    row = Hooks(before_tool=(Hook(command="exit 2", matcher="edit"), Hook(command="touch ran", matcher="bash")))
    assert await ask(row, bench.call(), environ=ENVIRON) == HookResult()
    assert (bench.directory / "ran").exists()


def test_the_section_of_the_config_is_read() -> None:
    section = {"before_tool": [{"matcher": "bash", "command": "guard", "timeout_s": 5}], "run_finished": []}
    assert read_hooks(section) == Hooks(before_tool=(Hook(matcher="bash", command="guard", timeout_s=5.0),))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"befor_tool": []}, "hooks: object contains unknown field `befor_tool`"),
        ({"before_tool": [{}]}, "hooks.before_tool[0]: object missing required field `command`"),
        (
            {"before_tool": [{"command": "x", "matcher": ".*"}]},
            "hooks.before_tool[0].matcher: expected tool names, with * and ? as wildcards and | between several",
        ),
        (
            {"after_tool": [{"command": "x", "timeout_s": 0}]},
            "hooks.after_tool[0].timeout_s: expected `float` > 0.0",
        ),
    ],
)
def test_a_misspelled_guard_is_refused_not_left_out(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read_hooks(section)
    assert caught.value.message == message


def test_a_projects_hooks_come_after_the_users_and_never_replace_them(tmp_path: Path) -> None:
    """The user's own may be guards."""
    own, project = user_config_file({}, tmp_path), tmp_path / "longboat.json"
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps({"hooks": {"before_tool": [{"command": "guard"}]}}))
    theirs = {"before_tool": [{"command": "theirs"}], "after_tool": [{"command": "format"}]}
    project.write_text(json.dumps({"hooks": theirs}))
    record(trusted_file(own), tmp_path, hashlib.sha256(project.read_bytes()).hexdigest())
    both = read_hooks(load_config(tmp_path, environ={}, user_dir=tmp_path).hooks)
    assert [hook.command for hook in both.before_tool] == ["guard", "theirs"]
    assert [hook.command for hook in both.after_tool] == ["format"]


async def _until_dead(pid: int) -> None:
    """A killed process that is not our child is told to nobody: its descriptor tells of its end."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        async with asyncio.timeout(5):
            await ended.wait()
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        pytest.fail(f"process {pid} is still alive")
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
