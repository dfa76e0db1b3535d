"""The command table and how failures are printed. Imports no command, so that `--help` is fast."""

import errno
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from longboat.cli.options import cwd_option, session_options
from longboat.errors import LongboatError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: dict[str, str] = {
    "run": "Send a prompt and stream the answer.",
    "watch": "Follow a run started elsewhere.",
    "runs": "List active, queued and finished runs.",
    "cancel": "Cancel a run, a session's runs, or all runs.",
    "attach": "Open the terminal app on another server.",
    "web": "Open the web page in a browser, logged in.",
    "inbox": "List pending requests and finished runs in all workspaces.",
    "permissions": "Answer or list permission requests.",
    "questions": "Answer or list the agent's questions.",
    "diff": "Show the changes in a session or a run.",
    "undo": "Undo the last turn: its file changes and its messages.",
    "redo": "Redo the last undone turn.",
    "session": "List, show, rename, pin, archive, summarize, delete, fork, export and import sessions.",
    "search": "Search the messages of all sessions.",
    "stats": "Show tokens, cost, runs, tool calls and durations.",
    "jobs": "List, show and kill background jobs.",
    "skills": "List skills, commands and sub-agents.",
    "mcp": "List the MCP servers and their state; log in to one.",
    "init": "Draft an AGENTS.md for this project.",
    "connect": "Connect a provider and choose the default model.",
    "models": "Show the configured models; download local ones.",
    "config": "Show the effective configuration.",
    "trust": "Review a project's longboat.json and trust it.",
    "doctor": "Diagnose problems.",
    "status": "Show the server and its workspaces.",
    "nodes": "List the nodes of a cluster.",
    "workspace": "List workspaces; move one to another node.",
    "serve": "Run a server in the foreground.",
    "stop": "Stop the server.",
    "store": "Back up, restore, check and copy the database.",
    "logs": "Show the background server's log.",
    "completion": "Print the shell completion script.",
    "version": "Show the versions of this command and of the server.",
}
"""The help line of each command. The command is the object of that name in the module of that name."""

HINTS: dict[str, str] = {
    "server_unreachable": "`longboat doctor` finds the cause; `longboat run` and `longboat serve` start a server.",
    "unauthorized": "Set LONGBOAT_TOKEN to the server's token: `longboat serve` prints where it is.",
    "session_not_found": "`longboat session list` lists the sessions in this directory; use --cwd for another one.",
    "request_not_found": "Without --request you see all requests of the run that are still stored.",
    "run_not_found": "`longboat runs` lists the runs in this directory; use --cwd for another one.",
    "permission_not_found": "`longboat permissions --all` lists the pending permission requests.",
    "question_not_found": "`longboat questions --all` lists the pending questions.",
    "mcp_server_not_found": "`longboat mcp` lists the MCP servers of this directory; use --cwd for another one.",
    "no_login_pending": "Run `longboat mcp login NAME` to start a login.",
    "job_not_found": "`longboat jobs` lists the jobs in this directory; use --cwd for another one.",
    "session_busy": "`longboat runs --state active` lists the active runs; `longboat cancel` cancels them.",
    "nothing_to_undo": "Use -s for another session: `longboat session list` lists them.",
    "undo_conflict": "Undo the later changes to these files, or restore the files as they were before the turn "
    "(`git diff` and `git checkout -- FILE` in a git repository), then try again.",
    "revert_conflict": "`longboat diff` shows the changes as they are now.",
    "server_busy": "`longboat runs --state active` lists the active runs; `longboat stop --force` stops anyway.",
    "workspace_busy": "`longboat runs --state active` lists the active runs; --force moves anyway.",
    "provider_not_found": "`longboat connect --list` lists the providers.",
    "config_invalid": "`longboat config --schema` prints the schema of longboat.json.",
    "store_unavailable": "`longboat doctor` shows the data directory and the free disk space.",
    "data_dir_gone": "`longboat session export ID` still saves a session; then run `longboat stop --force`.",
    "cancel_not_durable": "`longboat doctor` shows the data directory and the free disk space.",
}
"""The next step to suggest, by error code."""

READER_GONE = 141
"""The exit code a shell reports for a program killed by SIGPIPE."""


