"""After the storm: every run comes to its end, and every session takes one more prompt and runs a command."""

import asyncio
import time
from collections.abc import Callable, Sequence

import httpx2

from chaos.clients import Client, Workspace
from chaos.collect import get, listed
from chaos.evidence import Exchange, Json
from chaos.plan import Kind, Step, encode

LET_RUN_S = 6
"""Time for the runs to end by themselves; then they are canceled."""
LIMIT_S = 60
LAST_PROMPT = "One more: "
ATTEMPTS = 3
"""On a busy machine, a server may lose its lease, and the prompt is interrupted."""


async def settle(
    doors: Sequence[httpx2.AsyncClient], workspace: Workspace, record: Callable[[Exchange], None]
) -> list[str]:
    """What did not come to its end, in words."""
    client = Client(doors, workspace, "settler", seed="", record=record, pause_s=0)
    http = doors[0]
    began = time.monotonic()
    while unfinished := await unfinished_runs(http, workspace):
        waited_s = time.monotonic() - began
        if waited_s > LIMIT_S:
            return [f"{workspace.name}: still unfinished: {run}" for run in unfinished]
        for kind in ("permissions", "questions"):
            for ask in await listed(http, f"{workspace.route}/{kind}"):
                await client.deny(kind, ask)
        if waited_s > LET_RUN_S:
            for session_id in {run["session_id"] for run in unfinished}:
                await client.cancel(session_id)
        await asyncio.sleep(0.2)
    return [
        f"{workspace.name}: {session_id}: {complaint}"
        for number, session_id in enumerate(list(workspace.sessions))
        if (complaint := await _prompt_once_more(http, workspace, client, session_id, f"last.{number}"))
    ]


async def unfinished_runs(http: httpx2.AsyncClient, workspace: Workspace) -> list[Json]:
    states = ("accepted", "queued", "active", "folded")
    return [run for state in states for run in await listed(http, f"{workspace.route}/runs", state=state)]


async def _prompt_once_more(
    http: httpx2.AsyncClient, workspace: Workspace, client: Client, session_id: str, token: str
) -> str:
    """What keeps the session from going on; empty if nothing does, or if it was deleted."""
    complaint = ""
    for attempt in range(ATTEMPTS):
        steps = [Step(Kind.BASH, f"{token}.{attempt}.bash"), Step(Kind.SAY, f"{token}.{attempt}.say")]
        done = await client.submit(session_id, LAST_PROMPT + encode(steps))
        if done.status == 404:
            return ""
        if done.status != 202:
            complaint = f"{done.status} {done.answer}"
            continue
        run = await get(http, f"{workspace.route}/runs/{done.answer['run_id']}", wait=30)
        if run["outcome"] == "end_turn":
            return ""
        complaint = str(run)
    return complaint
