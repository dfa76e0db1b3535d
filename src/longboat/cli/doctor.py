"""`longboat doctor`: diagnose problems."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longboat.cli.data_dirs import DataDir, choose_data_dir, data_dir_option, postgres_of
from longboat.cli.options import local_cwd_option
from longboat.errors import LongboatError
from longboat.store.datadir import STORE_NAME

if TYPE_CHECKING:
    from longboat.models.registry import Overview, ProviderInfo
    from longboat.wire.listings import LocalModelInfo, ModelInfo
    from longboat.wire.models import AgentInfo

LOW_DISK = 200_000_000
CHECK_S = 5.0
"""How long the database check may take without --deep."""
SOCKET_PATH_MAX = 107
"""The longest path of a unix socket, in bytes."""


class Severity(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Worth knowing, but not a problem."""
    WRONG = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    subject: str
    detail: str


@click.command(short_help="Diagnose problems.")
@click.option("--deep", is_flag=True, help="Check the whole database too, like `longboat store check`.")
@data_dir_option
@local_cwd_option
@click.pass_context
def doctor(ctx: click.Context, deep: bool, data_dir: str | None, cwd: str) -> None:
    """Check the installation, the data directory, the database, the server, the configuration and the models.

    Exit code 1 if there is a problem.

    \b
    longboat doctor
    longboat doctor --deep
    longboat doctor --data-dir /var/lib/longboat/data
    """
    wrong = 0
    for finding in examine(Path(cwd), data_dir, deep=deep):
        color = {Severity.OK: "green", Severity.NOTE: "yellow", Severity.WRONG: "red"}[finding.severity]
        click.echo(f"{click.style(f'{finding.severity:<5}', fg=color)}  {finding.subject:<15}  {finding.detail}")
        wrong += finding.severity is Severity.WRONG
    if wrong:
        click.echo(f"\n{wrong} {'problem' if wrong == 1 else 'problems'} found.", err=True)
        ctx.exit(1)


def examine(cwd: Path, data_dir: str | None = None, *, deep: bool = False) -> Iterator[Finding]:
    """All findings, in the order in which a person would check."""
    chosen = choose_data_dir(data_dir)
    yield from _installation()
    yield from _data_directory(chosen)
    if address := postgres_of(chosen.path):
        yield _postgres(address, chosen.path / STORE_NAME)
    else:
        yield from _database(chosen.path / STORE_NAME, deep)
    yield from _socket()
    yield from _server()
    yield _wall()
    yield from _sandbox(cwd, chosen.path)
    yield from _traces()
    yield from _models(cwd, chosen.path)


def _installation() -> Iterator[Finding]:
    import sqlite3

    from longboat import __version__

    yield Finding(Severity.OK, "longboat", f"{__version__}, Python {sys.version.split()[0]}, {sys.executable}")
    # The store uses RETURNING, which is new in 3.35.
    fit = sqlite3.sqlite_version_info >= (3, 35)
    yield Finding(Severity.OK if fit else Severity.WRONG, "sqlite", sqlite3.sqlite_version)


def _data_directory(chosen: DataDir) -> Iterator[Finding]:
    if chosen.note:
        yield Finding(Severity.NOTE, "data", chosen.note)
    there = path = chosen.path
    while not there.exists():
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        yield Finding(
            Severity.WRONG, "data", f"{there} is not writable: set LONGBOAT_DATA_DIR to a writable directory."
        )
        return
    free = shutil.disk_usage(there).free
    detail = f"{path}{'' if there == path else ' (not created yet)'}, {free / 1e9:.1f} GB free"
    if free > LOW_DISK:
        yield Finding(Severity.OK, "data", detail)
    else:
        advice = "too little. Free some space, or set LONGBOAT_DATA_DIR to another directory."
        yield Finding(Severity.WRONG, "data", f"{detail}: {advice}")


