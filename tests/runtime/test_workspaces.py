"""B4, B7: one workspace per directory for ever, apart from all others, and errors that say what to do."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from running_app import TITLES_OFF, OneModel, launch, settings_in, unprivileged, watch

from longboat.config.load import user_config_file
from longboat.errors import BadInput, SessionNotFound, WorkspaceNotFound
from longboat.models.protocol import ModelRequest
from longboat.runtime.app import App, open_app
from longboat.runtime.clock import now
from longboat.store.changes import insert_session
from longboat.store.protocol import Unit
from longboat.store.records import SessionRecord
from longboat.testing import Gate, Pause, Say, ScriptedModel, Step
from longboat.testing.endpoint import ScriptedEndpoint
from longboat.testing.scripted import last_prompt
from longboat.wire.models import Outcome, Session
from longboat.wire.requests import CreateSession, Submit, UpdateSession


@asynccontextmanager
async def open_quiet(directory: Path) -> AsyncIterator[App]:
    async with open_app(settings_in(directory), models=OneModel(ScriptedModel.echo())) as app:
        yield app


# Ids


async def test_two_joins_at_once_give_one_id(tmp_path: Path) -> None:
    async with open_quiet(tmp_path) as app:
        answers = await asyncio.gather(*(app.join(str(tmp_path), None) for _ in range(20)))
        assert len({id(workspace) for workspace, _ in answers}) == 1
        assert sum(created for _, created in answers) == 1
        assert len((await app.workspaces()).items) == 1


async def test_an_id_stays_with_its_directory_across_restarts(tmp_path: Path) -> None:
    ids = []
    for start in range(3):
        async with open_quiet(tmp_path) as app:
            workspace, created = await app.join(str(tmp_path), None)
            assert created == (start == 0)
            ids.append(workspace.id)
    assert len(set(ids)) == 1


async def test_every_spelling_of_a_directory_is_the_same_workspace(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    async with open_quiet(tmp_path) as app:
        paths = ("real", "link", "real/", "real/inner/..", "./real/.")
        workspaces = [(await app.join(f"{tmp_path}/{path}", None))[0] for path in paths]
        assert {workspace.id for workspace in workspaces} == {workspaces[0].id}
        assert workspaces[0].directory == (tmp_path / "real").resolve()
        inner, created = await app.join(str(tmp_path / "real" / "inner"), None)
        assert (created, inner.id != workspaces[0].id) == (True, True)


async def test_an_id_that_was_never_issued_is_not_found(tmp_path: Path) -> None:
    async with open_quiet(tmp_path) as app:
        with pytest.raises(WorkspaceNotFound, match="'nobody'"):
            await app.workspace("nobody")


async def test_closed_workspaces_are_listed_without_being_opened(tmp_path: Path) -> None:
    async with open_quiet(tmp_path) as app:
        workspace, _ = await app.join(str(tmp_path), None)
    async with open_quiet(tmp_path) as app:
        (listed,) = (await app.workspaces()).items
        assert (listed.id, listed.path, listed.busy) == (workspace.id, str(tmp_path), False)
        assert app.gauges()["workspaces_open"] == 0


# Paths


async def test_a_path_that_is_no_directory_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    wrong = {
        str(tmp_path / "missing"): ("path_not_found", "does not exist"),
        str(tmp_path / "file"): ("path_not_directory", "is not a directory"),
        str(tmp_path / "file" / "below"): ("path_not_found", "does not exist"),
        "relative/path": ("bad_path", "must be absolute"),
        "": ("bad_path", "must be absolute"),
        "~": ("bad_path", "must be absolute"),
        "/nul\0byte": ("bad_path", "not a usable path"),
        "/" + "x" * 5000: ("bad_path", "not a usable path"),
        str(tmp_path / "loop"): ("bad_path", "not a usable path"),
    }
    async with open_quiet(tmp_path) as app:
        for path, (code, reason) in wrong.items():
            with pytest.raises(BadInput, match=reason) as refused:
                await app.join(path, None)
            assert refused.value.code == code, path
        assert (await app.workspaces()).items == ()


@pytest.fixture
def forbidden() -> Iterator[Path]:
    """A directory that only its owner may read, in one that everybody may."""
    directory = Path(tempfile.mkdtemp(dir="/tmp"))
    (directory / "inner").mkdir()
    directory.chmod(0o000)
    yield directory
    directory.chmod(0o700)
    shutil.rmtree(directory)


async def test_a_directory_that_may_not_be_read_is_refused(tmp_path: Path, forbidden: Path) -> None:
    async with open_quiet(tmp_path) as app:
        for path in (forbidden, forbidden / "inner"):
            with unprivileged(), pytest.raises(BadInput, match=r"cannot be read\. Check its permissions") as refused:
                await app.join(str(path), None)
            assert refused.value.code == "path_unreadable"
        assert (await app.workspaces()).items == ()


async def test_a_run_in_a_directory_that_vanished_ends_with_a_readable_error(tmp_path: Path) -> None:
    """E3: and once the directory is back, the same workspace goes on."""
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        shutil.rmtree(tmp_path / "project")
        await running.submit("hello", "r1")
        complete = await running.completed("r1")
        assert complete.outcome is Outcome.ERROR
        assert complete.error == f"Directory not found: {tmp_path / 'project'} no longer exists."
        info = await running.workspace.agent()
        assert (info.ready, "no longer exists" in (info.problem or "")) == (False, True)
        assert not (await running.workspace.describe()).ready
        (tmp_path / "project").mkdir()
        await running.submit("hello again", "r2")
        assert (await running.completed("r2")).outcome is Outcome.END_TURN
        assert (await running.workspace.describe()).ready


# Configuration


async def test_a_broken_config_leaves_the_workspace_open_but_not_ready(tmp_path: Path) -> None:
    """The run ends with file and line; mending the file mends the workspace, without a restart."""
    file = tmp_path / "project" / "longboat.json"
    async with launch(tmp_path, ScriptedModel.echo(), config='{\n  "titles": false,\n  "retry": 7\n}') as running:
        assert not (await running.workspace.describe()).ready
        await running.submit("hello", "r1")
        complete = await running.completed("r1")
        assert complete.outcome is Outcome.ERROR
        assert f"{file}:3: retry: expected" in complete.error
        file.write_text('{"titles": false}')
        assert (await running.workspace.describe()).ready
        await running.submit("hello", "r2")
        assert (await running.completed("r2")).text == "echo: hello"
        file.write_text("{")
        assert not (await running.workspace.describe()).ready


async def test_a_mended_config_brings_its_model_without_a_restart(tmp_path: Path) -> None:
    """The same through the real registry: the agent says what is wrong, then answers."""
    file = tmp_path / "longboat.json"
    file.write_text('{\n  "titles": false,\n  "modles": {}\n}')
    async with ScriptedEndpoint() as endpoint, open_app(settings_in(tmp_path)) as app:
        workspace, _ = await app.join(str(tmp_path), None)
        session = await workspace.create_session(CreateSession())
        async with watch(workspace) as watcher:
            info = await workspace.agent()
            assert (info.ready, info.problem) == (False, f"{file}:3: modles: unknown key: did you mean 'models'?")
            await workspace.submit(Submit(session_id=session.id, prompt="hello", run_id="r1"))
            assert "did you mean 'models'?" in (await watcher.completed("r1")).error
            provider = f'{{"type": "openai-compatible", "base_url": "{endpoint.base_url}", "api_key": "x"}}'
            models = '{"large": "mine/m", "small": "mine/m"}'
            user = user_config_file(os.environ, Path.home())
            user.parent.mkdir(parents=True)
            user.write_text(f'{{"providers": {{"mine": {provider}}}}}')
            file.write_text(f'{{"titles": false, "models": {models}}}')
            info = await workspace.agent()
            assert (info.provider, info.model, info.ready) == ("mine", "m", True)
            await workspace.submit(Submit(session_id=session.id, prompt="hello", run_id="r2"))
            assert (await watcher.completed("r2")).text.startswith("echo: hello")


# Apart from each other


async def test_closing_one_workspace_leaves_the_others_alone(tmp_path: Path) -> None:
    """B7: runs and streams of the other go on; sessions and runs are not visible across."""
    gate = Gate()

    def answer(request: ModelRequest) -> Step:
        return [Say("one "), Pause(gate), Say("two")] if last_prompt(request) == "slow" else [Say("quick")]

    (tmp_path / "other").mkdir()
    async with launch(tmp_path, ScriptedModel(answer)) as running:
        other, _ = await running.app.join(str(tmp_path / "other"), None)
        session = await other.create_session(CreateSession())
        with pytest.raises(SessionNotFound):
            await running.workspace.session(session.id)
        with pytest.raises(SessionNotFound):
            await running.workspace.submit(Submit(session_id=session.id, prompt="go"))
        await running.submit("slow", "same-id")
        await gate.reached()
        async with watch(other, client_id="b") as b:
            await other.submit(Submit(session_id=session.id, prompt="go", run_id="same-id"))
            assert (await b.completed("same-id")).text == "quick"
            await other.presence.release("b")
            await b.ended.wait()
        assert (other.closing, running.workspace.closing) == (True, False)
        gate.open()
        assert (await running.completed("same-id")).text == "one two"
        assert not running.watcher.ended.is_set()
        assert {event.payload.session_id for event in running.watcher.events if event.type == "run"} == {
            running.session_id
        }


# Sessions


async def test_a_session_that_two_delete_at_once_is_gone_for_the_second(tmp_path: Path) -> None:
    """Also for whoever comes with a rename or a prompt at that moment."""
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        gate = await running.held_actor()
        asking = [
            asyncio.create_task(running.workspace.delete_session(running.session_id)),
            asyncio.create_task(running.workspace.delete_session(running.session_id)),
        ]
        await running.posted(2)
        gate.open()
        await running.watcher.until(lambda event: event.type == "session" and event.change == "deleted")
        outcomes = await asyncio.gather(*asking, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [type(None), SessionNotFound]
        with pytest.raises(SessionNotFound):
            await running.submit("late")
        with pytest.raises(SessionNotFound):
            await running.workspace.update_session(running.session_id, UpdateSession(title="late"))


async def test_a_rename_that_meets_a_delete_is_told_that_the_session_is_gone(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        actor = running.actor
        await running.workspace.delete_session(running.session_id)
        with pytest.raises(SessionNotFound):
            await actor.update(UpdateSession(title="late"))


async def test_a_session_deleted_while_somebody_looks_it_up_is_not_found(tmp_path: Path) -> None:
    """What was read of it is gone by the time it is used: no ghost of it is kept."""
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        session = Session(id="old", workspace_id=running.workspace.id, title="", created_at=now(), updated_at=now())
        store = running.workspace.store
        await store.submit(Unit(workspace_id=running.workspace.id, writes=[insert_session(session)]))
        reads = store.reads
        read = reads.session

        async def read_late(workspace_id: str, session_id: str) -> SessionRecord | None:
            found = await read(workspace_id, session_id)
            reads.session = read  # type: ignore[method-assign]
            await running.workspace.delete_session(session.id)
            return found

        reads.session = read_late  # type: ignore[method-assign]
        with pytest.raises(SessionNotFound):
            await running.submit("hello", session_id=session.id)


async def test_a_name_that_is_not_utf8_is_refused_and_not_a_failure(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(odd)
    os.symlink(odd, tmp_path / "link")
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        with pytest.raises(BadInput, match="not UTF-8"):
            await running.app.join(str(tmp_path / "link"), None)


async def test_a_session_is_deleted_whole_though_its_run_alone_held_the_workspace(tmp_path: Path) -> None:
    """B3: the workspace stays open for what is being done in it, not only for runs and clients."""
    gate = Gate()
    model = ScriptedModel([[Say("on"), Pause(gate)]])
    (tmp_path / "longboat.json").write_text(TITLES_OFF)
    async with open_app(settings_in(tmp_path), models=OneModel(model)) as app:
        workspace, _ = await app.join(str(tmp_path), None)
        session = await workspace.create_session(CreateSession())
        await workspace.submit(Submit(session_id=session.id, prompt="go", run_id="r1"))
        await gate.reached()
        async with watch(workspace, client_id="me"):
            pass
        await workspace.presence.release("me")  # the run alone holds it now
        await workspace.delete_session(session.id)
        with pytest.raises(SessionNotFound):
            await (await app.workspace(workspace.id)).session(session.id)
