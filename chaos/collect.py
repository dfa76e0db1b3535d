"""Gather what a workspace shows when all is over."""

from pathlib import Path
from typing import Any

import httpx2

from chaos.clients import IMPORTED, Workspace
from chaos.evidence import Json, WorkspaceEvidence, event_in, read_effects, seen_in
from chaos.plan import EFFECTS, file_of
from chaos.readers import Reader, head, replay


async def collect(
    http: httpx2.AsyncClient, workspace: Workspace, *, directory: Path, readers: list[Reader], first_cursor: str
) -> WorkspaceEvidence:
    route = workspace.route
    ledger = await listed(http, f"{route}/runs")
    sessions = await listed(http, f"{route}/sessions")
    transcripts = {each["id"]: await listed(http, f"{route}/sessions/{each['id']}/messages") for each in sessions}
    asks = [ask for kind in ("permissions", "questions") for ask in await listed(http, f"{route}/{kind}")]
    up_to = await head(http, workspace.events)
    frames = await replay(http, workspace.events, after=first_cursor, up_to=up_to)
    for reader in readers:
        await reader.reach(up_to)
    seen = [seen_in(frame) for frame in frames]
    return WorkspaceEvidence(
        name=workspace.name,
        log=[event_in(frame) for frame in frames],
        replay=seen,
        # What came while the others caught up, such as a reader that attached again, is in no replay.
        readers={reader.name: reader.seen[: len(seen)] for reader in readers},
        resyncs={reader.name: reader.resyncs for reader in readers},
        ledger=ledger,
        transcripts=transcripts,
        imported=_imported(sessions),
        pending=[ask["id"] for ask in asks],
        effects=read_effects(directory / EFFECTS),
        files={path.stem for path in (directory / file_of("any")).parent.glob("*.txt")},
    )


def _imported(sessions: list[Json]) -> set[str]:
    """With the sessions of their sub-agents. A session is made after its parent, and listed before it."""
    found: set[str] = set()
    for session in reversed(sessions):
        if session["title"] == IMPORTED or session["parent_id"] in found:
            found.add(session["id"])
    return found


async def listed(http: httpx2.AsyncClient, path: str) -> list[Json]:
    """All pages of a list."""
    items: list[Json] = []
    params: dict[str, Any] = {} if path.endswith(("permissions", "questions")) else {"limit": 500}
    while True:
        page = (await http.get(path, params=params)).raise_for_status().json()
        items += page["items"]
        if page.get("next") is None:
            return items
        params["after"] = page["next"]
