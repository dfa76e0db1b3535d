"""A server that stops itself (SIGSTOP) right after it has said for how long its commands may run.

`python stopping_server.py DIRECTORY COMMAND SECONDS`: runs the command in the foreground and in the background, prints
the ids of their processes once both have created the file named after them, and stops. If it goes on, it prints what
one more command gets, what the caller in the foreground gets, and what the job says.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from other_processes import wait_until

from longboat.testing.tool_context import OpenToolContext
from longboat.tools.context import ToolError
from longboat.tools.process import process_tree
from longboat.tools.process.bash import BashTool
from longboat.tools.process.job_output import JobOutputTool
from longboat.tools.process.jobs import Jobs


async def serve(directory: Path, command: str, seconds: float) -> None:
    jobs, context = Jobs(directory / "scratch"), OpenToolContext(directory)
    bash = BashTool(jobs)
    call = asyncio.ensure_future(context.use(bash, command=f"name=foreground; {command}"))
    await context.use(bash, command=f"name=background; {command}", run_in_background=True)
    await wait_until(lambda: (directory / "foreground").exists() and (directory / "background").exists())
    print(*process_tree.find(None, f"{jobs.token}/"), flush=True)
    jobs.allow_for(seconds)
    os.kill(os.getpid(), signal.SIGSTOP)
    try:
        await context.use(bash, command="touch ran")
    except ToolError as error:
        print(error)
    told = await call
    print(told.is_error, told.command_failed, told.content)
    (job,) = jobs.list()
    print((await context.use(JobOutputTool(jobs), job_id=job.job_id, wait_s=60)).content)
    await jobs.aclose()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
