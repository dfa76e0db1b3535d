"""`longboat skills`: list the skills, commands and sub-agents of the project and the user."""

import click

from longboat.cli.console import json_page, one_line, table
from longboat.cli.options import cwd_option, format_option


@click.command(short_help="List skills, commands and sub-agents.")
@format_option
@cwd_option
def skills(style: str, cwd: str) -> None:
    """List the skills, commands (`longboat run /NAME`) and sub-agents defined in this project's files and your own, and
    any problems with them.

    \b
    longboat skills
    """
    from longboat.cli.background import ensure_server
    from longboat.client import calls

    connection = ensure_server(cwd)
    page = connection.send(calls.skills(connection.join(cwd).id))
    if style == "json":
        json_page(page)
        return
    rows = [("skill", one_line(each.name), one_line(each.description)) for each in page.items]
    for command in page.commands:
        name = one_line(f"/{command.name} {command.argument_hint}")
        rows.append(("command", name, one_line(command.description)))
    rows += [("sub-agent", one_line(each.name), one_line(each.description)) for each in page.agents]
    if rows:
        table(("KIND", "NAME", "DESCRIPTION"), rows)
    else:
        click.echo("No skills, commands or sub-agents.")
    for problem in page.problems:
        click.echo(one_line(problem), err=True)
