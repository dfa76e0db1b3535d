"""Full-text search over all sessions."""

from typing import Annotated

from litestar import get
from litestar.params import QueryParameter

from longboat.server.routes.request import HttpRequest, Limit, app_of, while_connected
from longboat.wire.search import SearchPage

Words = Annotated[
    str,
    QueryParameter(
        name="q",
        max_length=1_000,
        description='Words in any order; the last one may be unfinished. `"in quotes"`: a phrase.',
    ),
]
InWorkspace = Annotated[str | None, QueryParameter(name="workspace_id", description="Search this workspace only.")]
Before = Annotated[
    str | None, QueryParameter(description="`next` of the previous page.", schema_extra={"pattern": "^[0-9]{1,18}$"})
]


@get("/v1/search")
async def search_sessions(
    request: HttpRequest,
    words: Words = "",
    workspace_id: InWorkspace = None,
    limit: Limit = 50,
    before: Before = None,
) -> SearchPage:
    """Messages and session titles that contain the words, in all workspaces or in one; the newest first. Case and
    accents do not matter. Opens no workspace and keeps none open."""
    search = app_of(request).search(words, workspace_id=workspace_id, before=before, limit=limit)
    return await while_connected(request, search)


HANDLERS = [search_sessions]
