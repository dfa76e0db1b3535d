"""What changes while somebody thinks about a permission counts when the answer comes (A2, D14)."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from scenario import PLAIN, Scene, call, open_scenario

from longboat.config.load import user_config_file
from longboat.config.trust import record, trusted_file
from longboat.errors import BadInput
from longboat.permissions.verdict import Need
from longboat.testing import Say, ScriptedTool
from longboat.tools.context import ToolContext
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.wire.asks import PermissionAnswer
from longboat.wire.tools import Effect, ToolTraits

ONCE, SESSION, ALWAYS, DENY = PermissionAnswer


def configure(scene: Scene, **permissions: list[str]) -> None:
    """Another client, or a person with an editor, changes the rules; the file stays trusted."""
    text = json.dumps({**PLAIN, "permissions": permissions}).encode()
    trusted = trusted_file(user_config_file(os.environ, Path.home()))
    record(trusted, scene.path, hashlib.sha256(text).hexdigest())
    (scene.path / "longboat.json").write_bytes(text)


TOUCH = call("bash", command="touch made"), "bash(touch *)"
WRITE = call("write", path="made", content="x"), "edit(made)"
UNSURE = call("bash", command="touch $(echo made)"), "bash(touch made)"
"""It may turn out to be denied, and can only be allowed once."""


@pytest.mark.parametrize(
    ("called", "deny", "answer"),
    [
        *((*TOUCH, answer) for answer in (ONCE, SESSION, ALWAYS)),
        *((*WRITE, answer) for answer in (ONCE, SESSION, ALWAYS)),
        (*UNSURE, ONCE),
    ],
)
async def test_a_rule_that_denies_holds_for_a_call_that_was_asked_before_d14(
    tmp_path: Path, answer: PermissionAnswer, called: Any, deny: str
) -> None:
    async with open_scenario(tmp_path, [[called], [Say("ok")]]) as scene:
        await scene.start("make it", ask=True)
        ask = await scene.asked()
        configure(scene, deny=[deny])
        await scene.answer(ask, answer)
        await scene.running.completed("r1")
        (result,) = scene.results()
        assert result.is_error
        assert deny in result.content
        assert not (scene.path / "made").exists()
        await scene.check()


async def test_a_rule_that_allows_leaves_the_ask_to_the_person(tmp_path: Path) -> None:
    async with open_scenario(tmp_path, [[call("bash", command="touch made")], [Say("ok")]]) as scene:
        await scene.start("make it", ask=True)
        ask = await scene.asked()
        configure(scene, allow=["bash(touch *)"])
        await scene.answer(ask, DENY)
        await scene.running.completed("r1")
        assert not (scene.path / "made").exists()


class Asking(ScriptedTool):
    """Needs approval for a command, at the same time as others do."""

    def __init__(self, name: str, command: str) -> None:
        super().__init__(name, traits=ToolTraits(effect=Effect.READS, side_by_side=True))
        self.command = command

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        await context.permit(Need(tool="bash", action="run", argument=self.command))
        return await super().run(call, context)


@pytest.mark.parametrize("answer", [SESSION, ALWAYS])
async def test_a_call_that_the_answer_to_another_call_would_allow_is_asked_again_if_a_rule_it_needs_is_gone_d14(
    tmp_path: Path, answer: PermissionAnswer
) -> None:
    """Nobody has approved its other half: a rule did, and that rule was removed."""
    one, both = Asking("one", "touch made"), Asking("both", "touch made && rm -r build")
    steps = [[call("one"), call("both")], [Say("ok")]]
    config = {"permissions": {"allow": ["bash(rm -r build)"]}}
    async with open_scenario(tmp_path, steps, config=config, tools=[one, both]) as scene:
        await scene.start("make it", ask=True)
        asks = {ask.argument: ask for ask in (await scene.asked(1), await scene.asked(2))}
        assert asks[one.command].grant == asks[both.command].grant
        configure(scene, allow=[])
        await scene.answer(asks[one.command], answer)
        again = await scene.asked(3)
        assert (again.argument, again.grant) == (both.command, ("bash(rm -r build)",))
        assert list(both.calls) == []
        await scene.answer(again, DENY)
        await scene.running.completed("r1")
        assert [part.is_error for part in scene.results()] == [False, True]
        await scene.check()


async def test_a_call_that_the_answer_to_another_call_allows_is_denied_by_a_rule_that_was_added_d14(
    tmp_path: Path,
) -> None:
    one, both = Asking("one", "touch made"), Asking("both", "touch made && rm -r build")
    steps = [[call("one"), call("both")], [Say("ok")]]
    config = {"permissions": {"allow": ["bash(rm -r build)"]}}
    async with open_scenario(tmp_path, steps, config=config, tools=[one, both]) as scene:
        await scene.start("make it", ask=True)
        asks = {ask.argument: ask for ask in (await scene.asked(1), await scene.asked(2))}
        configure(scene, allow=["bash(rm -r build)"], deny=["bash(rm *)"])
        await scene.answer(asks[one.command], SESSION)
        await scene.running.completed("r1")
        assert [part.is_error for part in scene.results()] == [False, True]
        assert "bash(rm *)" in scene.results()[1].content
        await scene.check()


async def test_what_a_person_allowed_stands_even_if_a_rule_it_needed_is_gone(tmp_path: Path) -> None:
    both = Asking("both", "touch made && rm -r build")
    config = {"permissions": {"allow": ["bash(rm -r build)"]}}
    async with open_scenario(tmp_path, [[call("both")], [Say("ok")]], config=config, tools=[both]) as scene:
        await scene.start("make it", ask=True)
        ask = await scene.asked()
        configure(scene, allow=[])
        await scene.answer(ask, ONCE)
        await scene.running.completed("r1")
        assert scene.fine() == ["done"]
        assert len(scene.watcher.of("permission_request")) == 1


@pytest.mark.parametrize(
    "called",
    [
        call("bash", command="touch sub/made"),
        call("bash", command="echo x > sub/made"),
        call("bash", command="touch made", cwd="sub"),
        call("bash", command="cd sub && touch made"),
        call("write", path="sub/made", content="x"),
    ],
    ids=lambda called: called.arguments,
)
async def test_a_directory_that_became_a_link_while_somebody_thought_leads_nowhere_d14(
    tmp_path: Path, called: Any
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    async with open_scenario(tmp_path, [[called], [Say("ok")]], files={"sub/x": "x\n"}) as scene:
        await scene.start("make it", ask=True)
        ask = await scene.asked()
        (scene.path / "sub").rename(scene.path / "moved")
        (scene.path / "sub").symlink_to(outside)
        await scene.answer(ask, ONCE)
        await scene.running.completed("r1")
        assert list(outside.iterdir()) == []
        (result,) = scene.results()
        assert result.is_error
        await scene.check()


async def test_a_file_outside_that_became_a_link_to_another_is_not_read_d14(tmp_path: Path) -> None:
    """The person allowed /…/notes, and not where it leads by now."""
    notes, secret = tmp_path / "notes", tmp_path / "secret"
    notes.write_text("notes\n")
    secret.write_text("a secret\n")
    async with open_scenario(tmp_path, [[call("view", path=str(notes))], [Say("ok")]]) as scene:
        await scene.start("look", ask=True)
        ask = await scene.asked()
        notes.unlink()
        notes.symlink_to(secret)
        await scene.answer(ask, ONCE)
        await scene.running.completed("r1")
        (result,) = scene.results()
        assert result.is_error
        assert "a secret" not in result.content
        await scene.check()


@pytest.mark.parametrize("answer", [SESSION, ALWAYS])
@pytest.mark.parametrize(
    "called",
    [
        call("write", path="sub/longboat.json", content="{}"),
        call("write", path="linked/x.md", content="x"),
        call("write", path=".agents/commands/x.md", content="x"),
        call("bash", command="touch *.json"),
        call("bash", command="cp sub/x linked/x.md"),
        call("bash", command="rm -rf ."),
    ],
    ids=lambda called: called.arguments,
)
async def test_a_guarded_file_can_only_be_changed_once(tmp_path: Path, answer: PermissionAnswer, called: Any) -> None:
    """Nobody is offered a rule for it, and an answer that asks for one is refused."""
    files = {"sub/x": "x\n", "linked/y.md": "y\n"}
    async with open_scenario(tmp_path, [[called], [Say("ok")]], files=files) as scene:
        (scene.path / ".agents").symlink_to("linked")
        before = scene.read("longboat.json")
        await scene.start("change it", ask=True)
        ask = await scene.asked()
        assert (ask.grant, ask.wide) == ((), ())
        for wide in (False, True):
            with pytest.raises(BadInput):
                await scene.answer(ask, answer, wide=wide)
        await scene.answer(ask, DENY)
        await scene.running.completed("r1")
        assert scene.read("longboat.json") == before
        await scene.check()


async def test_cleaning_a_directory_offers_nothing_about_longboat_json(tmp_path: Path) -> None:
    command = "cd build && rm -rf ./* && git add -A && git commit -m x && git push"
    async with open_scenario(
        tmp_path, [[call("bash", command=command)], [Say("ok")]], files={"build/x": "x\n"}
    ) as scene:
        await scene.start("clean", ask=True)
        ask = await scene.asked()
        assert "longboat.json" not in f"{ask.why}{ask.grant}{ask.wide}"
        assert ask.why == "Running rm -rf './*' needs your approval."
        await scene.answer(ask, DENY)
        await scene.running.completed("r1")
