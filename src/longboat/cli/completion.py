"""`longboat completion`: print the shell completion script."""

import os
from pathlib import Path

import click

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print the shell completion script.")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print a script that makes your shell complete commands, options, models and ids. The default
    shell is the one in $SHELL.

    Ids are completed only while a server is running. Requires bash 4.4 or newer.

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
        raise click.UsageError(f"Choose a shell: {', '.join(SHELLS)}. ($SHELL is not one of them.)")
    script = known(cli, {}, "longboat", "_LONGBOAT_COMPLETE")
    # Not source(): it runs the bash in PATH to check its version, which may not be the one that reads this.
    source = script.source_template % script.source_vars()
    # For fish, click splits a candidate at each comma, which would cut its help text at the first one.
    click.echo(source.replace('string split "," $completion', 'string split --max 1 "," $completion'))
