"""The command table and how failures look. Must not import any command: `--help` has to be quick."""

import os
from importlib import import_module

import click

from longboat.errors import LongboatError

COMMANDS: dict[str, str] = {
    "run": "Send a prompt, stream the answer.",
    "runs": "List runs: what is active, queued and over.",
    "cancel": "Cancel a run, a session's runs, or all.",
    "session": "List, show, delete and export sessions.",
    "models": "Show the configured models; fetch the local one.",
    "config": "Show the effective configuration.",
    "doctor": "Check what is configured, reachable and wrong.",
    "status": "Show the server and what it is doing.",
    "serve": "Run a server in the foreground.",
    "stop": "Stop the server.",
    "logs": "Show the background server's log.",
    "version": "Show the versions of this command and of the server.",
}
"""Name and help line of each command; it is the object of that name in the module of that name."""

HINTS: dict[str, str] = {
    "server_unreachable": "`longboat doctor` looks for the cause; `longboat run` and `longboat serve` start a server.",
    "unauthorized": "Set LONGBOAT_TOKEN to the token that the server printed when it started.",
    "session_not_found": "`longboat session list` shows the sessions of this directory; --cwd names another one.",
    "run_not_found": "`longboat runs` shows the runs of this directory; --cwd names another one.",
    "server_busy": "`longboat runs --state active` shows what runs; `longboat stop --force` stops it anyway.",
    "config_invalid": "`longboat config --schema` shows what a longboat.json may hold.",
    "store_unavailable": "`longboat doctor` shows the data directory and the free disk space.",
}
"""The next step for each error that has one at the command line."""


class Failure(click.ClickException):
    """An expected failure: one line that says what is wrong, one that says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: object = None) -> None:
        click.secho(f"longboat: {self.message}", err=True, fg="red", color=color())
        if self.hint:
            click.echo(f"  {self.hint}", err=True)


def color() -> bool | None:
    """False when the user asked for none (https://no-color.org); None lets click look at the terminal."""
    return False if os.environ.get("NO_COLOR") else None


class LazyGroup(click.Group):
    """Finds its commands by `COMMANDS` and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"longboat.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except LongboatError as error:
            raise Failure(error.message, HINTS.get(error.code, "")) from error
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None


def show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from longboat import __version__

        click.echo(f"longboat {__version__}")
        ctx.exit()


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=show_version, help="Show version.")
def cli() -> None:
    """A coding agent that several people and programs can share.

    \b
    longboat run "What does this project do?"     ask; a server is started if none runs
    longboat run -c "And how is it tested?"       go on in the newest session
    longboat doctor                               something is wrong?

    \b
    Completion, in ~/.bashrc (zsh and fish: zsh_source, fish_source):
    eval "$(_LONGBOAT_COMPLETE=bash_source longboat)"
    """


def main() -> None:
    """The `longboat` command."""
    cli(prog_name="longboat", color=color())
