"""The days before the pictures: real runs of a real server, whose rows are then moved back in the store.

Owns nothing. The server must be away while rows are moved.
"""

import asyncio
import sqlite3

from longboat.client import Client
from longboat.store.sqlite.search import INDEX_NAME
from longboat.wire.models import RunState
from longboat.wire.requests import Approve, Submit
from picturing.scene import Scene
from picturing.story import Past

_INSTANTS = {
    "sessions": ("created_at", "updated_at"),
    "messages": ("created_at", "finished_at"),
    "runs": ("accepted_at", "started_at", "finished_at"),
}


async def live_through(scene: Scene, past: tuple[Past, ...]) -> None:
    """Play the sessions, all at once, and move each to its day."""
    sessions: dict[str, int] = {}
    async with scene.serving(), scene.client("anna") as client:
        workspace_id = (await client.join(scene.project)).id
        for each in past:  # one by one: the list shows them in the order in which they were made
            sessions[(await client.create_session(workspace_id, each.title)).id] = each.days_ago
        await asyncio.gather(*(_play(scene, client, workspace_id, *pair) for pair in zip(sessions, past, strict=True)))
    _move(scene, sessions)


async def _play(scene: Scene, client: Client, workspace_id: str, session_id: str, past: Past) -> None:
    name = _name(session_id)
    scene.model.add(*past.steps() * past.runs, name=name)
    model = "mine/devstral-small" if past.tokens < 10_000 else None
    for _ in range(past.runs):
        submit = Submit(session_id=session_id, prompt=f"{past.title} [[{name}]]", approve=Approve.ALL, model=model)
        run_id = (await client.submit(workspace_id, submit)).run_id
        if past.canceled:
            await asyncio.sleep(past.works_s)
            await client.cancel_run(workspace_id, run_id)
        while (await client.get_run(workspace_id, run_id, wait_s=10)).state is not RunState.FINISHED:
            pass


def _move(scene: Scene, sessions: dict[str, int]) -> None:
    with sqlite3.connect(scene.database) as store:
        for session_id, days in sessions.items():
            for table, columns in _INSTANTS.items():
                earlier = ", ".join(f"{name} = strftime('%Y-%m-%dT%H:%M:%fZ', {name}, :by)" for name in columns)
                store.execute(
                    f"UPDATE {table} SET {earlier} WHERE session_id = :of", {"by": f"-{days} days", "of": session_id}
                )
            for table in ("spendings", "tool_calls"):
                store.execute(
                    f"UPDATE {table} SET day = date(day, ?) WHERE session_id = ?", (f"-{days} days", session_id)
                )
            _unmark(store, session_id)
        store.execute("DELETE FROM inbox")  # it has them in the order in which they ended
    store.close()
    for file in scene.database.parent.glob(f"{INDEX_NAME}*"):
        file.unlink()  # made again from what was moved


def _unmark(store: sqlite3.Connection, session_id: str) -> None:
    """Remove the marks that chose the script of a prompt: people would see them."""
    mark = f" [[{_name(session_id)}]]"
    store.execute("UPDATE runs SET prompt = replace(prompt, ?, '') WHERE session_id = ?", (mark, session_id))
    store.execute(
        "UPDATE messages SET parts = CAST(replace(CAST(parts AS TEXT), ?, '') AS BLOB) WHERE session_id = ?",
        (mark, session_id),
    )


def _name(session_id: str) -> str:
    """The name of the session's script."""
    return session_id.replace("-", "")
