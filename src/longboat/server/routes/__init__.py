"""All routes of http.md that exist so far. Each handler parses, calls the runtime and replies; no more."""

from litestar.handlers import HTTPRouteHandler

from longboat.server.routes import (
    archive,
    asks,
    jobs,
    page,
    prompts,
    runs,
    service,
    sessions,
    sights,
    stats,
    workspaces,
)

HANDLERS: list[HTTPRouteHandler] = [
    *service.HANDLERS,
    *workspaces.HANDLERS,
    *sessions.HANDLERS,
    *archive.HANDLERS,
    *prompts.HANDLERS,
    *runs.HANDLERS,
    *asks.HANDLERS,
    *jobs.HANDLERS,
    *sights.HANDLERS,
    *stats.HANDLERS,
    *page.HANDLERS,
]
