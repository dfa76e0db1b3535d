"""`longboat jobs`: what the agent left running."""

import click

from longboat.cli.console import json_line, one_line, table
from longboat.cli.options import cwd_option, format_option
from longboat.wire.models import Job, JobState


@click.command(short_help="List the commands that run in the background.")
@format_option
@cwd_option
def jobs(style: str, cwd: str) -> None:
    """List the commands that the agent has started in the background of this directory.

    They end with the workspace: when the last client has left and the last run is over.

    \b
    longboat jobs
    """
    from longboat.cli.background import ensure_server
    from longboat.client import calls

    connection = ensure_server(cwd)
    page = connection.send(calls.jobs(connection.join(cwd).id))
    if style == "json":
        for job in page.items:
            json_line(job)
    elif page.items:
        rows = [(job.id, _state(job), f"{job.seconds:.0f} s", one_line(job.command)) for job in page.items]
        table(("JOB", "STATE", "TIME", "COMMAND"), rows)
    else:
        click.echo("No jobs.")


def _state(job: Job) -> str:
    return f"exit code {job.exit_code}" if job.state is JobState.FINISHED else job.state.value.replace("_", " ")
