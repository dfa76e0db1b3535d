"""`job_kill`: end a background job and everything it started."""

from typing import Annotated, Self

import msgspec
from msgspec import Meta

from longboat.tools.context import ToolContext, parse
from longboat.tools.process.job import JobState
from longboat.tools.process.job_output import status
from longboat.tools.process.jobs import AGENT, Jobs
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.tools.services import ToolServices
from longboat.wire.tools import ToolTraits


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    job_id: Annotated[str, Meta(description="The job's id, from bash or job_list.")]


class JobKillTool:
    spec = spec_of("job_kill", Input, ToolTraits(heading=("job_id",), quick=True))

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    @classmethod
    def build(cls, services: ToolServices) -> Self:
        return cls(services.jobs)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        asked = parse("job_kill", call.arguments, Input)
        job = self._jobs.get(asked.job_id)
        if job.state is not JobState.RUNNING:
            return ToolResult(content=f"[{status(job)}; nothing to end]")
        ended = await self._jobs.kill(job, by=AGENT)
        said = status(job) if ended else f"{job.job_id} does not end even when killed; tell the user"
        output = job.read(call.session_id).rstrip("\n")
        return ToolResult(content=f"{output}\n[{said}]" if output else f"[{said}]", is_error=not ended)
