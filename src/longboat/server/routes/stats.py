"""Statistics: usage and activity."""

from typing import Annotated

from litestar import get
from litestar.params import FromPath, QueryParameter

from longboat.server.routes.request import HttpRequest, W, app_of, readable_of
from longboat.wire.statistics import SessionTimeline, SessionUsage, Stats

Days = Annotated[int, QueryParameter(ge=1, le=3_650, description="Number of days to include, in UTC, including today.")]


@get("/v1/stats")
async def get_stats(request: HttpRequest, days: Days = 30) -> Stats:
    """Tokens, cost, runs, tool calls and run times of all workspaces."""
    return await app_of(request).stats(None, days=days)


@get(W + "/stats")
async def get_workspace_stats(request: HttpRequest, workspace_id: FromPath[str], days: Days = 30) -> Stats:
    """The same for one workspace."""
    return await app_of(request).stats(workspace_id, days=days)


@get(W + "/sessions/{session_id:str}/usage")
async def get_session_usage(request: HttpRequest, session_id: FromPath[str]) -> SessionUsage:
    """The usage of the newest runs of a session, oldest first."""
    workspace = await readable_of(request)
    await workspace.session(session_id)
    return await workspace.ledger.usage(session_id)


@get(W + "/sessions/{session_id:str}/timeline")
async def get_session_timeline(request: HttpRequest, session_id: FromPath[str]) -> SessionTimeline:
    """When the tools of the newest runs of a session were called, how long they waited for people and how long they
    ran. Turns that were undone are included."""
    workspace = await readable_of(request)
    await workspace.session(session_id)
    return await workspace.ledger.timeline(session_id)


HANDLERS = [get_stats, get_workspace_stats, get_session_usage, get_session_timeline]
