"""A workspace is opened once, whoever asks for it, and only after it was closed (B2, B5, G3)."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from other_processes import wait_until
from postgres import database_of, full_database
from running_app import OneModel

from longboat.config.settings import ServerSection, Settings
from longboat.errors import CancelNotDurable, OwnedElsewhere, StoreUnavailable
from longboat.fleet.node import Node, open_node
from longboat.runtime.app import App, open_app
from longboat.runtime.workspace.workspace import Workspace
from longboat.testing import CallTool, Gate, Pause, Say, ScriptedModel
from longboat.tools.process.jobs import Jobs
from longboat.wire.models import Canceled, Outcome, RunState
from longboat.wire.requests import Approve, CreateSession, Submit


class Site:
    """A node that can be started again, on a database of its own."""

    def __init__(self, path: Path) -> None:
        self._settings = Settings(
            data_dir=path / "data",
            runtime_dir=path / "run",
            socket=None,
            token="t",
            node="a",
            cluster_secret="s",
            store=database_of(path),
            server=ServerSection(lease_s=60),
        )
        self._path = path

    @property
    def store(self) -> str:
        assert self._settings.store is not None
        return self._settings.store

    def project(self, name: str, **config: str) -> str:
        directory = self._path / name
        directory.mkdir()
        (directory / "longboat.json").write_text(json.dumps({"titles": False, **config}))
        return str(directory)

    @asynccontextmanager
    async def start(self, model: ScriptedModel) -> AsyncIterator[App]:
        models = OneModel(model)
        async with open_app(self._settings, models=models, url="http://a.invalid", open_ownership=open_node) as app:
            assert isinstance(app.ownership, Node)
            app.ownership.when_orphaned(_take_nothing)  # the test opens workspaces, and nobody else
            yield app


async def _take_nothing(workspace_id: str) -> None:
    del workspace_id


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


async def leave_queued(site: Site) -> str:
    """A workspace whose server left while r0 was active and r1 was queued."""
    never = Gate()
    async with site.start(ScriptedModel([[Pause(never)]])) as app:
        workspace, _ = await app.join(site.project("queued"), None)
        session = await workspace.create_session(CreateSession())
        for run_id in ("r0", "r1"):
            await workspace.submit(Submit(session_id=session.id, prompt=run_id, run_id=run_id))
    return workspace.id


def hold(patch: pytest.MonkeyPatch, name: str, *, before: bool = False) -> Gate:
    """Every call of this method of a workspace waits at the gate."""
    gate, method = Gate(), getattr(Workspace, name)

    async def held(workspace: Workspace, *args: object) -> object:
        if before:
            await gate.arrive()
        result: object = await method(workspace, *args)
        if not before:
            await gate.arrive()
        return result

    patch.setattr(Workspace, name, held)
    return gate


async def test_b2_whoever_stops_waiting_for_an_opening_stops_neither_it_nor_the_runs_that_it_started(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser tab that came back after a restart was closed at once, and a queued run ended as interrupted."""
    workspace_id = await leave_queued(site)
    go = Gate()
    model = ScriptedModel([[Say("half "), Pause(go), Say("and half")]])
    async with site.start(model) as app:
        opened = hold(monkeypatch, "restore")
        first, second = (
            asyncio.create_task(app.workspace(workspace_id)),
            asyncio.create_task(app.workspace(workspace_id)),
        )
        await opened.reached()
        await model.wait_requests(1)
        first.cancel()
        await asyncio.wait([first])
        opened.open()
        go.open()
        run = await (await second).run("r1", wait_s=10)
        assert (first.cancelled(), run.outcome) == (True, Outcome.END_TURN)
        assert await app.workspace(workspace_id) is await second


