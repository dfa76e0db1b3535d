"""`job_output`: read the new output of a background job."""

from typing import Annotated, Self

import msgspec
from msgspec import Meta

from longboat.tools.context import ToolContext, parse
from longboat.tools.process.job import Job, JobState, ending
from longboat.tools.process.jobs import Jobs
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.tools.services import ToolServices
from longboat.wire.tools import Effect, ToolTraits


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    job_id: Annotated[str, Meta(description="The job's id, from bash or job_list.")]
    wait_s: Annotated[float, Meta(ge=0, le=600, description="Maximum seconds to wait for the job to end.")] = 0


class JobOutputTool:
    spec = spec_of("job_output", Input, ToolTraits(effect=Effect.READS, heading=("job_id",), waits=True))

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    @classmethod
    def build(cls, services: ToolServices) -> Self:
        return cls(services.jobs)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        asked = parse("job_output", call.arguments, Input)
        job = self._jobs.get(asked.job_id)
        if asked.wait_s:
            await job.wait_ended(asked.wait_s)
        output = job.read(call.session_id).rstrip("\n")
        return ToolResult(content=f"{output}\n[{status(job)}]" if output else f"[no new output; {status(job)}]")


def status(job: Job) -> str:
    """A job's state in a few words."""
    if job.state is JobState.RUNNING:
        left = (
            f"; its shell has ended ({ending(job)}), processes it started have not" if job.exit_code is not None else ""
        )
        return f"{job.job_id} is running{left}"
    return f"{job.job_id} is {job.state.replace('_', ' ')}: {ending(job)}"
