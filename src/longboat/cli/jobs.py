"""`longboat jobs`: list, show and stop the commands that the agent runs in the background."""

from typing import TYPE_CHECKING

import click

from longboat.cli.console import json_line, one_line, safe, table
from longboat.cli.options import cwd_option, format_option
from longboat.wire.workspace_state import Job, JobState

if TYPE_CHECKING:
    from longboat.cli.connection import Connection

WAIT_S = 30.0


@click.group(invoke_without_command=True, short_help="List, show and kill background jobs.")
@format_option
@cwd_option
@click.pass_context
def jobs(ctx: click.Context, style: str, cwd: str) -> None:
    """List the commands that the agent runs in the background in this directory; show or kill one.

    They are stopped when the workspace closes: after the last client has left and the last run has ended.

    \b
    longboat jobs
    longboat jobs show job-3f9a1c -f
    longboat jobs kill job-3f9a1c
    """
    if ctx.invoked_subcommand is None:
        _list(style, cwd)


@jobs.command("list")
@format_option
@cwd_option
def list_jobs(style: str, cwd: str) -> None:
    """List the jobs in this directory, oldest first.

    \b
    longboat jobs list --format json | jq -r .id
    """
    _list(style, cwd)


@jobs.command("show")
@click.argument("job_id", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Follow the output until the job ends; Ctrl-C leaves it running.")
@cwd_option
def show_job(job_id: str, follow: bool, cwd: str) -> None:
    """Show the last 15,000 characters of a job's output.

    \b
    longboat jobs show job-3f9a1c -f
    """
    from longboat.client import calls

    connection, workspace_id, job_id = _meant(job_id, cwd)
    seen = connection.send(calls.job(workspace_id, job_id))
    click.echo(safe(seen.text), nl=False)
    while follow and seen.job.state is JobState.RUNNING:
        after = seen.next
        seen = connection.send(calls.job(workspace_id, job_id, after=after, wait_s=WAIT_S))
        if seen.start > after:
            click.echo(f"[… {seen.start - after:,} characters omitted …]")
        click.echo(safe(seen.text), nl=False)
    click.echo(f"[{seen.job.id}: {_state(seen.job)}, {seen.job.seconds:.0f} s]", err=True)


@jobs.command("kill")
@click.argument("job_id", metavar="ID")
@cwd_option
def kill_job(job_id: str, cwd: str) -> None:
    """Kill a job and all processes it started.

    \b
    longboat jobs kill job-3f9a1c
    """
    from longboat.cli.main import Failure
    from longboat.cli.options import own_name
    from longboat.client import calls

    connection, workspace_id, job_id = _meant(job_id, cwd)
    job = connection.send(calls.kill_job(workspace_id, job_id, own_name()))
    if job.state is JobState.RUNNING:
        raise Failure(f"{job.id} did not end after SIGKILL.", "It hangs in the kernel: a reboot may be needed.")
    click.echo(f"{job.id} {_state(job)}")


def _meant(job_id: str, cwd: str) -> "tuple[Connection, str, str]":
    from longboat.cli.background import ensure_server
    from longboat.cli.ids import job_meant
    from longboat.client import calls

    connection = ensure_server(cwd)
    workspace_id = connection.join(cwd).id
    known = connection.send(calls.jobs(workspace_id)).items
    return connection, workspace_id, job_meant(job_id, (job.id for job in known))


def _list(style: str, cwd: str) -> None:
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
    if job.state is JobState.FINISHED:
        return f"exit code {job.exit_code}"
    by = f" by {safe(job.killed_by)}" if job.killed_by else ""
    return job.state.value.replace("_", " ") + by
