"""Who comes while a tool works: the snapshot says which it is and what it has shown, the stream goes on from there."""

from pathlib import Path

from running_app import watch
from scenario import call, open_scenario

from longboat.testing import Say
from longboat.wire.models import Message, MessageDelta, Role, ToolResultPart


async def test_a_late_client_sees_which_tool_runs_and_what_it_has_shown(tmp_path: Path) -> None:
    """A1, http.md: the message with the call is finished and not in the snapshot; the open result names its tool."""
    wait = "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second"
    steps = [[call("ls", path="."), call("bash", command=wait)], [Say("done")]]
    async with open_scenario(tmp_path, steps) as scene:
        await scene.start("wait")
        await scene.showing("first")
        async with watch(scene.workspace, client_id="late") as late:
            (snapshot,) = late.of("snapshot")
            (message,) = snapshot.messages
            listed, unfinished = message.parts
            assert isinstance(listed, ToolResultPart)
            assert isinstance(unfinished, ToolResultPart)
            assert (message.role, listed.name, listed.finished) == (Role.TOOL, "ls", True)
            assert (unfinished.name, unfinished.content, unfinished.finished) == ("bash", "first\n", False)
            (scene.path / "go").touch()
            await late.completed("r1")
            grown = [event.payload for event in late.events if isinstance(event.payload, MessageDelta)]
            assert "".join(delta.text for delta in grown if delta.message_id == message.id) == "second\n"
            whole = [event.payload for event in late.events if isinstance(event.payload, Message)]
            last = [shape for shape in whole if shape.id == message.id][-1]
            assert [part.name for part in last.parts if isinstance(part, ToolResultPart)] == ["ls", "bash"]
        await scene.check()


async def test_a_call_that_was_broken_off_keeps_its_tools_name(tmp_path: Path) -> None:
    """T3: also a result that Longboat had to make up."""
    async with open_scenario(tmp_path, [[call("bash", command="echo on; sleep 600")], [Say("Still here.")]]) as scene:
        await scene.start("wait")
        await scene.showing("on")
        await scene.cancel()
        assert [part.name for part in scene.results()] == ["bash"]
        await scene.canceled_once()
