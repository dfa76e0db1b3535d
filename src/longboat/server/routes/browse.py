"""The files of a workspace: list a directory, search paths, show a file, show changes, suggest what to try."""

from typing import Annotated

from litestar import get
from litestar.params import FromQuery, QueryParameter

from longboat.server.routes.request import HttpRequest, W, needs, workspace_of
from longboat.wire.listings import DiffPage, FilePage, FoundPage, Welcome
from longboat.wire.review import ChangesPage, FileText

Path = Annotated[str, QueryParameter(max_length=4_096, description="A directory, relative to the workspace.")]
All = Annotated[bool, QueryParameter(name="all", description="Include hidden and git-ignored files.")]
Query = Annotated[str, QueryParameter(name="q", max_length=200, description="Part of the path, or letters of it.")]
FilePath = Annotated[str, QueryParameter(max_length=4_096, description="A file, relative to the workspace; required.")]
OnePath = Annotated[str | None, QueryParameter(max_length=4_096, description="Only this file.")]
Stat = Annotated[bool, QueryParameter(description="Leave out the diffs.")]
Most = Annotated[int, QueryParameter(ge=1, le=200, description="Maximum number of items.")]


@get(W + "/files")
async def list_files(request: HttpRequest, path: Path = ".", everything: All = False) -> FilePage:
    """List a directory of the workspace, sorted by name, at most 1000 entries."""
    return await (await workspace_of(request)).browse.files(path, everything=everything)


@get(W + "/search")
async def search_files(request: HttpRequest, wanted: Query = "", limit: Most = 50) -> FoundPage:
    """Files whose path contains the query, or at least its letters in order, best match first. For completion: the
    list of files may be a few seconds old."""
    return await (await workspace_of(request)).browse.search(wanted, limit=limit)


@get(W + "/file", opt=needs("path"))
async def show_file(request: HttpRequest, path: FilePath = "") -> FileText:
    """The text of a file of the workspace, or the beginning of a long one. Files that a deny rule hides from the agent
    are refused here too."""
    return await (await workspace_of(request)).browse.text(path)


@get(W + "/changes")
async def list_changes(
    request: HttpRequest,
    session_id: FromQuery[str | None] = None,
    run_id: FromQuery[str | None] = None,
    path: OnePath = None,
    stat: Stat = False,
) -> ChangesPage:
    """What is left of the file changes that the agent's tools made in a session or in one run: one item for each
    file, however often it was changed. Edits by others are left out of the diffs. Undone changes are left out; changes
    by shell commands are not recorded."""
    review = (await workspace_of(request)).review
    return await review.changes(session_id=session_id, run_id=run_id, path=path, diffs=not stat)


@get(W + "/diff")
async def show_diff(
    request: HttpRequest, session_id: FromQuery[str | None] = None, run_id: FromQuery[str | None] = None
) -> DiffPage:
    """The file changes that the agent's tools made in a session or in one run, as unified diffs. Undone changes are
    left out; changes by shell commands are not recorded."""
    return await (await workspace_of(request)).browse.diff(session_id=session_id, run_id=run_id)


@get(W + "/welcome")
async def welcome(request: HttpRequest) -> Welcome:
    """For the screen before the first prompt: the git branch, and three prompts to try that fit the directory."""
    return await (await workspace_of(request)).welcome()


HANDLERS = [list_files, search_files, show_file, list_changes, show_diff, welcome]
