"""What a project's files and programs say to the agent, in whole tasks: hooks, AGENTS.md, skills, sub-agents (A5)."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from other_processes import wait_until
from scenario import Parts, call, open_scenario

from longboat.errors import ModelError
from longboat.testing import Fail, Gate, Pause, Say
from longboat.wire.asks import PermissionAnswer
from longboat.wire.models import AgentEventType, Outcome
from longboat.wire.requests import AnswerPermission


def replying(**reply: Any) -> str:
    """A hook's command that notes what it is told and says this."""
    said = json.dumps(reply)
    code = f"import sys; open('heard.jsonl', 'a').write(sys.stdin.read() + chr(10)); print({said!r})"
    return f"{sys.executable} -S -E -c {shlex.quote(code)}"


def heard(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "heard.jsonl").read_text().splitlines()]


async def test_a_hook_denies_a_call_and_the_model_reads_why(tmp_path: Path) -> None:
    """Exit 2 denies; only the tools that match are asked about; leave for everything does not outrank it."""
    hook = {"matcher": "bash|write", "command": "echo 'not on a Friday' >&2; exit 2"}
    steps: list[list[Any]] = [[call("write", path="a.txt", content="a"), call("ls", path=".")], [Say("Then Monday.")]]
    async with open_scenario(tmp_path, steps, config={"hooks": {"before_tool": [hook]}}) as scene:
        assert (await scene.turn("write")).text == "Then Monday."
        denied, listed = scene.results()
        assert (denied.is_error, "not on a Friday" in denied.content) == (True, True)
        assert not listed.is_error
        assert not (scene.path / "a.txt").exists()
        await scene.check()


async def test_a_hook_changes_the_input_and_what_is_asked_is_the_changed_one(tmp_path: Path) -> None:
    """A2: nobody is asked for one thing while another is done."""
    hook = {"matcher": "bash", "command": replying(input={"command": "touch safe"}, context="made safer")}
    steps: list[list[Any]] = [[call("bash", command="touch risky")], [Say("ok")]]
    async with open_scenario(tmp_path, steps, config={"hooks": {"before_tool": [hook]}}) as scene:
        await scene.start("touch", ask=True)
        ask = await scene.asked()
        assert ask.argument == "touch safe"
        await scene.workspace.asks.answer_permission(ask.id, AnswerPermission(answer=PermissionAnswer.ONCE))
        assert (await scene.running.completed("r1")).outcome is Outcome.END_TURN
        assert [(scene.path / name).exists() for name in ("safe", "risky")] == [True, False]
        assert "made safer" in scene.fine()[0]
        (told,) = heard(scene.path)
        assert (told["event"], told["tool"], told["input"]) == ("before_tool", "bash", {"command": "touch risky"})
        assert (told["run_id"], told["session_id"]) == ("r1", scene.running.session_id)
        await scene.check()


async def test_a_hook_allows_a_call_and_nobody_is_asked(tmp_path: Path) -> None:
    hook = {"matcher": "bash", "command": replying(decision="allow")}
    steps: list[list[Any]] = [[call("bash", command="touch made")], [Say("ok")]]
    async with open_scenario(tmp_path, steps, config={"hooks": {"before_tool": [hook]}}) as scene:
        await scene.turn("touch", ask=True)
        assert scene.watcher.of("permission_request") == []
        assert (scene.path / "made").exists()
        await scene.check()


async def test_a_hook_after_a_tool_adds_to_what_the_model_reads(tmp_path: Path) -> None:
    hook = {"matcher": "edit|write", "command": replying(context="The formatter ran.")}
    steps: list[list[Any]] = [[call("write", path="a.txt", content="a\n")], [Say("ok")]]
    async with open_scenario(tmp_path, steps, config={"hooks": {"after_tool": [hook]}}) as scene:
        await scene.turn("write")
        assert scene.fine()[0].endswith("The formatter ran.")
        (told,) = heard(scene.path)
        assert (told["event"], told["is_error"], "Created a.txt" in told["result"]) == ("after_tool", False, True)
        await scene.check()