def hint_for(error: LongboatError) -> str:
    """The next step to suggest. A server that the user named is never started for them."""
    if error.code == "server_unreachable" and (name := naming_variable()):
        return f"{name} points to this server: start it there, or unset {name} to use your own."
    if "contains unknown field" in error.message:  # a command sends none that its own server does not know
        return "The server is older than this command: run `longboat stop`, and the next command starts a new one."
    return HINTS.get(error.code, "")


def naming_variable() -> str | None:
    """The environment variable that selects a server, if one is set."""
    return next((name for name in ("LONGBOAT_URL", "LONGBOAT_SOCKET") if os.environ.get(name)), None)


class Failure(click.ClickException):
    """An expected failure: one line for the problem, one for what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: object = None) -> None:
        click.secho(f"longboat: {self.message}", err=True, fg="red", color=color())
        if self.hint:
            click.echo(f"  {self.hint}", err=True)


def color() -> bool | None:
    """False if the user turned color off (https://no-color.org); None lets click check the terminal."""
    return False if os.environ.get("NO_COLOR") else None


class LazyGroup(click.Group):
    """Looks commands up in `COMMANDS` and imports only the one that is called."""

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
            raise click.UsageError(f'No such command. To send a prompt: longboat run "{name}"', ctx)
        from difflib import get_close_matches

        close = get_close_matches(name, COMMANDS, n=1)
        raise click.UsageError(f"No such command {name!r}.{f' Did you mean {close[0]}?' if close else ''}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Uses the table, so that completion does not import every command for its help line."""
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
        except UnicodeEncodeError as error:
            if error.reason != "surrogates not allowed":
                raise
            # An argument or a file name, as Python reads those that are not UTF-8.
            near = error.object[max(error.start - 40, 0) : error.end + 20]
            shown = near.encode(errors="surrogateescape").decode(errors="backslashreplace")
            raise Failure(f"This is not valid UTF-8: {shown}") from None
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None
        except BrokenPipeError:  # click would exit with 1
            forget_stdout()
            raise click.exceptions.Exit(READER_GONE) from None


def show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from longboat import __version__

        click.echo(f"longboat {__version__}")
        ctx.exit()


@click.command(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=show_version, help="Show the version."
)
@session_options
@cwd_option
@click.pass_context
def cli(ctx: click.Context, /, cwd: str, **requested: object) -> None:
    """A coding agent that people and programs can share. Without a command, opens the terminal app.

    Starts a server in the background if none is running.

    \b
    longboat                                   open the terminal app in this directory
    longboat web                               open the same sessions in a browser
    longboat run "Why does the build fail?"    send a prompt
    longboat run -c "Then fix it."             continue the last session in this directory
    longboat undo                              undo the last turn
    longboat connect                           connect a provider and choose the model
    longboat doctor                            diagnose problems

    \b
    Exit codes: 0 success, 1 failure, 2 usage error, 130 canceled.

    \b
    Shell completion, in ~/.bashrc (see `longboat completion --help` for zsh and fish):
    eval "$(longboat completion bash)"
    """
    if ctx.invoked_subcommand is None:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            click.echo(ctx.get_help())
            ctx.exit(2)
        from longboat.cli.terminal import RequestedOptions, open_here

        open_here(cwd, RequestedOptions(**requested))  # type: ignore[arg-type]  # click has checked them
    elif given := [name for name in (*requested, "cwd") if _was_given(ctx, name)]:
        raise click.UsageError(f"Put --{given[0]} after the command: longboat {ctx.invoked_subcommand} …", ctx)


def _was_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def main() -> None:
    """The `longboat` command."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - the parent process closed it
    try:
        cli(prog_name="longboat", color=color())
    except OSError as error:
        # Not in LazyGroup.invoke: help and error messages are written outside of it.
        sys.exit(_ended_by(error))


def _ended_by(error: OSError) -> int:
    """The exit code after a system error. A broken pipe prints nothing: no one is reading."""
    forget_stdout()
    if isinstance(error, BrokenPipeError):
        return READER_GONE
    Failure(_describe_error(error)).show()
    return 1


def _describe_error(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {reason}"
    if error.errno == errno.ENOENT:  # from getcwd
        return "The current directory no longer exists: cd to another one, or use --cwd DIR."
    return f"Cannot write the output: {reason}." if error.errno in _WRITING else reason


_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def forget_stdout() -> None:
    """Redirect stdout to /dev/null, so that flushing its buffer at exit cannot fail with a traceback."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
