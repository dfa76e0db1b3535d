"""job_list: the background jobs of this workspace."""

from typing import Self

import msgspec

from longboat.tools.context import ToolContext, parse
from longboat.tools.process.job import Job
from longboat.tools.process.job_output import status
from longboat.tools.process.jobs import Jobs
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.tools.schema import spec_of
from longboat.tools.services import ToolServices
from longboat.wire.tools import Effect, ToolTraits

_COMMAND = 200


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class JobListTool:
    spec = spec_of("job_list", Input, ToolTraits(effect=Effect.READS, quick=True))

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    @classmethod
    def build(cls, services: ToolServices) -> Self:
        return cls(services.jobs)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        parse("job_list", call.arguments, Input)
        lines = [_line(job) for job in self._jobs.list()]
        return ToolResult(content="\n".join(lines) or "There are no background jobs in this workspace.")


def _line(job: Job) -> str:
    command = " ".join(job.command.split())
    command = command if len(command) <= _COMMAND else f"{command[:_COMMAND]}…"
    return f"{status(job)} ({job.seconds:.0f} s): {command}"