async def test_a_hook_that_fails_is_told_to_people_and_holds_up_nothing(tmp_path: Path) -> None:
    hooks = [{"command": "exit 7"}, {"command": "echo no json"}, {"command": "sleep 60", "timeout_s": 0.1}]
    steps: list[list[Any]] = [[call("ls", path=".")], [Say("ok")]]
    async with open_scenario(tmp_path, steps, config={"hooks": {"before_tool": hooks}}) as scene:
        assert (await scene.turn("look")).text == "ok"
        scene.fine()
        notices = [e.message for e in scene.watcher.of("agent_event") if e.type is AgentEventType.NOTICE]
        assert [
            part in text for part, text in zip(("exit code 7", "invalid reply", "0.1 s"), notices, strict=True)
        ] == [True] * 3
        await scene.check()


async def test_a_hook_refuses_a_prompt_and_the_model_never_sees_it(tmp_path: Path) -> None:
    refuse = "grep -q secret && { echo 'no secrets here' >&2; exit 2; } || exit 0"
    config = {"hooks": {"prompt_submitted": [{"command": refuse}]}}
    async with open_scenario(tmp_path, [[Say("hello")]], config=config) as scene:
        refused = await scene.turn("tell me the secret", "r1")
        assert (refused.outcome, "no secrets here" in refused.error) == (Outcome.ERROR, True)
        assert list(scene.model.requests) == []
        assert (await scene.turn("hi", "r2")).text == "hello"
        await scene.check()


async def test_hooks_add_to_a_prompt_and_hear_how_each_run_ended(tmp_path: Path) -> None:
    """Only told, after the end: also of a run that was canceled or failed, and nobody waits for them."""
    hooks = {
        "prompt_submitted": [{"command": replying(context="Today is Friday.")}],
        "run_finished": [{"command": "cat >> finished.jsonl; echo >> finished.jsonl"}],
    }
    gate = Gate()
    fatal = ModelError("no credit", title="Payment required", code="payment")
    steps: list[list[Any]] = [[Say("hello")], [Pause(gate)], [Fail(fatal)]]
    async with open_scenario(tmp_path, steps, config={"hooks": hooks}) as scene:
        await scene.turn("hi", "r1")
        assert "Today is Friday." in scene.model.requests[0].system
        await scene.start("wait", "r2")
        await gate.reached()
        await scene.cancel("r2")
        await scene.turn("fail", "r3")
        file = scene.path / "finished.jsonl"
        await wait_until(lambda: file.exists() and file.read_text().count("run_finished") == 3)
        await wait_until(lambda: file.read_text().endswith("\n"))
        told = {each["run_id"]: each for each in map(json.loads, filter(str.strip, file.read_text().splitlines()))}
        assert {run_id: each["outcome"] for run_id, each in told.items()} == {
            "r1": "end_turn",
            "r2": "canceled",
            "r3": "error",
        }
        assert [each["prompt"] for each in heard(scene.path)] == ["hi", "wait", "fail"]
        await scene.check()


async def test_agents_md_reaches_the_model_at_the_root_and_below_when_a_file_there_is_read(tmp_path: Path) -> None:
    files = {
        "AGENTS.md": "Use tabs. See @docs/STYLE.md",
        "docs/STYLE.md": "Lines are short.",
        "web/AGENTS.md": "No frameworks here.",
        "web/app/CLAUDE.md": "Only small functions.",
        "web/app/a.js": "let a\n",
        "web/b.js": "let b\n",
    }
    steps: list[list[Any]] = [
        [call("view", path="web/app/a.js")],
        [call("view", path="web/b.js"), call("view", path="web/app/a.js")],
        [Say("seen")],
    ]
    async with open_scenario(tmp_path, steps, files=files) as scene:
        await scene.turn("look")
        system = scene.model.requests[0].system
        assert ("Use tabs." in system, "Lines are short." in system) == (True, True)
        assert "No frameworks" not in system
        first, *later = scene.fine()
        assert first.index("No frameworks here.") < first.index("Only small functions.")
        assert not [text for text in later if "No frameworks" in text or "Only small" in text], "said twice"
        await scene.check()