def _database(file: Path, deep: bool) -> Iterator[Finding]:
    from longboat.store.sqlite.check import check_deeply, check_quickly

    if not file.exists():
        return
    try:
        report = check_deeply(file) if deep else check_quickly(file, limit_s=CHECK_S)
    except LongboatError as error:
        yield Finding(Severity.WRONG, "database", error.message)
        return
    if report.problems:
        command = shlex.join(["longboat", "store", "check", str(file)])
        detail = f"{report.problems[0].detail}; `{command}` lists all problems"
        yield Finding(Severity.WRONG, "database", f"{file} is damaged: {detail}")
    elif report.complete:
        looked = "no problems found" if deep else "the file is intact; use --deep to check its rows too"
        yield Finding(Severity.OK, "database", f"{file}, {report.size / 1e6:,.1f} MB: {looked}")
    else:
        detail = f"{file} is too large to check within {CHECK_S:g} s: use --deep to check all of it"
        yield Finding(Severity.NOTE, "database", detail)


def _postgres(address: str, old: Path) -> Finding:
    """Where the sessions are. Only LONGBOAT_STORE has all that is needed to connect; else the server's health tells."""
    told = f"the sessions are in PostgreSQL, {address}"
    unused = f"; {old} is not used" if old.exists() else ""
    dsn = os.environ.get("LONGBOAT_STORE")
    if not dsn:
        return Finding(Severity.OK, "database", f"{told}: its server checks it{unused}")
    import asyncio

    try:
        from longboat.store.postgres.connections import is_pooled
        from longboat.store.postgres.statements import FAILURES
    except ModuleNotFoundError:
        return Finding(Severity.WRONG, "database", f"{told}: pip install 'longboat[postgres]'")
    try:
        asyncio.run(is_pooled(dsn))
    except (*FAILURES, ValueError) as error:
        return Finding(Severity.WRONG, "database", f"{told}, and cannot be used: {str(error) or type(error).__name__}")
    return Finding(Severity.OK, "database", f"{told}: it can be reached{unused}")


def _socket() -> Iterator[Finding]:
    from longboat.wire.discovery import SOCKET_NAME, runtime_dir

    path = runtime_dir(os.environ, os.getuid()).absolute() / SOCKET_NAME
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        yield Finding(Severity.WRONG, "socket", f"{path} is too long: set LONGBOAT_RUNTIME_DIR to a shorter path.")
    elif path.parent.exists() and path.parent.stat().st_uid != os.getuid():
        yield Finding(Severity.WRONG, "socket", f"{path.parent} belongs to another user: set LONGBOAT_RUNTIME_DIR.")
    else:
        yield Finding(Severity.OK, "socket", str(path))


def _server() -> Iterator[Finding]:
    from longboat.cli.background import probe
    from longboat.cli.connection import Connection
    from longboat.cli.main import naming_variable
    from longboat.cli.status import health_told
    from longboat.client import calls
    from longboat.wire.models import PROTOCOL

    try:
        connection = Connection()
        running = probe(connection)
        if running is None and connection.address.named:
            advice = f"start it, or unset {naming_variable()} to use your own"
            yield Finding(Severity.WRONG, "server", f"no answer at {connection.address}: {advice}")
            return
        if running is None:
            yield Finding(Severity.NOTE, "server", "not running; `longboat run` starts it")
            return
        health = connection.send(calls.health())
    except LongboatError as error:
        yield Finding(Severity.WRONG, "server", error.message)
        return
    told = f"{running.version} at {connection.address}: {health_told(health)}"
    if running.protocol != PROTOCOL:
        yield Finding(Severity.WRONG, "server", f"{told}; it uses another protocol version: run `longboat stop`")
    else:
        yield Finding(Severity.OK if health.status == "ok" else Severity.WRONG, "server", told)


def _wall() -> Finding:
    """The read-only sandbox for commands that run without asking."""
    from longboat.tools.sandbox.wall import Wall, find_wall

    wall = find_wall()
    if isinstance(wall, Wall):
        return Finding(Severity.OK, "wall", f"commands that run without asking are read-only, enforced by {wall.name}")
    return Finding(
        Severity.NOTE, "wall", f"none: {wall}. Only a few commands, such as `git status`, run without asking"
    )


