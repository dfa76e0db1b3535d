"""The commands that the agent left running: listed, read and ended by people."""

from typing import Annotated

from litestar import get, post
from litestar.params import FromPath, QueryParameter

from longboat.server.routes.request import ClientId, HttpRequest, W, name_of, workspace_of
from longboat.wire.workshop import Job, JobOutput, JobPage

ONE = W + "/jobs/{job_id:str}"

From = Annotated[
    int | None,
    QueryParameter(name="after", ge=0, description="`next` of the former answer; without it, the newest output."),
]
Wait = Annotated[float, QueryParameter(ge=0, le=60, description="Wait up to so many seconds for more, or for its end.")]


@get(W + "/jobs")
async def list_jobs(request: HttpRequest) -> JobPage:
    """The commands in the background of a workspace, oldest first."""
    return JobPage(items=(await workspace_of(request)).tools.jobs_shown())


@get(ONE)
async def read_job(request: HttpRequest, job_id: FromPath[str], offset: From = None, wait: Wait = 0.0) -> JobOutput:
    """One of them and its output, some 60,000 characters at a time. Of a long output the middle is only in the file
    that the agent was told of: `start` is where the text begins."""
    return await (await workspace_of(request)).tools.read_job(job_id, offset, wait_s=wait)


@post(ONE + "/kill", status_code=200)
async def kill_job(request: HttpRequest, job_id: FromPath[str], client_id: ClientId = None) -> Job:
    """End a job and all that it started. One that has ended stays as it is."""
    return await (await workspace_of(request)).tools.kill_job(job_id, name_of(client_id))


HANDLERS = [list_jobs, read_job, kill_job]
