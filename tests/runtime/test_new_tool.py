"""One more tool, `new_tool/stamp.py` with its description: nothing else knows its name, all go by its traits."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import new_tool
import pytest
from new_tool.stamp import StampTool
from scenario import Scene, call, open_scenario
from tui_driver import local_server, open_tui

from longboat.cli.activity import Activity
from longboat.core.tool import ToolSpec
from longboat.models.local.demo_steps import as_form, choose_tools
from longboat.models.protocol import ModelRequest
from longboat.permissions.verdict import RuleInvalid, Rules
from longboat.testing import CallTool, Say, ScriptedModel, ScriptedTool
from longboat.tools.registry import built_in_traits, find_tools
from longboat.wire.asks import PermissionAnswer
from longboat.wire.models import Message, Role, TextPart, ToolCallPart
from longboat.wire.requests import Approve
from longboat.wire.tools import Draw, Effect, SubAgents, ToolTraits

STAMPED = "DRAFT\nhello\n"
STEPS = [
    [call("view", path="src/a.txt")],
    [call("stamp", text="DRAFT", place="src/a.txt")],
    [Say("Stamped.")],
]
FILES = {"src/a.txt": "hello\n"}


def test_a_tool_is_found_by_its_files() -> None:
    assert list(find_tools("new_tool", Path(new_tool.__file__).parent)) == [StampTool]
    assert StampTool.spec.description == "Put a line at the top of a file."


def test_a_description_beside_a_module_without_a_tool_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "no_tool_here"
    package.mkdir()
    for name in ("__init__.py", "lost.py", "lost.md"):
        (package / name).touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TypeError, match=r"no_tool_here\.lost has a description beside it, but 0 classes"):
        list(find_tools("no_tool_here", package))


@pytest.mark.parametrize("rule", ["stamp(src/**)", "edit(src/**)", "write(src/**)", "multiedit(src/*.txt)"])
async def test_its_own_rules_and_those_for_edits_allow_it(tmp_path: Path, rule: str) -> None:
    config = {"permissions": {"allow": [rule]}}
    async with open_scenario(tmp_path, STEPS, files=FILES, config=config, tools=[StampTool()]) as scene:
        assert (await scene.turn("stamp it", ask=True)).text == "Stamped."
        assert scene.read("src/a.txt") == STAMPED
        await scene.check()


@pytest.mark.parametrize("rule", ["stamp(src/**)", "edit(src/**)", "stamp"])
async def test_its_own_rules_and_those_for_edits_deny_it_whatever_else_allows_it(tmp_path: Path, rule: str) -> None:
    config = {"permissions": {"allow": ["stamp", "edit"], "deny": [rule]}}
    async with open_scenario(tmp_path, STEPS, files=FILES, config=config, tools=[StampTool()]) as scene:
        await scene.turn("stamp it")
        assert f"({rule})" in scene.results()[-1].content
        assert scene.read("src/a.txt") == "hello\n"


async def test_without_a_rule_a_person_is_asked_and_offered_one(tmp_path: Path) -> None:
    config = {"permissions": {"allow": ["stamp(docs/**)"]}}
    async with open_scenario(tmp_path, STEPS, files=FILES, config=config, tools=[StampTool()]) as scene:
        await scene.start("stamp it", ask=True)
        ask = await scene.asked()
        assert (ask.tool, ask.grant, ask.wide) == ("stamp", ("edit(src/a.txt)",), ("edit(src/**)",))
        await scene.answer(ask, PermissionAnswer.SESSION)
        assert (await scene.running.completed("r1")).text == "Stamped."
        assert scene.read("src/a.txt") == STAMPED


@pytest.mark.parametrize("rule", ["stamp(~/x)", "stamp(../x)"])
def test_a_pattern_that_is_no_path_is_refused(rule: str) -> None:
    with pytest.raises(RuleInvalid):
        Rules.parse(tools={**built_in_traits(), "stamp": StampTool.spec.traits}, allow=[rule])


def given(request: ModelRequest) -> dict[str, ToolSpec]:
    return {tool.name: tool for tool in request.tools}


async def test_models_large_and_small_are_told_of_it(tmp_path: Path) -> None:
    for window, described in ((64_000, StampTool.spec.description), (8_000, "Stamp a file.")):
        model = ScriptedModel([[Say("Hello.")]], context_window=window)
        async with open_scenario(tmp_path / str(window), model, tools=[StampTool()]) as scene:
            await scene.turn("hello")
            assert given(model.requests[0])["stamp"].description == described


def test_a_very_small_model_is_offered_it_when_a_prompt_calls_for_it() -> None:
    def step(text: str) -> ModelRequest:
        prompt = Message(
            id="m", session_id="s", run_id="r", seq=1, role=Role.USER, parts=(TextPart(text=text),), created_at=""
        )
        return ModelRequest(system="", messages=(prompt,), tools=(StampTool.spec,))

    assert choose_tools(step("Hello there.")) == choose_tools(step("Mark it.")) == ()
    assert choose_tools(step("Mark a.txt as a draft.")) == (StampTool.spec,)
    form = as_form(step("Mark a.txt as a draft."), (StampTool.spec,)).schema
    assert form is not None
    assert form["anyOf"][0]["properties"]["input"]["properties"]["place"] == {"enum": ["a.txt"]}


async def test_sub_agents_get_what_the_traits_say(tmp_path: Path) -> None:
    looks = ScriptedTool("looks", traits=ToolTraits(effect=Effect.READS, sub_agents=SubAgents.ALL))
    alone = ScriptedTool("alone", traits=ToolTraits(sub_agents=SubAgents.NONE))
    worker = "---\ndescription: Works.\nread_only: false\n---\nYou work.\n"
    tasks = {
        "begin": [[call("agent", prompt="look"), call("agent", prompt="work", agent="worker")], [Say("Done.")]],
        "look": [[Say("Looked.")]],
        "work": [[Say("Worked.")]],
    }
    files = {".agents/agents/worker.md": worker}

    def next_step(request: ModelRequest) -> Sequence[Say | CallTool]:
        (prompt,) = request.messages[0].parts
        assert isinstance(prompt, TextPart)
        return tasks[prompt.text].pop(0)

    tools = [StampTool(), looks, alone]
    model = ScriptedModel(next_step, context_window=64_000)
    async with open_scenario(tmp_path, model, files=files, tools=tools) as scene:
        assert (await scene.turn("begin")).text == "Done."
        names = {str(request.messages[0].parts[0]): set(given(request)) for request in model.requests}
        mine = {"stamp", "looks", "alone"}
        assert {prompt.split("'")[1]: found & mine for prompt, found in names.items()} == {
            "begin": mine,
            "look": {"looks"},
            "work": {"stamp", "looks"},
        }


def recorded(scene: Scene, name: str) -> ToolCallPart:
    parts = (part for message in scene.watcher.of("message") for part in message.parts)
    *_, last = (part for part in parts if isinstance(part, ToolCallPart) and part.name == name)
    return last


async def test_the_recorded_call_tells_its_traits_and_the_command_line_draws_by_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_scenario(tmp_path, STEPS, files=FILES, tools=[StampTool()]) as scene:
        await scene.turn("stamp it")
        assert recorded(scene, "stamp").traits == StampTool.spec.traits
        assert recorded(scene, "view").traits == built_in_traits()["view"]
        activity = Activity()
        for event in scene.watcher.events:
            activity.show(event)
    assert capsys.readouterr().err.splitlines() == ["● view src/a.txt", "● stamp src/a.txt +1 -0", "    +DRAFT"]


async def test_a_call_of_a_tool_that_is_not_there_has_no_traits(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, [[call("gone", path="a")], [Say("Oh.")]]) as scene:
        await scene.turn("go")
        assert recorded(scene, "gone").traits is None


async def test_the_terminal_app_draws_by_traits(tmp_path: Path) -> None:
    lines = "\n".join(f"row {number}" for number in range(9))
    quiet = ScriptedTool("quiet", lines, traits=ToolTraits(heading=("where",), draw=Draw.QUIET))
    plain = ScriptedTool("plain", lines)
    steps: Iterable[list[CallTool | Say]] = [
        [CallTool("quiet", {"path": "not this", "where": "here"})],
        [CallTool("plain", {"path": "there"})],
        [CallTool("view", {"path": "a.txt"})],
        [CallTool("stamp", {"text": "DRAFT", "place": "a.txt"})],
        [Say("done")],
    ]
    server = local_server(tmp_path, ScriptedModel(steps))
    async with (
        server.serving(tools=[StampTool(), quiet, plain]) as server,
        open_tui(server, approve=Approve.ALL) as tui,
    ):
        (Path(server.project) / "a.txt").write_text("hello\n")
        await tui.say("work")
        await tui.until(lambda: tui.idle and tui.answers == ["done"])
        shown = [tui.text_of(card).splitlines() for card in tui.cards]
        assert shown[0] == ["✓ quiet here", "9 lines"]
        assert (shown[1][0], shown[1][-1]) == ("✓ plain there", "row 8")
        assert shown[3][0].startswith("✓ stamp a.txt")  # a slow machine adds how long it took
        assert "1 + DRAFT" in [row.strip() for row in shown[3]]
