"""Tells the sender which model or key will be used where it may surprise them. Variable names only, never values."""

import os
import sys
from typing import TYPE_CHECKING

from longboat.cli.environment import config_of, keys_of
from longboat.cli.main import Failure
from longboat.client import calls
from longboat.client.address import read_discovery

if TYPE_CHECKING:
    from longboat.cli.connection import Connection
    from longboat.wire.models import AgentInfo


def check_ready(connection: "Connection", workspace_id: str, model: str | None) -> None:
    """Fail early if no model is ready, so that no session is created just to hold that error. While the directory is
    away, its models are unknown, and the prompt waits for it anyway."""
    agent = connection.send(calls.agent(workspace_id, model=model))
    if agent.ready or connection.send(calls.workspace(workspace_id)).away:
        return
    hint = "Nothing was sent."
    if agent.problem_code == "model_not_configured":
        hint += " `longboat models` lists the models of this directory."
    raise Failure(agent.problem or "No model is ready.", hint)


def notices_about_model(connection: "Connection", agent: "AgentInfo", cwd: str, model: str | None) -> list[str]:
    """Notices to print before the prompt is sent. Checks keys only on our own server: others do not reveal theirs."""
    told = [agent.advice or ""]
    if not connection.address.named:
        if model is None and not agent.advice:
            told.append(_passed_over(agent, cwd))
        if sys.stderr is not None and sys.stderr.isatty():
            provider = model.partition("/")[0] if model is not None else agent.provider
            told.append(_foreign_key(provider, cwd))
    return [each for each in told if each]


def _passed_over(agent: "AgentInfo", cwd: str) -> str:
    """A notice if the first provider in longboat.json is not ready and another one takes its place."""
    config = config_of(cwd)
    if config is None or not config.providers or config.models.large is not None:
        return ""
    first = next(iter(config.providers))
    if agent.provider in (None, first):
        return ""
    return f"{first} (longboat.json) is not ready; using {agent.provider}/{agent.model}. See: longboat models"


def _foreign_key(provider: str | None, cwd: str) -> str:
    """A notice if the server pays with a key that another shell gave it."""
    found = read_discovery(os.environ)
    if found is None or not found.keys:
        return ""
    names = keys_of(provider, cwd) if provider is not None else ()
    used = next((name for name in names if name in found.keys), None)
    if used is None or any(os.environ.get(name) for name in names):
        return ""
    return f"Using the server's {used} for {provider}; this shell does not set it. (`longboat stop` discards it.)"