def _sandbox(cwd: Path, data: Path) -> Iterator[Finding]:
    """The sandbox that this user's server would run bash commands in."""
    from longboat.config.load import load_config, user_config_file
    from longboat.tools.sandbox.sandbox import SandboxMode, SandboxPolicy, examine_sandbox

    try:
        mode = SandboxMode(load_config(cwd, environ=os.environ, user_dir=Path.home()).sandbox)
    except LongboatError:
        return  # reported by _models
    config = user_config_file(os.environ, Path.home()).parent
    box = examine_sandbox(SandboxPolicy(mode=mode, workspace=cwd, temp=data / "tmp", hidden=(data, config)))
    if isinstance(box, str):
        severity = Severity.WRONG if mode is SandboxMode.REQUIRED else Severity.NOTE
        yield Finding(severity, "sandbox", f'"{mode}"; not available: {box}')
    elif mode is SandboxMode.OFF:
        yield Finding(Severity.NOTE, "sandbox", f'"off"; available: {box}. To use it, set sandbox to "auto".')
    else:
        lack = f" ({box.lack})" if box.lack else ""
        yield Finding(Severity.NOTE if box.lack else Severity.OK, "sandbox", f'"{mode}"; available: {box}{lack}')


def _traces() -> Iterator[Finding]:
    """Of OpenTelemetry, if they are switched on."""
    from longboat.config.load import load_user_config
    from longboat.installation import install_command

    try:
        otel = load_user_config(environ=os.environ, user_dir=Path.home()).server.otel
    except LongboatError:
        return  # reported by _models
    if not otel.enabled:
        return
    try:
        import longboat.runtime.otel  # noqa: F401
    except ImportError:
        advice = f"run `{install_command('otel')}`, or set server.otel.enabled to false"
        yield Finding(Severity.WRONG, "traces", f"the packages for OpenTelemetry are not installed: {advice}")
    else:
        contents = "with contents" if otel.content else "without contents"
        yield Finding(Severity.OK, "traces", f"OpenTelemetry, {contents}")


def _models(cwd: Path, data: Path) -> Iterator[Finding]:
    from longboat.cli.models import advice_for, cooldowns, describe, describe_cooldown, local_models, server_view
    from longboat.config.load import FILE_NAME, user_config_file

    files = (user_config_file(os.environ, Path.home()), cwd / FILE_NAME)
    try:
        overview = describe(str(cwd))
    except LongboatError as error:
        yield from _wrong_config(error, *files)
        return
    yield from map(_config, files)
    try:
        agent = server_view(str(cwd))
    except LongboatError:
        agent = None  # reported by _server
    # A key missing only in this shell does not matter to a server that has it.
    missing = Severity.NOTE if agent is not None and agent.ready else Severity.WRONG
    yield from _as_this_shell_has_it(overview, missing)
    yield from _local_models(overview, local_models(str(cwd), data))
    if agent is not None and (agent.ready or agent.problem != overview.problem):  # else it is said already
        yield from _as_the_server_has_it(overview, agent, cwd)
        yield from (Finding(Severity.NOTE, "models (server)", describe_cooldown(each)) for each in cooldowns(str(cwd)))
    if advice := advice_for(overview, agent):
        yield Finding(Severity.NOTE, "models", advice)


def _as_this_shell_has_it(overview: "Overview", severity: Severity) -> Iterator[Finding]:
    from longboat.cli.models import in_turn

    in_use = {name.partition("/")[0] for name in (*overview.large_list, *overview.small_list)}
    for provider in overview.providers:
        yield from _provider(provider, severity, in_use=provider.name in in_use)
    if overview.problem is not None:
        yield Finding(severity, "models (shell)", overview.problem)
    else:
        large, small = in_turn(overview.large_list), in_turn(overview.small_list)
        detail = f"prompts: {large}, titles: {small} (from this shell's environment)"
        yield Finding(Severity.OK, "models (shell)", detail)


