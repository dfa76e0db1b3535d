"""Who is attached hears that the configuration of the workspace changed, and who answers a prompt from then on."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from running_app import RunningApp, configure, launch, watch
from tui_driver import local_server, open_tui

from longboat.errors import ConfigInvalid
from longboat.runtime.workspace import config_watcher
from longboat.wire.requests import CreateSession
from longboat.wire.workspace_state import ConfigChanged

PROVIDER = {
    "type": "openai-compatible",
    "base_url": "http://127.0.0.1:9/v1",
    "models": [{"id": "one"}, {"id": "three"}],
}


def naming(model: str, **more: Any) -> dict[str, Any]:
    return {"titles": False, "models": {"large": f"box/{model}", "small": "box/one"}, **more}


def write(running: RunningApp, content: str | dict[str, Any]) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    (running.workspace.directory / "longboat.json").write_text(text)


def read_anyway(running: RunningApp) -> None:
    """What every run does, and many requests."""
    with suppress(ConfigInvalid):
        running.workspace.services.config()


async def heard(running: RunningApp, count: int) -> list[ConfigChanged]:
    await running.watcher.until(lambda _: len(running.watcher.of("config_changed")) >= count)
    return running.watcher.of("config_changed")


@pytest.fixture(autouse=True)
def a_provider() -> None:
    configure(providers={"box": PROVIDER})


@pytest.fixture
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks by himself for the length of a test."""
    monkeypatch.setattr(config_watcher, "LOOK_S", 3_600)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_watcher, "LOOK_S", 0.01)


@pytest.mark.usefixtures("seldom")
async def test_a_change_is_told_once_however_many_are_attached(tmp_path: Path) -> None:
    """http.md: all clients of a workspace see the same events."""
    async with (
        launch(tmp_path, None, config=json.dumps(naming("one"))) as running,
        watch(running.workspace, client_id="second") as second,
    ):
        read_anyway(running)
        write(running, naming("three"))
        for _ in range(3):
            read_anyway(running)
        told = ConfigChanged(large="box/three", small="box/one", ready=True)
        assert await heard(running, 1) == [told]
        await running.workspace.create_session(CreateSession(title="later"))
        for watcher in (running.watcher, second):
            await watcher.until(lambda event: event.type == "session" and event.payload.title == "later")
        assert running.watcher.of("config_changed") == second.of("config_changed") == [told]


@pytest.mark.usefixtures("seldom")
async def test_a_broken_file_tells_its_problem_and_a_mended_one_the_model(tmp_path: Path) -> None:
    async with launch(tmp_path, None, config=json.dumps(naming("one"))) as running:
        read_anyway(running)
        write(running, "{ oh")
        read_anyway(running)
        (broken,) = await heard(running, 1)
        assert (broken.large, broken.small, broken.ready) == (None, None, False)
        assert "longboat.json" in (broken.problem or "")
        write(running, naming("three", models={"large": "nobody/none"}))
        read_anyway(running)
        (_, absent) = await heard(running, 2)
        assert (absent.large, absent.ready) == (None, False)
        assert "nobody" in (absent.problem or "")
        write(running, naming("three"))
        read_anyway(running)
        assert (await heard(running, 3))[2] == ConfigChanged(large="box/three", small="box/one", ready=True)


@pytest.mark.usefixtures("often")
async def test_files_are_looked_at_while_somebody_is_attached(tmp_path: Path) -> None:
    """The project's file and the user's: nobody has to prompt first."""
    async with launch(tmp_path, None, config='{"titles": false}') as running:
        read_anyway(running)
        configure(providers={"box": PROVIDER}, models={"large": "box/one", "small": "box/one"})
        assert (await heard(running, 1))[0].large == "box/one"
        write(running, naming("three"))
        assert (await heard(running, 2))[1].large == "box/three"


@pytest.mark.usefixtures("often")
async def test_a_file_that_says_the_same_in_other_words_is_no_change(tmp_path: Path) -> None:
    async with launch(tmp_path, None, config=json.dumps(naming("one"))) as running:
        read_anyway(running)
        write(running, json.dumps(naming("one"), indent=4))
        write(running, naming("three"))
        assert [told.large for told in await heard(running, 1)] == ["box/three"]


def looking() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().endswith("/other/longboat.json")]


@pytest.mark.usefixtures("often")
async def test_nobody_looks_once_the_last_stream_is_gone_and_who_comes_back_hears_it(tmp_path: Path) -> None:
    """B3 keeps the workspace open for a while; its cursor is good all the while."""
    project = tmp_path / "other"
    project.mkdir()
    (project / "longboat.json").write_text(json.dumps(naming("one")))
    async with launch(tmp_path, None) as running:
        workspace, _ = await running.app.join(str(project), None)
        assert looking() == []
        workspace.services.config()
        async with watch(workspace) as first:
            async with watch(workspace, client_id="second"):
                assert len(looking()) == 1, "one task, however many streams"
            assert len(looking()) == 1
            cursor = first.events[0].payload.cursor
        await asyncio.sleep(0)
        assert looking() == []
        (project / "longboat.json").write_text(json.dumps(naming("three")))
        async with watch(workspace, after=cursor) as again:
            event = await again.until(lambda event: event.type == "config_changed")
            assert event.payload.large == "box/three"
        assert again.of("config_changed") == [event.payload]


@pytest.mark.usefixtures("often")
async def test_the_terminal_app_shows_who_answers_since_the_change(tmp_path: Path) -> None:
    """F2; http.md: config_changed. A broken file tells its problem, a mended one the model."""
    configure(providers={"box": PROVIDER}, models={"large": "box/one", "small": "box/one"})
    server = local_server(tmp_path, None)
    file = tmp_path / "project" / "longboat.json"
    async with server.serving(), open_tui(server) as tui:
        await tui.until(lambda: tui.screen.split()[-1] == "one")
        file.write_text('{"models": {"large": "box/three"}}')
        await tui.until(lambda: tui.screen.split()[-1] == "three")
        file.write_text("{ oh")
        await tui.until(lambda: "No model available" in tui.screen and tui.screen.split()[-1] == "Idle")
        file.write_text('{"models": {"large": "box/one"}}')
        await tui.until(lambda: tui.screen.split()[-1] == "one")
