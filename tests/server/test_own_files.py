"""The server's own files are no reading for its agent, wherever the workspace is: tokens, keys, other sessions."""

import json
from pathlib import Path
from typing import Any

import pytest
from running_app import launch

from longboat.config.credentials import store_key
from longboat.errors import BadInput
from longboat.testing import CallTool, Say, ScriptedModel
from longboat.wire.models import ToolResultPart
from longboat.wire.requests import Approve

SECRET = "the-token-of-the-server"


def call(name: str, **arguments: Any) -> CallTool:
    return CallTool(name, json.dumps(arguments))


@pytest.mark.parametrize(
    "tried",
    [
        call("view", path="data/token"),
        call("grep", pattern="token", path="."),
        call("grep", pattern="token", path="data"),
        call("bash", command="cat data/token"),
        call("bash", command="head dat?/tok*"),
        call("view", path="config/longboat/longboat.json"),
        call("bash", command="cat run/server.json"),
        call("write", path="data/token", content="mine"),
    ],
    ids=lambda each: each.arguments if isinstance(each.arguments, str) else "",
)
async def test_a_workspace_that_holds_them_does_not_show_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tried: CallTool
) -> None:
    """A2, http.md: no secret is ever in a response; somebody's home is a workspace like any other."""
    home = tmp_path / "project"
    home.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    model = ScriptedModel([[tried], [Say("ok")]], context_window=100_000)
    async with launch(tmp_path, model, data_dir=home / "data", runtime_dir=home / "run") as running:
        for place in ("data/token", "run/server.json", "config/longboat/longboat.json"):
            path = home / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'// {SECRET}\n{{"titles": false}}')
        await running.submit("read it", "r1", approve=Approve.ALL)
        await running.completed("r1")
        parts = [part for message in await running.messages() for part in message.parts]
        (result,) = [part for part in parts if isinstance(part, ToolResultPart)]
        assert SECRET not in result.content
        assert SECRET in (home / "data" / "token").read_text()


@pytest.mark.parametrize(
    "tried",
    [
        call("view", path="{data}/token"),
        call("view", path="/proc/self/root{data}/token"),
        call("view", path="hard"),
        call("view", path="soft"),
        call("view", path="{config}/credentials.json"),
        call("view", path="{config}/credentials.new"),
        call("bash", command="cat {config}/credentials.*"),
        call("edit", path="hard", old_text="the", new_text="a"),
        call("grep", pattern="token", path="."),
        call("grep", pattern="token", path="hard"),
        call("bash", command="cat {data}/token"),
        call("bash", command="cat {data}/tok*"),
        call("bash", command="cat /proc/self/root{data}/token"),
        call("bash", command="cat /proc/self/cwd/../data/token"),
        call("bash", command="cat < hard"),
        call("bash", command="cat ha*"),
        call("bash", command="cp hard b && cat b"),
        call("bash", command="cd {data} && cat token"),
        call("bash", command="cat ~/secret"),
        call("bash", command="tar cf - {data}"),
        call("bash", command="cat {data}/push-key.pem {data}/logins/x.json {run}/server.json"),
        call("bash", command="ln {data}/token here; cat here"),
    ],
    ids=lambda each: each.arguments if isinstance(each.arguments, str) else "",
)
async def test_no_name_of_theirs_helps_even_where_all_was_approved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tried: CallTool
) -> None:
    """Links, hard links and ways round by /proc lead to the same file."""
    data, run, home, project = (tmp_path / name for name in ("data", "run", "home", "project"))
    for place in (data / "logins", run, home, project, home / "longboat"):
        place.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("HOME", str(home))
    assert isinstance(tried.arguments, str)
    arguments = tried.arguments
    for name, place in (("data", data), ("run", run), ("config", home / "longboat")):
        arguments = arguments.replace(f"{{{name}}}", str(place))
    model = ScriptedModel([[CallTool(tried.name, arguments)], [Say("")]], context_window=100_000)
    secrets = [data / "token", data / "push-key.pem", data / "logins/x.json", run / "server.json"]
    async with launch(tmp_path, model, data_dir=data, runtime_dir=run) as running:
        for path in secrets:
            path.write_text(SECRET)
        keys = home / "longboat" / "credentials.json"
        store_key(keys, "anthropic", kind="anthropic", base_url=None, api_key=SECRET)
        keys.with_suffix(".new").write_text(SECRET)  # as a kill in the midst of the next change leaves it
        (project / "hard").hardlink_to(data / "token")
        (project / "soft").symlink_to(data / "token")
        (home / "secret").hardlink_to(data / "token")
        await running.submit("read it", "r1", approve=Approve.ALL)
        await running.completed("r1")
        parts = [part for message in await running.messages() for part in message.parts]
        (result,) = [part for part in parts if isinstance(part, ToolResultPart)]
        assert SECRET not in result.content
        assert (data / "token").read_text() == SECRET
        with pytest.raises(BadInput, match="hides"):
            await running.workspace.browse.text("hard")


async def test_what_its_own_commands_print_stays_readable(tmp_path: Path) -> None:
    """A1: the full output of a long command is a file there."""
    home = tmp_path / "project"
    home.mkdir()
    long = call("bash", command="seq 20000")

    def answer(request: Any) -> Any:
        results = [part for message in request.messages for part in message.parts if isinstance(part, ToolResultPart)]
        if not results:
            return [long]
        if len(results) == 1:
            place = next(word for word in results[0].content.split() if "scratch" in word).strip("[].,:")
            return [call("view", path=place, offset=15_000, limit=2)]
        return [Say(results[1].content)]

    async with launch(tmp_path, ScriptedModel(answer, context_window=100_000), data_dir=home / "data") as running:
        await running.submit("count", "r1", approve=Approve.ALL)
        assert "15000" in (await running.completed("r1")).text