def _as_the_server_has_it(overview: "Overview", agent: "AgentInfo", cwd: Path) -> Iterator[Finding]:
    from longboat.cli.models import divergence

    different = divergence(overview, agent, str(cwd))
    told = f"prompts: {agent.provider}/{agent.model}" if agent.ready else (agent.problem or "").removesuffix(".")
    severity = Severity.WRONG if not agent.ready else Severity.NOTE if different else Severity.OK
    yield Finding(severity, "models (server)", f"{told}. {different}" if different else told)


SOURCES = {
    "config": "from longboat.json",
    "environment": "from the environment",
    "stored": "from `longboat connect`",
    "built in": "built in",
    "found running": "found on this machine",
}


def _provider(provider: "ProviderInfo", severity: Severity, *, in_use: bool) -> Iterator[Finding]:
    from longboat.cli.models import obstacle

    if (problem := obstacle(provider)) is not None:
        if provider.source == "config":
            yield Finding(severity, provider.name, problem)
        return
    yield Finding(Severity.OK, provider.name, f"{provider.type}, key {provider.key}, {SOURCES[provider.source]}")
    if in_use and provider.base_url is not None and (failure := _unreachable(provider.base_url)):
        yield Finding(Severity.WRONG, provider.name, f"{provider.base_url} cannot be reached: {failure}")


def _unreachable(url: str) -> str:
    """Why the URL cannot be reached; empty if it can."""
    import socket
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname or "", port), timeout=3).close()
    except (OSError, ValueError) as error:
        return str(getattr(error, "strerror", None) or error)
    return ""


def _local_models(overview: "Overview", found: "Sequence[ModelInfo]") -> Iterator[Finding]:
    """Check the local models that are in use or downloaded: whether they load, and fit into the memory."""
    from longboat.installation import install_command
    from longboat.models.local.fit import this_machine
    from longboat.models.local.process import runtime_installed

    if not runtime_installed():
        yield Finding(Severity.NOTE, "local models", f"not installed (optional: `{install_command('local')}`)")
        return
    available = this_machine().available
    for model in found:
        in_use = model.name in (overview.large, overview.small)
        if model.local is None and model.problem is not None:
            yield Finding(Severity.WRONG, "local models", f"{model.name}: {model.problem}")
        elif model.local is not None and (in_use or model.local.downloaded):
            yield _local_model(model, model.local, available, in_use=in_use)


def _local_model(model: "ModelInfo", here: "LocalModelInfo", available: int | None, *, in_use: bool) -> Finding:
    needs = f"{model.name}: needs about {here.memory / 1e9:.1f} GB of memory"
    if not here.downloaded:
        return Finding(Severity.NOTE, "local models", f"{model.name}: not downloaded; the first prompt downloads it")
    if available is not None and here.memory > available:
        advice = "set a smaller context_window, or use a smaller model"
        severity = Severity.WRONG if in_use else Severity.NOTE
        return Finding(severity, "local models", f"{needs}, {available / 1e9:.1f} GB is free: {advice}")
    return Finding(Severity.OK, "local models", f"{needs}, a window of {model.context_window or 0:,} tokens")


def _wrong_config(error: LongboatError, users: Path, project: Path) -> Iterator[Finding]:
    """Problems with the configuration files. The user's file is checked on its own, so that an error in the project's
    file, found first, does not make it look fine."""
    from longboat.config.load import load_user_config

    try:
        load_user_config(environ=os.environ, user_dir=Path.home())
    except LongboatError as own:
        yield Finding(Severity.WRONG, "config", own.message)
        is_new = error.message.startswith(str(project))
    else:
        yield _config(users)
        is_new = True
    if is_new:
        yield Finding(Severity.WRONG, "config", error.message)
    elif project.exists():
        yield Finding(Severity.NOTE, "config", f"{project} (not checked yet)")
    else:
        yield _config(project)


def _config(file: Path) -> Finding:
    there = file.exists()
    return Finding(Severity.OK if there else Severity.NOTE, "config", f"{file}{'' if there else ' (does not exist)'}")
