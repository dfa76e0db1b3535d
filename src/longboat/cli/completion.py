"""`longboat completion`: what a shell reads to complete our commands."""

import os
from pathlib import Path

import click

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print the completion of commands, options and ids for your shell.")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print a script that lets your shell complete commands, options, models, and the ids of sessions, runs and asks.
    Without SHELL, for the one in $SHELL.

    Ids are completed while a server runs; none is started for it. bash has to be 4.4 or newer.

    \b
    echo 'eval "$(longboat completion bash)"' >> ~/.bashrc
    echo 'eval "$(longboat completion zsh)"' >> ~/.zshrc                    after compinit
    longboat completion fish > ~/.config/fish/completions/longboat.fish
    """
    from click.shell_completion import get_completion_class

    from longboat.cli.main import cli

    shell = shell or Path(os.environ.get("SHELL", "")).name
    known = get_completion_class(shell)
    if shell not in SHELLS or known is None:
        raise click.UsageError(f"Say for which shell: {', '.join(SHELLS)}. ($SHELL is none of them.)")
    script = known(cli, {}, "longboat", "_LONGBOAT_COMPLETE")
    # Not source(): that runs bash to see which one it is, and the one in PATH need not be the one that will read this.
    source = script.source_template % script.source_vars()
    # For fish a candidate is split at each comma, which would cut its help at the first one.
    click.echo(source.replace('string split "," $completion', 'string split --max 1 "," $completion'))
