"""Gather what a workspace shows when all is over."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from chaos.clients import IMPORTED, Workspace
from chaos.evidence import Json, Piece, Takeover, WorkspaceEvidence, event_in, number_of, read_effects, seen_in
from chaos.plan import EFFECTS, file_of
from chaos.readers import Reader, head, replay

T = TypeVar("T")

AGAIN_S = 0.5
ATTEMPTS = 60


async def collect(
    doors: Sequence[httpx2.AsyncClient],
    workspace: Workspace,
    *,
    directory: Path,
    readers: list[Reader],
    first_cursor: str,
    takeovers: list[Takeover],
) -> WorkspaceEvidence:
    """The evidence that the first server shows, and what others show instead."""
    shown, *elsewhere = [await _shown(http, workspace) for http in doors]
    asks = [ask for kind in ("permissions", "questions") for ask in await listed(doors[0], f"{workspace.route}/{kind}")]
    up_to = await steadily(lambda: head(doors[0], workspace.events))
    frames, *others = [
        await steadily(partial(replay, http, workspace.events, after=first_cursor, up_to=up_to)) for http in doors
    ]
    for reader in readers:
        await reader.reach(up_to)
    pieces = {reader.name: [_cut(piece, up_to) for piece in reader.pieces] for reader in readers}
    replays = {f"replay {number}": [Piece(first_cursor, [*map(seen_in, other)])] for number, other in enumerate(others)}
    return WorkspaceEvidence(
        name=workspace.name,
        log=[event_in(frame) for frame in frames],
        replay=[seen_in(frame) for frame in frames],
        readers=pieces | replays,
        refusals=[f"{reader.name}: {each}" for reader in readers for each in reader.refusals],
        takeovers=takeovers,
        ledger=shown["ledger"],
        transcripts=shown["transcripts"],
        elsewhere=[name for other in elsewhere for name in shown if other[name] != shown[name]],
        imported=_imported(shown["sessions"]),
        pending=[ask["id"] for ask in asks],
        effects=read_effects(directory / EFFECTS),
        files={path.stem for path in (directory / file_of("any")).parent.glob("*.txt")},
    )


async def _shown(http: httpx2.AsyncClient, workspace: Workspace) -> dict[str, Any]:
    route = workspace.route
    sessions = await listed(http, f"{route}/sessions")
    transcripts = {each["id"]: await listed(http, f"{route}/sessions/{each['id']}/messages") for each in sessions}
    return {"ledger": await listed(http, f"{route}/runs"), "sessions": sessions, "transcripts": transcripts}


def _cut(piece: Piece, up_to: str) -> Piece:
    """What came while the others caught up, such as a reader that attached again, is in no replay."""
    return Piece(piece.after, [seen for seen in piece.seen if number_of(seen.cursor) <= number_of(up_to)])


def _imported(sessions: list[Json]) -> set[str]:
    """With the sessions of their sub-agents. A session is made after its parent, and listed before it."""
    found: set[str] = set()
    for session in reversed(sessions):
        if session["title"] == IMPORTED or session["parent_id"] in found:
            found.add(session["id"])
    return found


async def listed(http: httpx2.AsyncClient, path: str, **params: Any) -> list[Json]:
    """All pages of a list."""
    items: list[Json] = []
    if not path.endswith(("permissions", "questions")):
        params["limit"] = 500
    while True:
        page = await get(http, path, **params)
        items += page["items"]
        if page.get("next") is None:
            return items
        params["after"] = page["next"]


async def get(http: httpx2.AsyncClient, path: str, **params: Any) -> Json:
    async def ask() -> Json:
        found: Json = (await http.get(path, params=params)).raise_for_status().json()
        return found

    return await steadily(ask)


async def post(http: httpx2.AsyncClient, route: str, **body: Any) -> Json:
    async def ask() -> Json:
        made: Json = (await http.post(route, json=body)).raise_for_status().json()
        return made

    return await steadily(ask)


async def steadily(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again while a server is not to be had: on a busy machine, a workspace may get another owner at any time."""
    for _ in range(ATTEMPTS):
        try:
            return await ask()
        except httpx2.TransportError:
            pass
        except httpx2.HTTPStatusError as error:
            if error.response.status_code != 503:
                raise
        await asyncio.sleep(AGAIN_S)
    return await ask()
