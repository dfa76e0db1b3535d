"""All routes. Each handler parses the request, calls the runtime and replies; nothing more."""

from collections.abc import Iterable

from litestar import Response, route
from litestar.handlers import HTTPRouteHandler

from longboat.server.routes import (
    archive,
    asks,
    browse,
    inbox,
    jobs,
    page,
    prompts,
    providers,
    runs,
    search,
    service,
    sessions,
    stats,
    workspaces,
)


def _allow(path: str, methods: Iterable[str]) -> HTTPRouteHandler:
    """Answers OPTIONS. Litestar's own answer only names the methods of a path's first handler."""
    allowed = ", ".join(sorted({*methods, "OPTIONS"}))

    @route(path, http_method="OPTIONS", status_code=204)
    async def options() -> Response[None]:
        return Response(None, headers={"allow": allowed})

    return options


_ROUTES: list[HTTPRouteHandler] = [
    *service.HANDLERS,
    *providers.HANDLERS,
    *workspaces.HANDLERS,
    *sessions.HANDLERS,
    *archive.HANDLERS,
    *prompts.HANDLERS,
    *runs.HANDLERS,
    *asks.HANDLERS,
    *inbox.HANDLERS,
    *jobs.HANDLERS,
    *browse.HANDLERS,
    *search.HANDLERS,
    *stats.HANDLERS,
    *page.HANDLERS,
]

_METHODS = {
    path: {str(method) for handler in _ROUTES if path in handler.paths for method in handler.http_methods}
    for path in dict.fromkeys(path for handler in _ROUTES for path in handler.paths)
}

# OPTIONS first: for a path that has one, Litestar makes none.
HANDLERS: list[HTTPRouteHandler] = [*(_allow(path, methods) for path, methods in _METHODS.items()), *_ROUTES]
