"""Commands run in the environment of whoever prompts (A1), which is kept in memory and told to nobody."""

import asyncio
import os
import stat
from pathlib import Path

import pytest
from running_app import launch
from scenario import Parts, Scene, call, open_scenario
from server_harness import refusal, serve_in

from longboat.errors import SessionNotFound
from longboat.runtime.workspace.client_environment import MAX_BYTES, MAX_NAMES, MAX_ONE, ClientEnvironments
from longboat.testing import Say, ScriptedModel
from longboat.wire.requests import AnswerQuestion, CreateSession

SECRET = "s3cr3t-of-a-shell-0123456789"
SHOW = 'printf "%s|%s" "$(mine)" "$OWN"'


def toolchain(path: Path, word: str) -> str:
    """A PATH on which `mine` says the word."""
    path.mkdir()
    program = path / "mine"
    program.write_text(f"#!/bin/sh\necho {word}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"{path}:{os.environ['PATH']}"


def holding(path: Path, text: bytes) -> list[Path]:
    """The files below it that have this in them."""
    return [file for file in path.rglob("*") if file.is_file() and text in file.read_bytes()]


async def sends(scene: Scene, client_id: str | None, **environ: str) -> None:
    await scene.running.app.join(str(scene.path), client_id, environ)


async def test_each_of_two_clients_gets_its_own_path_at_the_same_time(tmp_path: Path) -> None:
    steps = Parts({name: [[call("bash", command=SHOW)], [Say("Done.")]] for name in ("ann", "bob", "nobody")})
    async with open_scenario(tmp_path, steps) as scene:
        await sends(scene, "ann", PATH=toolchain(tmp_path / "a", "anns"), OWN=SECRET)
        await sends(scene, "bob", PATH=toolchain(tmp_path / "b", "bobs"), OWN="2")
        await scene.turn("ann", "r1", client_id="ann")
        ann = scene.fine()[-1]
        for name, run_id in (("bob", "r2"), ("nobody", "r3")):
            scene.running.session_id = (await scene.workspace.create_session(CreateSession())).id
            await scene.turn(name, run_id, client_id=name)
        said = scene.fine()
        assert ann.startswith(f"anns|{SECRET}")
        # Whoever sent nothing gets what was sent last.
        assert [result.split("\n")[0] for result in said[1:]] == ["bobs|2", "bobs|2"]


async def test_a_run_keeps_the_environment_that_it_was_submitted_with(tmp_path: Path) -> None:
    steps = [[call("question", text="Go on?", choices=["yes"])], [call("bash", command=SHOW)], [Say("Done.")]]
    async with open_scenario(tmp_path, steps) as scene:
        await sends(scene, "ann", PATH=toolchain(tmp_path / "a", "first"), OWN="1")
        await scene.start("go", "r1", client_id="ann")
        asked = await scene.watcher.until(lambda event: event.type == "question_request")
        await sends(scene, "ann", PATH=toolchain(tmp_path / "b", "second"), OWN="2")
        await scene.workspace.asks.answer_question(asked.payload.id, AnswerQuestion(answer=("yes",)))
        await scene.running.completed("r1")
        assert scene.fine()[-1].startswith("first|1")


async def test_keys_and_our_own_variables_are_kept_back_whoever_sends_them(tmp_path: Path) -> None:
    command = "printf '%s' \"[$OPENAI_API_KEY$LONGBOAT_TOKEN$BASH_ENV$OWN]\""
    async with open_scenario(tmp_path, [[call("bash", command=command)], [Say("Done.")]]) as scene:
        evil = {"OPENAI_API_KEY": "k", "LONGBOAT_TOKEN": "t", "BASH_ENV": "/nowhere", "BASH_FUNC_ls%%": "() { :; }"}
        await sends(scene, "ann", PATH=os.environ["PATH"], OWN="1", **evil)
        await scene.turn("go", "r1", client_id="ann")
        assert scene.fine()[-1].startswith("[1]")


async def test_what_the_configuration_refers_to_is_kept_back_but_not_what_a_shell_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every section is searched, except for those in which a `$` is the shell's: it would lose its PATH."""
    config = {
        "providers": {"p": {"type": "openai", "api_key": "${KEY}"}},
        "web": {"search": {"kind": "brave", "endpoint": "https://search.example", "key": "$SEARCH"}},
        "permissions": {"allow": ["bash", "bash(= echo $OWN)"]},
        "hooks": {"before_tool": [{"command": 'test "$PATH"'}]},
    }
    monkeypatch.setenv("SEARCH", "s")
    command = 'printf \'%s\' "[$KEY$SEARCH$OWN]"; [ "$PATH" ] || echo lost'
    async with open_scenario(tmp_path, [[call("bash", command=command)], [Say("Done.")]], config=config) as scene:
        await sends(scene, "ann", PATH=os.environ["PATH"], OWN="1", KEY="k", SEARCH="s")
        await scene.turn("go", "r1", client_id="ann")
        assert scene.fine()[-1].startswith("[1]")


async def test_hooks_of_a_run_get_it_too(tmp_path: Path) -> None:
    config = {"hooks": {"before_tool": [{"command": f'echo "$OWN" >> {tmp_path}/heard'}]}}
    async with open_scenario(tmp_path, [[call("ls")], [Say("Done.")]], config=config) as scene:
        await sends(scene, "ann", PATH=os.environ["PATH"], OWN="mine")
        await scene.turn("go", "r1", client_id="ann")
        assert (tmp_path / "heard").read_text() == "mine\n"


async def test_what_was_sent_is_in_no_file_and_no_event(tmp_path: Path) -> None:
    steps = [[call("bash", command="true")], [Say("Done.")]]
    async with open_scenario(tmp_path, steps) as scene:
        await sends(scene, "ann", PATH=os.environ["PATH"], OWN=SECRET)
        await scene.turn("go", "r1", client_id="ann")
        assert SECRET.encode() not in b"".join(scene.watcher.frames)
    assert holding(tmp_path, b"r1") != [], "the store is among them"
    assert holding(tmp_path, SECRET.encode()) == []


async def test_no_route_returns_it_and_the_log_does_not_have_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with serve_in(tmp_path) as served:
        workspace = await served.workspace(tmp_path / "project")
        body = {"path": str(tmp_path / "project"), "client_id": "ann", "env": {"PATH": "/bin", "OWN": SECRET}}
        said = (await served.unix.post("/v1/workspaces", json=body)).text
        bad = {**body, "env": {"OWN": SECRET, "A=B": SECRET}}
        said += (await served.unix.post("/v1/workspaces", json=bad)).text
        said += (await served.unix.post("/v1/workspaces", json={**body, "path": "/nowhere"})).text
        said += (await served.unix.post("/v1/workspaces", json={**body, "env": {"OWN": [SECRET]}})).text
        shown = (await served.unix.get("/v1/openapi.json")).json()
        for path, methods in shown["paths"].items():
            if "get" in methods and "/events" not in path:
                url = path.replace("/v1/workspaces/{workspace_id}", workspace)
                said += (await served.unix.get(url.replace("{", "").replace("}", ""))).text
        assert SECRET not in said
    assert SECRET not in caplog.text
    assert holding(tmp_path / "data", SECRET.encode()) == []


@pytest.mark.parametrize(
    "env",
    [
        {"A=B": "1"},
        {"": "1"},
        {"A\0": "1"},
        {"A": "1\0"},
        {"A": "x" * MAX_ONE},
        {f"A{number}": "x" * 50_000 for number in range(MAX_BYTES // 50_000 + 1)},
        {f"A{number}": "" for number in range(MAX_NAMES + 1)},
    ],
    ids=["equals", "empty", "nul-name", "nul-value", "one-large", "all-large", "many"],
)
async def test_what_can_be_no_environment_is_refused(tmp_path: Path, env: dict[str, str]) -> None:
    async with serve_in(tmp_path) as served:
        answer = await served.unix.post("/v1/workspaces", json={"path": str(tmp_path), "env": env})
        assert refusal(answer) == (400, "bad_env")


def test_clients_are_forgotten_in_their_order_and_runs_when_they_are_over() -> None:
    environments = ClientEnvironments()
    for number in range(1_000):
        environments.put(f"client-{number}", {"N": str(number)})
        assert environments.bind(f"run-{number}", f"client-{number}")
    assert environments.of("run-999", "client-0") == {"N": "999"}
    assert environments.of("run-0", "client-999") == {"N": "0"}, "one that waits keeps its own, however long"
    assert not environments.bind("run-0", "client-999"), "and the first counts"
    environments.release("run-0")
    assert environments.of("run-0", "client-999") == {"N": "999"}
    assert environments.of("run-0", "client-0") == {"N": "999"}, "the last that was sent"


async def test_a_prompt_that_was_refused_binds_nothing(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel([[Say("x")]])) as running:
        environments = running.workspace.tools.environments
        environments.put("ann", {"WHO": "ann"})
        with pytest.raises(SessionNotFound):
            await running.submit("x", "r1", session_id="nobody", client_id="ann")
        environments.put("bob", {"WHO": "bob"})
        await running.submit("x", "r1", client_id="bob")
        assert environments.of("r1", "ann") == {"WHO": "bob"}
        await running.completed("r1")
        assert environments.of("r1", "ann") == {"WHO": "ann"}, "forgotten with the run"


async def test_a_workspace_that_closed_has_forgotten_it(tmp_path: Path) -> None:
    async with serve_in(tmp_path, create_hold_s=0.01) as served:
        app, project = served.serving.app, tmp_path / "project"
        await served.workspace(project)
        first, _ = await app.join(str(project), "ann", {"OWN": SECRET})
        async with asyncio.timeout(20):
            while not first.closing:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        again, _ = await app.join(str(project), "ann")
        assert again is not first
        assert again.tools.environments.of(None, "ann") is None
