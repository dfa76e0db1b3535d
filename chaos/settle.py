"""After the storm: every run comes to its end, and every session takes one more prompt."""

import asyncio
import time
from collections.abc import Callable

import httpx2

from chaos.clients import Client, Workspace
from chaos.evidence import Exchange, Json
from chaos.plan import Kind, Step, encode

LET_RUN_S = 6
"""Time for the runs to end by themselves; then they are canceled."""
LIMIT_S = 60
LAST_PROMPT = "One more: "


async def settle(http: httpx2.AsyncClient, workspace: Workspace, record: Callable[[Exchange], None]) -> list[str]:
    """What did not come to its end, in words."""
    client = Client(http, workspace, "settler", seed="", record=record, pause_s=0)
    began = time.monotonic()
    while unfinished := await unfinished_runs(http, workspace):
        waited_s = time.monotonic() - began
        if waited_s > LIMIT_S:
            return [f"{workspace.name}: still unfinished: {run}" for run in unfinished]
        for kind in ("permissions", "questions"):
            for ask in (await http.get(f"{workspace.route}/{kind}")).json()["items"]:
                await client.deny(kind, ask)
        if waited_s > LET_RUN_S:
            for session_id in {run["session_id"] for run in unfinished}:
                await client.cancel(session_id)
        await asyncio.sleep(0.2)
    return await _prompt_once_more(http, workspace, client)


async def unfinished_runs(http: httpx2.AsyncClient, workspace: Workspace) -> list[Json]:
    states = ("accepted", "queued", "active", "folded")
    pages = [(await http.get(f"{workspace.route}/runs?state={state}&limit=500")).json() for state in states]
    return [run for page in pages for run in page["items"]]


async def _prompt_once_more(http: httpx2.AsyncClient, workspace: Workspace, client: Client) -> list[str]:
    complaints = []
    for number, session_id in enumerate(workspace.sessions):
        prompt = LAST_PROMPT + encode([Step(Kind.SAY, f"last.{number}")])
        done = await client.submit(session_id, prompt)
        if done.status == 404:  # it was deleted
            continue
        run = (await http.get(f"{workspace.route}/runs/{done.answer['run_id']}?wait=30")).json()
        if run["outcome"] != "end_turn":
            complaints.append(f"{workspace.name}: {run}")
    return complaints
