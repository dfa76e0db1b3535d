"""Pinned and archived sessions: lists, pages, events; and what the list of workspaces tells."""

from pathlib import Path

from crash import restarted
from running_app import RunningApp, launch

from longboat.testing import CallTool, Say, ScriptedModel
from longboat.wire.listings import Archived, SessionOrder
from longboat.wire.models import Session
from longboat.wire.requests import CreateSession, UpdateSession


async def made(running: RunningApp, *titles: str) -> dict[str, str]:
    """New sessions by their titles; the session that `launch` made is gone."""
    await running.workspace.delete_session(running.session_id)
    return {title: (await running.workspace.create_session(CreateSession(title=title))).id for title in titles}


async def mark(
    running: RunningApp, session_id: str, *, pinned: bool | None = None, archived: bool | None = None
) -> Session:
    return await running.workspace.update_session(session_id, UpdateSession(pinned=pinned, archived=archived))


async def listed(running: RunningApp, **which: object) -> list[str]:
    """All pages of two."""
    found, after = [], None
    while True:
        page = await running.workspace.ledger.sessions(limit=2, after=after, **which)  # type: ignore[arg-type]
        found += [session.title for session in page.items]
        if (after := page.next) is None:
            return found


async def test_pinned_sessions_come_first_on_whatever_page(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        ids = await made(running, "a", "b", "c", "d", "e")
        assert await listed(running) == ["e", "d", "c", "b", "a"]
        for title in ("a", "d", "b"):
            await mark(running, ids[title], pinned=True)
        assert await listed(running) == ["d", "b", "a", "e", "c"]
        assert await listed(running, order=SessionOrder.NEWEST) == ["e", "d", "c", "b", "a"]
        assert await listed(running, search="a") == ["a"]
        await mark(running, ids["d"], pinned=False)
        assert await listed(running) == ["b", "a", "e", "d", "c"]
        for title in ids:
            await mark(running, ids[title], pinned=True)
        assert await listed(running) == ["e", "d", "c", "b", "a"]


async def test_archived_sessions_are_listed_only_if_asked_for(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        ids = await made(running, "a", "b", "c")
        await mark(running, ids["b"], archived=True)
        assert await listed(running) == ["c", "a"]
        assert await listed(running, archived=Archived.INCLUDED) == ["c", "b", "a"]
        assert await listed(running, archived=Archived.ONLY) == ["b"]
        await mark(running, ids["b"], pinned=True)
        assert await listed(running) == ["c", "a"]
        assert await listed(running, archived=Archived.ONLY) == ["b"]
        await mark(running, ids["b"], archived=False)
        assert await listed(running) == ["b", "c", "a"]


async def test_a_mark_is_told_to_everybody_survives_a_kill_and_is_no_use_of_the_session(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        before = await running.workspace.session(running.session_id)
        told = await mark(running, running.session_id, pinned=True, archived=True)
        assert (told.pinned, told.archived, told.updated_at) == (True, True, before.updated_at)
        event = await running.watcher.until(lambda each: each.type == "session" and each.payload.pinned)
        assert event.payload == told
        assert await mark(running, running.session_id) == told, "what is left out stays as it is"
        async with restarted(running, ScriptedModel.echo()) as again:
            assert await again.workspace.session(running.session_id) == told


async def test_a_prompt_brings_an_archived_session_back(tmp_path: Path) -> None:
    async with launch(tmp_path, ScriptedModel.echo()) as running:
        await mark(running, running.session_id, pinned=True, archived=True)
        await running.submit("hello", "r1")
        await running.completed("r1")
        session = await running.workspace.session(running.session_id)
        assert (session.archived, session.pinned) == (False, True)
        assert await listed(running) == ["hello"]


async def test_the_list_of_workspaces_tells_when_each_was_used_and_what_waits(tmp_path: Path) -> None:
    """The time shown was that of its creation, and nothing marked a session that asks something."""
    model = ScriptedModel([[CallTool("bash", '{"command": "touch x"}')], [Say("done")]])
    async with launch(tmp_path, model) as running:
        (tmp_path / "never used").mkdir()
        await running.app.join(str(tmp_path / "never used"), None)
        await running.submit("go", "r1")
        await running.watcher.until(lambda event: event.type == "permission_request")
        here, other = (await running.app.workspaces()).items
        assert (here.waiting, here.used_at) == (1, (await running.workspace.session(running.session_id)).updated_at)
        assert (other.waiting, other.used_at) == (0, None)
        await running.workspace.cancel_session(running.session_id)
        await running.completed("r1")
        assert (await running.app.workspaces()).items[0].waiting == 0
