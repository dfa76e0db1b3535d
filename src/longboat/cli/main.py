"""The command table and how failures look. Must not import any command: `--help` has to be quick."""

import errno
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from longboat.cli.options import cwd_option, wishes_options
from longboat.errors import LongboatError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: dict[str, str] = {
    "run": "Send a prompt, stream the answer.",
    "watch": "Watch a run that somebody sent.",
    "runs": "List runs: what is active, queued and over.",
    "cancel": "Cancel a run, a session's runs, or all.",
    "attach": "Open the terminal app on a server elsewhere.",
    "web": "Open the web page in a browser, logged in.",
    "permissions": "List and answer what the agent asks to be allowed.",
    "questions": "List and answer the agent's questions.",
    "undo": "Take the newest turn back: its file changes and its messages.",
    "redo": "Bring back what was undone last.",
    "session": "List, show, rename, summarize, delete, fork, export and import sessions.",
    "stats": "Show tokens, cost, runs, tools and waiting times.",
    "jobs": "List, show and end the commands that run in the background.",
    "skills": "List skills, commands and sub-agents.",
    "mcp": "List the MCP servers and how they are doing; log in to one.",
    "init": "Write a first AGENTS.md for this project.",
    "models": "Show the configured models; fetch the local one.",
    "config": "Show the effective configuration.",
    "trust": "Show what a project's longboat.json asks for, and trust it.",
    "doctor": "Check what is configured, reachable and wrong.",
    "status": "Show the server and what it is doing.",
    "serve": "Run a server in the foreground.",
    "stop": "Stop the server.",
    "store": "Back up, restore and check the database.",
    "logs": "Show the background server's log.",
    "completion": "Print the completion of commands, options and ids for your shell.",
    "version": "Show the versions of this command and of the server.",
}
"""Name and help line of each command; it is the object of that name in the module of that name."""

HINTS: dict[str, str] = {
    "server_unreachable": "`longboat doctor` looks for the cause; `longboat run` and `longboat serve` start a server.",
    "unauthorized": "Set LONGBOAT_TOKEN to the server's token: `longboat serve` prints where it is kept.",
    "session_not_found": "`longboat session list` shows the sessions of this directory; --cwd names another one.",
    "run_not_found": "`longboat runs` shows the runs of this directory; --cwd names another one.",
    "permission_not_found": "`longboat permissions` shows what waits for an answer in this directory.",
    "question_not_found": "`longboat questions` shows what waits for an answer in this directory.",
    "mcp_server_not_found": "`longboat mcp` shows the MCP servers of this directory; --cwd names another one.",
    "no_login_pending": "`longboat mcp login NAME` begins a login and prints the page to open.",
    "job_not_found": "`longboat jobs` shows the jobs of this directory; --cwd names another one.",
    "session_busy": "`longboat runs --state active` shows what runs; `longboat cancel` ends it.",
    "nothing_to_undo": "-s names another session: `longboat session list` shows them.",
    "undo_conflict": "Put those files back yourself (`git diff` shows what changed), then try again.",
    "server_busy": "`longboat runs --state active` shows what runs; `longboat stop --force` stops it anyway.",
    "config_invalid": "`longboat config --schema` shows what a longboat.json may hold.",
    "store_unavailable": "`longboat doctor` shows the data directory and the free disk space.",
    "data_dir_gone": "`longboat session export ID` still saves a session; then `longboat stop --force`.",
    "cancel_not_durable": "`longboat doctor` shows the data directory and the free disk space.",
}
"""The next step for each error that has one at the command line."""

READER_GONE = 141
"""What a shell reports of a program that SIGPIPE ended."""


def hint_for(error: LongboatError) -> str:
    """The next step. No server is ever started in place of one that the user named."""
    if error.code == "server_unreachable" and (name := naming_variable()):
        return f"{name} names this server: start it there, or unset {name} to use your own."
    return HINTS.get(error.code, "")


def naming_variable() -> str | None:
    """The variable by which the user names a server, if one does."""
    return next((name for name in ("LONGBOAT_URL", "LONGBOAT_SOCKET") if os.environ.get(name)), None)


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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in COMMANDS or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        if " " in name.strip():
            raise click.UsageError(f'No such command: to send a prompt, longboat run "{name}"', ctx)
        from difflib import get_close_matches

        close = get_close_matches(name, COMMANDS, n=1)
        raise click.UsageError(f"No such command {name!r}.{f' Did you mean {close[0]}?' if close else ''}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """From the table: the commands themselves would all be imported for their help lines."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=line) for name, line in COMMANDS.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except LongboatError as error:
            raise Failure(error.message, hint_for(error)) from error
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None
        except BrokenPipeError:  # click would make it 1
            forget_stdout()
            raise click.exceptions.Exit(READER_GONE) from None


def show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from longboat import __version__

        click.echo(f"longboat {__version__}")
        ctx.exit()


@click.command(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=show_version, help="Show version.")
@wishes_options
@cwd_option
@click.pass_context
def cli(ctx: click.Context, /, cwd: str, **wishes: object) -> None:
    """A coding agent that several people and programs can share. Without a command: the terminal app.

    \b
    longboat                                   open the terminal app here; a server is started if none runs
    longboat web                               the same session in a browser
    longboat run "Why does the build fail?"    a server is started if none runs
    longboat run -c "Then fix it."             go on in the session that was used last here
    longboat undo                              undo the last turn
    longboat doctor                            something is wrong?

    \b
    Exit codes: 0 all is well, 1 it failed, 2 the command was called wrongly, 130 canceled.

    \b
    Completion, in ~/.bashrc (`longboat completion --help` tells of zsh and fish):
    eval "$(longboat completion bash)"
    """
    if ctx.invoked_subcommand is None:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            click.echo(ctx.get_help())
            ctx.exit(2)
        from longboat.cli.terminal import Wishes, open_here

        open_here(cwd, Wishes(**wishes))  # type: ignore[arg-type]  # click has checked them
    elif given := [name for name in (*wishes, "cwd") if _was_given(ctx, name)]:
        raise click.UsageError(f"Write --{given[0]} behind the command: longboat {ctx.invoked_subcommand} …", ctx)


def _was_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def main() -> None:
    """The `longboat` command."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - it was closed by whoever started us
    try:
        cli(prog_name="longboat", color=color())
    except OSError as error:
        # Not in the group: help, and the line that tells of a failure, are written outside of it.
        sys.exit(_ended_by(error))


def _ended_by(error: OSError) -> int:
    """The exit code of a command that the system stopped. Whoever stopped reading is told nothing."""
    forget_stdout()
    if isinstance(error, BrokenPipeError):
        return READER_GONE
    Failure(_told(error)).show()
    return 1


def _told(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {reason}"
    if error.errno == errno.ENOENT:  # what getcwd says
        return "The current directory does not exist any more: cd to another one, or give --cwd DIR."
    return f"Cannot write the output: {reason}." if error.errno in _WRITING else reason


_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def forget_stdout() -> None:
    """What is left in the buffer must not fail at exit, with a traceback and a code of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
