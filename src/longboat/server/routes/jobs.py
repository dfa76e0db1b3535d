"""Background commands of the agent: list them, read their output, stop them."""

from typing import Annotated

from litestar import get, post
from litestar.params import FromPath, QueryParameter

from longboat.server.routes.request import ClientId, HttpRequest, W, name_of, workspace_of
from longboat.wire.workspace_state import Job, JobOutput, JobPage

ONE = W + "/jobs/{job_id:str}"

From = Annotated[
    int | None,
    QueryParameter(name="after", ge=0, description="`next` of the previous response; without it, the newest output."),
]
Wait = Annotated[float, QueryParameter(ge=0, le=60, description="Seconds to wait for more output or the end.")]


@get(W + "/jobs")
async def list_jobs(request: HttpRequest) -> JobPage:
    """The background commands of a workspace, oldest first."""
    return JobPage(items=(await workspace_of(request)).tools.jobs_shown())


@get(ONE)
async def read_job(request: HttpRequest, job_id: FromPath[str], offset: From = None, wait: Wait = 0.0) -> JobOutput:
    """One background command and its output, about 60,000 characters at a time. `start` is where the text begins: the
    middle of a very long output is only in the file whose path the agent got."""
    return await (await workspace_of(request)).tools.read_job(job_id, offset, wait_s=wait)


@post(ONE + "/kill", status_code=200)
async def kill_job(request: HttpRequest, job_id: FromPath[str], client_id: ClientId = None) -> Job:
    """Stop a job and all processes it started. Does nothing if it has ended."""
    return await (await workspace_of(request)).tools.kill_job(job_id, name_of(client_id))


HANDLERS = [list_jobs, read_job, kill_job]