async def test_g7_a_workspace_that_takes_long_to_open_holds_up_no_other(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that takes over many workspaces opened one after the other, and a lease is short."""
    async with site.start(ScriptedModel.echo()) as app:
        slow, _ = await app.join(site.project("slow"), None)
        await app._leave_workspace(slow)
        with monkeypatch.context() as patch:
            opened = hold(patch, "restore")
            opening = asyncio.create_task(app.workspace(slow.id))
            await opened.reached()
        quick, _ = await app.join(site.project("quick"), None)
        assert (app.is_open(quick.id), app.is_open(slow.id)) == (True, False)
        opened.open()
        await opening
        assert app.is_open(slow.id)


async def test_g3_a_workspace_that_cannot_be_created_is_left_to_other_nodes(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease was renewed for ever, and every node passed its requests on to this one."""
    async with site.start(ScriptedModel.echo()) as app:
        workspace, _ = await app.join(site.project("w"), None)
        await app._leave_workspace(workspace)

        async def fail(*_: object) -> Workspace:
            raise OSError("the disk is broken")

        with monkeypatch.context() as patch:
            patch.setattr(app.opened, "_create", fail)
            with pytest.raises(OSError, match="broken"):
                await app.workspace(workspace.id)
        assert isinstance(app.ownership, Node)
        assert not app.ownership.owns(workspace.id)
        assert (await app.ownership.find(workspace.id)).owner is None
        assert (await app.workspace(workspace.id)).id == workspace.id


async def test_g3_a_closing_that_never_began_gives_no_lease_back(site: Site) -> None:
    """Nothing has ended the tools yet: a task that is canceled before its first step runs no `finally`."""
    async with site.start(ScriptedModel.echo()) as app:
        workspace, _ = await app.join(site.project("w"), None)
        app.opened._end(workspace)
        closing = app.opened._closings[workspace.id]
        closing.cancel()
        await asyncio.wait([closing])
        assert isinstance(app.ownership, Node)
        await app.ownership.sign_off()
        assert (await app.ownership.find(workspace.id)).owner == "a", "until the lease is over"
        await workspace.aclose()


async def test_g3_commands_get_more_time_only_where_the_lease_was_renewed(site: Site) -> None:
    """All workspaces did that the node owned by then."""
    async with site.start(ScriptedModel.echo()) as app:
        renewed, claimed = [(await app.join(site.project(name), None))[0] for name in ("renewed", "claimed")]
        before = claimed.tools._allowed
        app.opened._allow_commands({renewed.id}, 600.0, 5.0)
        assert (renewed.tools._allowed, claimed.tools._allowed) == ((600.0, 5.0), before)
        assert before != (600.0, 5.0)


async def test_g3_a_workspace_is_opened_again_only_once_its_failed_opening_has_given_back_the_lease(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the failed one gave back the lease of the next: it was open without an owner."""
    async with site.start(ScriptedModel.echo()) as app:
        workspace, _ = await app.join(site.project("w"), None)
        session = await workspace.create_session(CreateSession())
        await app._leave_workspace(workspace)
        assert not app.ownership.owns(workspace.id)
        announce, failures = Workspace.announce, iter([True])

        async def fail_once(workspace: Workspace) -> None:
            if next(failures, False):
                raise StoreUnavailable("The database is away.")
            await announce(workspace)

        monkeypatch.setattr(Workspace, "announce", fail_once)
        closing = hold(monkeypatch, "aclose")
        waiting = [asyncio.create_task(app.workspace(workspace.id)) for _ in range(2)]
        await asyncio.wait(waiting)
        assert [str(type(task.exception()).__name__) for task in waiting] == ["StoreUnavailable"] * 2
        await closing.reached()
        again = asyncio.create_task(app.workspace(workspace.id))
        await _passed(again)
        assert not app.is_open(workspace.id)
        closing.open()
        accepted = await (await again).submit(Submit(session_id=session.id, prompt="hello"))
        assert (await (await again).run(accepted.run_id, wait_s=10)).outcome is Outcome.END_TURN
        assert app.is_open(workspace.id)
        assert app.ownership.owns(workspace.id)
        assert isinstance(app.ownership, Node)
        assert (await app.ownership.find(workspace.id)).owner == "a"


async def _passed(task: "asyncio.Task[Workspace]") -> None:
    """It has done what it can do at once, and waits now."""
    for _ in range(10):
        await asyncio.sleep(0)
    assert not task.done()


async def test_b5_a_run_whose_workspace_is_opened_while_the_server_leaves_stays_queued(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was started during the drain of another workspace, and cut off without a terminal event."""
    workspace_id = await leave_queued(site)
    never = Gate()
    model = ScriptedModel([[Pause(never)]])
    async with site.start(model) as app:
        busy, _ = await app.join(site.project("busy"), None)
        session = await busy.create_session(CreateSession())
        await busy.submit(Submit(session_id=session.id, prompt="busy"))
        await model.wait_requests(1)
        restoring = hold(monkeypatch, "restore", before=True)
        opening = asyncio.create_task(app.workspace(workspace_id))
        await restoring.reached()
        hurry = asyncio.Event()
        leaving = asyncio.create_task(app.leave(drain_s=60, hurry=hurry))
        await asyncio.sleep(0)
        assert app.leaving
        restoring.open()
        await opening
        hurry.set()
        await leaving
        assert len(model.requests) == 1
    monkeypatch.undo()
    async with site.start(ScriptedModel.echo()) as app:
        run = await (await app.workspace(workspace_id)).run("r1", wait_s=10)
        assert (run.state, run.outcome) == (RunState.FINISHED, Outcome.END_TURN)


async def test_g3_a_workspace_whose_tools_do_not_end_keeps_its_lease_until_it_is_over(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease was given back all the same, and the next owner worked beside what was left."""

    aclose = Jobs.aclose

    async def end_late(jobs: Jobs) -> None:
        await aclose(jobs)
        raise TimeoutError

    model = ScriptedModel([[CallTool("bash", {"command": "true"})], [Say("done")]])
    async with site.start(model) as app:
        assert isinstance(app.ownership, Node)
        workspace, _ = await app.join(site.project("w"), None)
        session = await workspace.create_session(CreateSession())
        accepted = await workspace.submit(Submit(session_id=session.id, prompt="work", approve=Approve.ALL))
        await workspace.run(accepted.run_id, wait_s=10)
        with monkeypatch.context() as patch:
            patch.setattr(Jobs, "aclose", end_late)
            await app._leave_workspace(workspace)
        assert not app.ownership.owns(workspace.id)
        assert (await app.ownership.find(workspace.id)).owner == "a"
        assert not workspace.tools.may_change()


async def test_g3_files_may_be_changed_only_until_the_lease_may_be_over(site: Site) -> None:
    async with site.start(ScriptedModel.echo()) as app:
        workspace, _ = await app.join(site.project("w"), None)
        assert workspace.tools.may_change()
        workspace.tools.allow_for(0)
        assert not workspace.tools.may_change()
        workspace.tools.allow_for(60)
        assert workspace.tools.may_change()
        await app._leave_workspace(workspace)
        assert not workspace.tools.may_change()


async def test_l15_g3_a_cancel_that_could_not_be_saved_holds_after_the_lease_was_lost(site: Site) -> None:
    """The cancel was forgotten with the closed workspace: the run that it had stopped was resumed."""
    never = Gate()
    model = ScriptedModel([[Say("half "), Pause(never)], [Say("newer")]])
    async with site.start(model) as app:
        assert isinstance(app.ownership, Node)
        workspace, _ = await app.join(site.project("w", on_restart="resume"), None)
        session = await workspace.create_session(CreateSession())
        for run_id in ("r0", "r1"):
            await workspace.submit(Submit(session_id=session.id, prompt=run_id, run_id=run_id))
        await never.reached()
        with full_database(site.store), pytest.raises(CancelNotDurable):
            await workspace.cancel_session(session.id, "ann", key="k")
            # Before it can be saved, the lease is over.
        app.ownership._lost(workspace.id)
        assert not app.is_open(workspace.id)
        again = await app.workspace(workspace.id)
        await again.submit(Submit(session_id=session.id, prompt="r2", run_id="r2"))
        assert await again.cancel_session(session.id, "ann", key="k") == Canceled(canceled=("r0", "r1"))
        ended = [await again.run(run_id, wait_s=10) for run_id in ("r0", "r1", "r2")]
        assert [(run.outcome, run.canceled_by) for run in ended] == [
            (Outcome.CANCELED, "ann"),
            (Outcome.CANCELED, "ann"),
            (Outcome.END_TURN, None),
        ]
        assert len(model.requests) == 2


async def test_g3_turns_of_a_workspace_that_is_lost_while_it_is_being_opened_are_stopped(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace_id = await leave_queued(site)
    model = ScriptedModel([[Say("half "), Pause(Gate())]])
    async with site.start(model) as app:
        assert isinstance(app.ownership, Node)
        opened = hold(monkeypatch, "restore")
        opening = asyncio.create_task(app.workspace(workspace_id))
        await opened.reached()
        await model.wait_requests(1)
        app.ownership._lost(workspace_id)
        await wait_until(lambda: model.abandoned)
        opened.open()
        await asyncio.wait([opening])
        assert isinstance(opening.exception(), OwnedElsewhere)
        assert not app.is_open(workspace_id)
