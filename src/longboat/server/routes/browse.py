"""What faces draw of a workspace's files: a directory, names that match, and what was changed."""

from typing import Annotated

from litestar import get
from litestar.params import FromQuery, QueryParameter

from longboat.server.routes.request import HttpRequest, W, workspace_of
from longboat.wire.listings import DiffPage, FilePage, FoundPage

Path = Annotated[str, QueryParameter(max_length=4_096, description="A directory, relative to the workspace.")]
All = Annotated[bool, QueryParameter(name="all", description="Also hidden names and what .gitignore excludes.")]
Query = Annotated[str, QueryParameter(name="q", max_length=200, description="A part of the path, or its letters.")]
Most = Annotated[int, QueryParameter(ge=1, le=200, description="How many items at most.")]


@get(W + "/files")
async def list_files(request: HttpRequest, path: Path = ".", everything: All = False) -> FilePage:
    """What is in a directory of the workspace, sorted by name, at most 1000 names."""
    return await (await workspace_of(request)).browse.files(path, everything=everything)


@get(W + "/search")
async def search_files(request: HttpRequest, wanted: Query = "", limit: Most = 50) -> FoundPage:
    """Files whose path holds the query or at least its letters in order, the best first. For completion: the list of
    files may be a few seconds old."""
    return await (await workspace_of(request)).browse.search(wanted, limit=limit)


@get(W + "/diff")
async def show_diff(
    request: HttpRequest, session_id: FromQuery[str | None] = None, run_id: FromQuery[str | None] = None
) -> DiffPage:
    """What the agent's tools changed in files, in a session or in one run, as unified diffs; without what was
    undone. What shell commands did is not recorded."""
    return await (await workspace_of(request)).browse.diff(session_id=session_id, run_id=run_id)


HANDLERS = [list_files, search_files, show_diff]
