"""What the model is told of the day and the repository, so that the beginning of every request stays the same."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from running_app import TITLES_OFF, configure, launch
from scenario import Scene, call, git, make_repository, open_scenario

from longboat.models.openai_request import encode_request
from longboat.models.protocol import ModelRequest
from longboat.runtime.turn import surroundings
from longboat.testing import Say, ScriptedModel
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.wire.models import Outcome, Role, TextPart
from longboat.wire.requests import Approve, Summarize
from secrecy import provider

BIG = 100_000


def steps(count: int) -> list[list[Any]]:
    return [[Say(f"answer {number}")] for number in range(count)]


def prompts(request: ModelRequest) -> list[list[str]]:
    """The texts of each prompt."""
    users = [message for message in request.messages if message.role is Role.USER]
    return [[part.text for part in message.parts if isinstance(part, TextPart)] for message in users]


def check_prefixes(requests: Sequence[ModelRequest]) -> None:
    """Each request begins with all of the one before: system, tools and messages."""
    bodies = [encode_request(request, model="m") for request in requests]
    for before, after in pairwise(requests):
        assert after.system == before.system
        assert after.tools == before.tools
        assert after.messages[: len(before.messages)] == before.messages
    assert len(set(bodies)) == len(bodies)


def check_bodies(bodies: Sequence[dict[str, Any]]) -> None:
    """The same of what a server got: it can keep all that it has read of the body before."""
    for before, after in pairwise(bodies):
        assert after["tools"] == before["tools"]
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert len(after["messages"]) > len(before["messages"])


async def test_the_system_prompt_says_where_the_session_began(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, steps(1), files={"a.py": "", "b c.py": ""}) as scene:
        (scene.path / "b c.py").write_text("x = 1\n")
        (scene.path / "new.py").write_text("")
        await scene.turn("look")
        (request,) = scene.model.requests
        assert request.system.endswith("\nGit: branch main\nUncommitted changes: b c.py")
        assert prompts(request) == [["look"]]


async def test_the_prefix_stays_when_the_branch_changes(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, steps(4)) as scene:
        await scene.turn("one", "r1")
        scene.git("checkout", "--quiet", "-b", "feature/x")
        await scene.turn("two", "r2")
        await scene.turn("three", "r3")
        scene.git("checkout", "--quiet", "main")
        await scene.turn("four", "r4")
        check_prefixes(scene.model.requests)
        told = prompts(scene.model.requests[-1])
        assert [texts[-1] for texts in told] == ["one", "two", "three", "four"]
        assert [len(texts) for texts in told] == [1, 2, 1, 2]
        assert told[1][0].endswith("Git: branch feature/x")
        assert told[3][0].endswith("Git: branch main")
        await scene.check()


async def test_the_prefix_stays_on_the_wire_when_the_branch_changes_and_tools_are_used(tmp_path: Path) -> None:
    make_repository(tmp_path / "project", {"a.txt": "a\n", "longboat.json": TITLES_OFF})
    async with ScriptedEndpoint() as endpoint:
        entry = {"id": "m", "context_window": BIG, "tools": "native"}
        configure(providers={"lab": provider(endpoint.base_url, models=[entry])}, models={"large": "lab/m"})
        endpoint.add([call("view", path="a.txt"), call("ls")], [Say("one")])
        endpoint.add([Say("I test."), call("bash", command="echo red; exit 1")], [call("view", path="gone.txt")])
        endpoint.add([Say("two")], [Say("three")], [call("view", path="a.txt")], [Say("four")])
        async with launch(tmp_path, None) as running:
            for number, branch in enumerate(("main", "feature/x", "feature/x", "main"), start=1):
                git(tmp_path / "project", "checkout", "--quiet", "-B", branch)
                await running.submit(f"prompt {number}", f"r{number}", approve=Approve.ALL)
                assert (await running.completed(f"r{number}")).outcome is Outcome.END_TURN
        bodies = [exchange.body for exchange in endpoint.requests]
        assert len(bodies) == 8
        check_bodies(bodies)
        told = str(bodies[-1]["messages"][1:])
        assert [told.count(f"Git: branch {branch}") for branch in ("feature/x", "main")] == [1, 1]


async def test_the_prefix_stays_when_the_day_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tomorrow(surroundings.date):
        @classmethod
        def today(cls) -> "Tomorrow":
            return cls(2099, 1, 2)

    async with open_scenario(tmp_path, steps(2)) as scene:
        await scene.turn("one", "r1")
        monkeypatch.setattr(surroundings, "date", Tomorrow)
        await scene.turn("two", "r2")
        check_prefixes(scene.model.requests)
        assert prompts(scene.model.requests[-1])[1] == ["Date: 2099-01-02\nGit: branch main", "two"]


async def test_after_a_restart_a_session_goes_on_with_the_same_words(tmp_path: Path) -> None:
    before, after = (ScriptedModel(steps(1), context_window=BIG) for _ in range(2))
    async with launch(tmp_path, before, config=TITLES_OFF) as running:
        await running.submit("one", "r1")
        await running.completed("r1")
        session_id = running.session_id
    async with launch(tmp_path, after, config=TITLES_OFF) as running:
        await running.submit("two", "r2", session_id=session_id)
        await running.completed("r2")
    check_prefixes([*before.requests, *after.requests])


async def test_what_a_summary_took_is_told_again(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, steps(4)) as scene:
        await scene.turn("one", "r1")
        scene.git("checkout", "--quiet", "-b", "other")
        await scene.turn("two", "r2")
        await summarized(scene)
        await scene.turn("three", "r3")
        last = prompts(scene.model.requests[-1])[-1]
        assert last[0].endswith("Git: branch other")
        assert scene.model.requests[-1].system == scene.model.requests[0].system


async def summarized(scene: Scene) -> None:
    await scene.workspace.summarize_session(scene.running.session_id, Summarize(run_id="s"))
    await scene.running.completed("s")


async def test_tools_that_ask_language_servers_are_offered_where_there_are_files_for_them(tmp_path: Path) -> None:
    lsp = {"mine": {"command": "true", "file_types": ["abc"]}}
    async with open_scenario(tmp_path, steps(2), config={"lsp": lsp}) as scene:
        await scene.turn("one", "r1")
        (scene.path / "a.abc").write_text("")
        await scene.turn("two", "r2")
        offered = [{tool.name for tool in request.tools} for request in scene.model.requests]
        assert offered[1] - offered[0] == {"definition", "references", "symbols", "rename", "diagnostics"}


async def test_the_fixed_part_of_a_request_does_not_grow(tmp_path: Path) -> None:
    """Every model reads it with every request, a small one on a slow machine too."""
    lsp = {"mine": {"command": "true", "file_types": ["abc"]}}
    async with open_scenario(tmp_path, steps(1), files={"a.abc": ""}, config={"lsp": lsp}) as scene:
        await scene.turn("one", "r1")
        (request,) = scene.model.requests
        system = request.system.split("\n\nWorkspace: ", 1)[0]
        tools = {tool.name: len(tool.description) + len(msgspec.json.encode(tool.schema)) for tool in request.tools}
        assert len(system) + sum(tools.values()) <= 16_300, tools


async def test_without_sub_agents_there_is_no_name_to_choose(tmp_path: Path) -> None:
    worker = "---\ndescription: Works.\n---\nYou work.\n"
    async with open_scenario(tmp_path, steps(2)) as scene:
        await scene.turn("one", "r1")
        file = scene.path / ".agents" / "agents" / "worker.md"
        file.parent.mkdir(parents=True)
        file.write_text(worker)
        await scene.turn("two", "r2")
        fields = [
            set(tool.schema["properties"])
            for request in scene.model.requests
            for tool in request.tools
            if tool.name == "agent"
        ]
        assert fields == [{"prompt"}, {"prompt", "agent"}]
