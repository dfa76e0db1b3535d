"""`longboat watch`."""

import click

from longboat.cli import shell_completion
from longboat.cli.options import cwd_option, events_option


@click.command(short_help="Follow a run started elsewhere.")
@click.argument("run_id", metavar="RUN", shell_complete=shell_completion.runs)
@events_option
@click.option("--give-up-after", type=click.FloatRange(0), default=60, metavar="SECONDS", hidden=True)
@cwd_option
@click.pass_context
def watch(ctx: click.Context, run_id: str, style: str, give_up_after: float, cwd: str) -> None:
    """Follow a run, started by you or someone else, until it ends.

    Ctrl-C only stops watching; use `longboat cancel` to cancel the run. Exit codes as for `longboat run`.

    \b
    longboat watch 0198c2f4-91…
    """
    from longboat.cli.background import ensure_server
    from longboat.cli.display import display_of
    from longboat.cli.ids import run_meant
    from longboat.cli.waiting import wait

    connection = ensure_server(cwd)
    workspace_id = connection.join(cwd).id
    found = run_meant(connection, workspace_id, run_id)
    display = display_of(style)
    try:
        is_sub_agent = found.parent_run_id is not None
        code = wait(workspace_id, found.run_id, display, give_up_after_s=give_up_after, is_sub_agent=is_sub_agent)
    except KeyboardInterrupt:
        display.say(f"The run continues. To cancel it: longboat cancel {found.run_id}")
        raise
    ctx.exit(code)
