"""B3, B4: who holds a workspace open, for how long, and that a run needs nobody. Clocks are long or tiny."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from mirror import log_of
from running_app import OneModel, Watcher, settings_in, watch

from longboat.errors import OwnerLost, ServerLeaving, SessionNotFound, WorkspaceClosing
from longboat.models.protocol import Model
from longboat.runtime.app import App, open_app
from longboat.runtime.workspace.presence import Claims
from longboat.runtime.workspace.workspace import Workspace
from longboat.store.protocol import Unit
from longboat.testing import Gate, Pause, Say, ScriptedModel
from longboat.wire.models import Outcome
from longboat.wire.requests import CreateSession, Submit

LONG = 3600.0
TINY = 0.01


@asynccontextmanager
async def open_server(
    directory: Path,
    model: Model | None = None,
    *,
    hold_s: float = LONG,
    grace_s: float = LONG,
    stop: asyncio.Event | None = None,
    **settings: Any,
) -> AsyncIterator[App]:
    """A server with one directory `project` to open and nobody attached."""
    (directory / "project").mkdir(exist_ok=True)
    (directory / "project" / "longboat.json").write_text('{"titles": false}')
    timing = {"create_hold_s": hold_s, "detach_grace_s": grace_s, **settings}
    models = OneModel(model or ScriptedModel.echo())
    async with open_app(settings_in(directory, **timing), models=models, stop=stop) as app:
        yield app


async def joined(app: App, directory: Path) -> Workspace:
    workspace, _ = await app.join(str(directory / "project"), None)
    return workspace


async def closed(workspace: Workspace) -> None:
    """Wait until the workspace has closed. Listens to its log without a claim."""
    async for _ in workspace.presence.hub.stream(None, None):
        pass
    assert workspace.closing


async def client_events(workspace: Workspace) -> list[tuple[str | None, str]]:
    """Who came and went, as the log tells it when all that is under way is on disk."""
    await workspace.store.submit(Unit(workspace_id="nobody"))
    reader = Watcher()
    for row in await log_of(workspace):
        reader.take(row["frames"])
    return [(event.change, event.payload.client_id) for event in reader.events if event.type == "client"]


def left(client_id: str) -> Any:
    return lambda event: (
        (event.type, event.change, getattr(event.payload, "client_id", None))
        == (
            "client",
            "deleted",
            client_id,
        )
    )


@asynccontextmanager
async def attached(workspace: Workspace, *, client_id: str, after: str | None = None) -> AsyncIterator[Watcher]:
    """A client that has begun to read: from here on it sees who comes and goes."""
    async with watch(workspace, client_id=client_id, after=after) as watcher:
        await watcher.until(lambda event: True)
        yield watcher


# Holding


async def test_a_created_workspace_waits_for_its_first_stream_and_then_closes(tmp_path: Path) -> None:
    async with open_server(tmp_path, hold_s=TINY) as app:
        workspace = await joined(app, tmp_path)
        await closed(workspace)
        assert app.gauges()["workspaces_open"] == 0


async def test_the_first_stream_takes_over_from_the_hold(tmp_path: Path) -> None:
    async with open_server(tmp_path, hold_s=LONG, grace_s=TINY) as app:
        workspace = await joined(app, tmp_path)
        async with attached(workspace, client_id="a"):
            pass
        await closed(workspace)


async def test_joining_again_holds_it_again(tmp_path: Path) -> None:
    async with open_server(tmp_path, hold_s=LONG, grace_s=TINY) as app:
        workspace = await joined(app, tmp_path)
        async with attached(workspace, client_id="b") as other, attached(workspace, client_id="a"):
            assert await joined(app, tmp_path) is workspace
            await workspace.presence.release("a")
            await other.until(left("a"))
        await workspace.presence.release("b")
        assert not workspace.closing, "whoever joined has not come yet"


async def test_a_dropped_stream_keeps_its_claim_for_the_grace_time(tmp_path: Path) -> None:
    """A reconnect within it is nothing to talk about."""
    async with open_server(tmp_path, grace_s=LONG) as app:
        workspace = await joined(app, tmp_path)
        for _ in range(3):
            async with attached(workspace, client_id="a") as watcher:
                await watcher.until(lambda event: event.type == "snapshot")
        assert not workspace.closing
        assert await client_events(workspace) == [("created", "a")]
        assert [client.client_id for client in (await workspace.describe()).clients] == ["a"]


async def test_a_client_that_does_not_come_back_is_detached(tmp_path: Path) -> None:
    async with open_server(tmp_path, grace_s=TINY) as app:
        workspace = await joined(app, tmp_path)
        async with attached(workspace, client_id="stays") as stays:
            async with attached(workspace, client_id="goes"):
                pass
            await stays.until(left("goes"))
            assert [client.client_id for client in (await workspace.describe()).clients] == ["stays"]
        await closed(workspace)
        assert await client_events(workspace) == [
            ("created", "stays"),
            ("created", "goes"),
            ("deleted", "goes"),
            ("deleted", "stays"),
        ]


async def test_two_streams_of_one_client_are_one_claim_until_both_are_gone(tmp_path: Path) -> None:
    async with open_server(tmp_path, grace_s=TINY) as app:
        workspace = await joined(app, tmp_path)
        async with attached(workspace, client_id="two") as stays:
            async with attached(workspace, client_id="two"):
                pass
            # This one's grace begins later and ends: so would have ended a grace of the other.
            async with attached(workspace, client_id="clock"):
                pass
            await stays.until(left("clock"))
            assert [client.client_id for client in (await workspace.describe()).clients] == ["two"]
        await closed(workspace)


async def test_release_gives_the_claim_back_at_once(tmp_path: Path) -> None:
    """DELETE W: the workspace closes, streams that are still open end in good order."""
    async with open_server(tmp_path, grace_s=LONG) as app:
        workspace = await joined(app, tmp_path)
        async with attached(workspace, client_id="a") as a, attached(workspace, client_id="b") as b:
            await workspace.presence.release("a")
            await b.until(left("a"))
            assert not workspace.closing
            await workspace.presence.release("nobody")
            assert not workspace.closing
            await workspace.presence.release("b")
            assert workspace.closing
            await a.ended.wait()
            await b.ended.wait()
        assert app.gauges()["workspaces_open"] == 0


async def test_a_stream_that_ends_after_its_release_does_not_count_against_the_next(tmp_path: Path) -> None:
    """Released, attached anew, and only then the old connection is seen to be gone."""
    async with open_server(tmp_path, grace_s=TINY) as app, AsyncExitStack() as old:
        workspace = await joined(app, tmp_path)
        async with attached(workspace, client_id="clock") as clock:
            await old.enter_async_context(workspace.stream(client_id="a", after=None, session_id=None))
            await workspace.presence.release("a")
            async with workspace.stream(client_id="a", after=None, session_id=None):
                await old.aclose()
                async with attached(workspace, client_id="later"):
                    pass
                await clock.until(left("later"))
                clients = [client.client_id for client in (await workspace.describe()).clients]
                assert sorted(clients) == ["a", "clock"]


async def test_dropping_a_client_drops_all_its_claims(tmp_path: Path) -> None:
    """DELETE /v1/clients/{client_id}."""
    (tmp_path / "other").mkdir()
    async with open_server(tmp_path, grace_s=LONG) as app:
        one = await joined(app, tmp_path)
        two, _ = await app.join(str(tmp_path / "other"), None)
        async with attached(one, client_id="a"), attached(two, client_id="a"), attached(two, client_id="b") as b:
            await app.drop_client("a")
            assert (one.closing, two.closing) == (True, False)
            await b.until(left("a"))


async def test_a_refused_stream_leaves_no_claim(tmp_path: Path) -> None:
    async with open_server(tmp_path, grace_s=TINY) as app:
        workspace = await joined(app, tmp_path)
        async with attached(workspace, client_id="clock"):
            with pytest.raises(SessionNotFound):
                async with workspace.stream(client_id="a", after=None, session_id="nobody"):
                    pass
            assert workspace.presence.claims.streams == 1
        await closed(workspace)
        assert [client for _, client in await client_events(workspace)] == ["clock", "clock"]


async def test_a_closed_workspace_refuses_and_asking_the_app_opens_it_anew(tmp_path: Path) -> None:
    """B4: any request to a closed one reopens it; the id, the sessions and the cursors are the same."""
    async with open_server(tmp_path, grace_s=TINY) as app:
        workspace = await joined(app, tmp_path)
        session = await workspace.create_session(CreateSession(title="kept"))
        async with attached(workspace, client_id="a") as watcher:
            first = await watcher.until(lambda event: event.type == "snapshot")
        await closed(workspace)
        with pytest.raises(WorkspaceClosing):
            await workspace.submit(Submit(session_id=session.id, prompt="go"))
        with pytest.raises(WorkspaceClosing):
            await workspace.create_session(CreateSession())
        with pytest.raises(WorkspaceClosing):
            async with workspace.stream(client_id="a", after=None, session_id=None):
                pass
        again = await app.workspace(workspace.id)
        assert (again is workspace, again.id) == (False, workspace.id)
        assert await again.session(session.id) == session
        async with attached(again, client_id="a", after=first.payload.cursor) as late:
            await late.until(left("a"))
        assert late.of("resync") == []
        assert not again.closing


async def test_g3_what_a_closed_workspace_left_behind_does_not_get_into_the_log_of_the_next(tmp_path: Path) -> None:
    """Found by chaos: a turn that had waited for the database wrote its rest when the server was the owner again."""
    async with open_server(tmp_path, grace_s=TINY) as app:
        workspace = await joined(app, tmp_path)
        async with attached(workspace, client_id="a"):
            pass
        await closed(workspace)
        again = await app.workspace(workspace.id)
        with pytest.raises(OwnerLost):
            await workspace.services.store.submit(Unit(workspace_id=workspace.id))
        await again.services.store.submit(Unit(workspace_id=workspace.id))


# A run needs nobody


async def test_a_run_goes_on_with_nobody_attached_and_the_workspace_closes_after_it(tmp_path: Path) -> None:
    """B2, B3: a client that exits, a connection that drops, a hold that runs out: none of them ends a run."""
    gate = Gate()
    model = ScriptedModel([[Say("one "), Pause(gate), Say("two")], [Say("three")]])
    async with open_server(tmp_path, model, hold_s=LONG, grace_s=TINY) as app:
        workspace = await joined(app, tmp_path)
        session = await workspace.create_session(CreateSession())
        async with attached(workspace, client_id="a"):
            for run_id in ("r1", "r2"):
                await workspace.submit(Submit(session_id=session.id, prompt="go", run_id=run_id, client_id="a"))
            await gate.reached()
        reader = Watcher()
        async for chunk in workspace.presence.hub.stream(None, None):
            reader.take(chunk)
            if any(left("a")(event) for event in reader.events):
                # All claims are gone, and the clocks have run out: only the runs are left.
                assert not workspace.closing
                gate.open()
        assert workspace.closing
        assert [(event.run_id, event.outcome) for event in reader.of("run_complete")] == [
            ("r1", Outcome.END_TURN),
            ("r2", Outcome.END_TURN),
        ]


async def test_a_canceled_run_lets_the_workspace_close(tmp_path: Path) -> None:
    gate = Gate()
    async with open_server(tmp_path, ScriptedModel([[Pause(gate)]]), grace_s=TINY) as app:
        workspace = await joined(app, tmp_path)
        session = await workspace.create_session(CreateSession())
        async with attached(workspace, client_id="a"):
            await workspace.submit(Submit(session_id=session.id, prompt="go", run_id="r1"))
            await gate.reached()
        await workspace.presence.release("a")
        assert not workspace.closing
        await workspace.cancel_run("r1")
        await closed(workspace)
        assert (await (await app.workspace(workspace.id)).run("r1")).outcome is Outcome.CANCELED


# Idle exit


async def test_a_background_server_ends_itself_when_no_workspace_was_ever_opened(tmp_path: Path) -> None:
    stop = asyncio.Event()
    with suppress(ServerLeaving):  # on a busy machine the clock is quicker than the start, which then begins nothing
        async with open_server(tmp_path, stop=stop, idle_exit_s=TINY):
            await stop.wait()
    assert stop.is_set()


async def test_the_idle_clock_stands_while_a_workspace_is_open(tmp_path: Path) -> None:
    async with open_server(tmp_path, idle_exit_s=LONG, grace_s=TINY) as app:
        assert app._idle_exit is not None
        for _ in range(2):
            workspace = await joined(app, tmp_path)
            assert app._idle_exit is None
            async with attached(workspace, client_id="a"):
                pass
            await closed(workspace)
            assert app._idle_exit is not None


async def test_a_server_that_was_started_by_serve_stays(tmp_path: Path) -> None:
    async with open_server(tmp_path, hold_s=TINY) as app:
        await closed(await joined(app, tmp_path))
        assert app._idle_exit is None


# The clocks by themselves


async def test_claims_tell_of_the_last_one_once(tmp_path: Path) -> None:
    gone: list[str] = []
    free = asyncio.Event()
    claims = Claims(hold_s=LONG, grace_s=TINY, on_detach=gone.append, on_free=free.set)
    claims.hold()
    assert claims.held
    first, second = object(), object()
    assert claims.attach("a", first)
    assert not claims.attach("a", second)
    assert claims.streams == 2
    claims.detach("a", first)
    claims.detach("a", first)
    assert claims.streams == 1
    claims.detach("a", second)
    assert (claims.held, claims.streams) == (True, 0)
    await free.wait()
    assert (gone, claims.held) == (["a"], False)


async def test_closed_claims_start_no_clock(tmp_path: Path) -> None:
    """At the server's end streams end after their workspace has closed: nothing may fire later."""
    gone: list[str] = []
    claims = Claims(hold_s=TINY, grace_s=TINY, on_detach=gone.append, on_free=lambda: gone.append("free"))
    stream = object()
    claims.attach("a", stream)
    claims.close()
    claims.detach("a", stream)
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(2 * TINY, later.set)
    await later.wait()
    assert gone == []
