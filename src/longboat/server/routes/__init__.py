"""All routes of http.md that exist so far. Each handler parses, calls the runtime and replies; no more."""

from litestar.handlers import HTTPRouteHandler

from longboat.server.routes import prompts, runs, service, sessions, workspaces

HANDLERS: list[HTTPRouteHandler] = [
    *service.HANDLERS,
    *workspaces.HANDLERS,
    *sessions.HANDLERS,
    *prompts.HANDLERS,
    *runs.HANDLERS,
]