async def test_a_skill_is_listed_read_without_asking_and_its_files_are_found(
    tmp_path: Path, a_home_of_its_own: Path
) -> None:
    """The user's own skills lie outside the workspace: reading them is what they are for."""
    own = a_home_of_its_own / ".agents/skills/knots"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text("---\nname: knots\ndescription: How to tie knots.\n---\nLook at bowline.txt.\n")
    (own / "bowline.txt").write_text("round the tree\n")
    files = {
        ".agents/skills/sails/SKILL.md": "---\nname: sails\ndescription: How to set sails.\n---\nPull the rope.\n",
        ".claude/skills/tides/SKILL.md": "---\nname: tides\ndescription: When to leave.\n---\nAt noon.\n",
    }
    steps: list[list[Any]] = [
        [call("view", path=str(own / "SKILL.md")), call("view", path=str(own / "bowline.txt"))],
        [call("view", path=".agents/skills/sails/SKILL.md")],
        [Say("I know knots.")],
    ]
    async with open_scenario(tmp_path, steps, files=files) as scene:
        await scene.turn("tie a bowline", ask=True)
        system = scene.model.requests[0].system
        for told in ("knots", "How to tie knots.", "How to set sails.", "When to leave.", str(own / "SKILL.md")):
            assert told in system
        assert "Pull the rope." not in system
        assert "round the tree" in scene.fine()[1]
        assert scene.watcher.of("permission_request") == []
        await scene.check()


async def test_a_sub_agent_of_the_project_has_its_own_prompt_and_tools_and_no_more(tmp_path: Path) -> None:
    reviewer = (
        "---\ndescription: Reviews code.\ntools: view, bash, agent\nread_only: false\n---\nYou review, sternly.\n"
    )
    parts: dict[str, list[list[Any]]] = {
        "get a review": [
            [call("agent", prompt="review a.py", agent="reviewer"), call("agent", prompt="look at a.py")],
            [call("agent", prompt="x", agent="nobody")],
            [Say("Reviewed.")],
        ],
        "review a.py": [
            [call("view", path="a.py")],
            [call("edit", path="a.py", old_text="1", new_text="2")],
            [Say("bad")],
        ],
        "look at a.py": [[call("view", path="a.py")], [call("bash", command="touch made")], [Say("fine")]],
    }
    files = {"a.py": "x = 1\n", ".agents/agents/reviewer.md": reviewer, "AGENTS.md": "Be kind."}
    async with open_scenario(tmp_path, Parts(parts), files=files) as scene:
        assert (await scene.turn("get a review")).text == "Reviewed."
        by_prompt = {str(request.messages[0].parts[0]): request for request in scene.model.requests}
        stern = next(request for prompt, request in by_prompt.items() if "review a.py" in prompt)
        plain = next(request for prompt, request in by_prompt.items() if "look at" in prompt)
        parent = next(request for prompt, request in by_prompt.items() if "get a review" in prompt)
        assert ("You review, sternly." in stern.system, "Be kind." in stern.system) == (True, True)
        assert {tool.name for tool in stern.tools} == {"view", "bash"}
        names = {tool.name for tool in plain.tools}
        assert ("view" in names, names & {"bash", "edit", "write", "agent", "question"}) == (True, set())
        assert "reviewer" in parent.system
        said = [part.content for part in scene.results()]
        assert ("bad" in said, "fine" in said) == (True, True)
        (unknown,) = [text for text in said if "nobody" in text]
        assert "reviewer" in unknown
        assert scene.read("a.py") == "x = 1\n"
        assert not (scene.path / "made").exists()
        sessions = (await scene.workspace.ledger.sessions(limit=10, after=None)).items
        assert sorted(s.parent_id or "" for s in sessions) == ["", *[scene.running.session_id] * 2]
        await scene.check()


async def test_a_command_of_the_project_is_carried_out_with_its_arguments(tmp_path: Path) -> None:
    files = {".agents/commands/fix.md": "---\ndescription: Fix an issue.\n---\nFix issue $ARGUMENTS now.\n"}
    async with open_scenario(tmp_path, [[Say("Fixed.")]], files=files) as scene:
        assert (await scene.turn("/fix 12")).text == "Fixed."
        assert "Fix issue 12 now." in str(scene.model.requests[0].messages)
        await scene.check()
