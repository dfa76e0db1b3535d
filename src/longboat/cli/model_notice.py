"""Who will answer a prompt, where that may surprise whoever sends it. Names of variables only, never values."""

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
    """Tell at once why nobody could answer: a session that holds nothing but that would only be in the way."""
    agent = connection.send(calls.agent(workspace_id, model=model))
    if not agent.ready:
        hint = "`longboat models` shows what is ready, `longboat doctor` what is wrong. Nothing was sent."
        raise Failure(agent.problem or "No model is ready.", hint)


def notices_about_model(connection: "Connection", workspace_id: str, cwd: str, model: str | None) -> list[str]:
    """What to tell before the prompt is sent. Of a server that the user named, no more is known than it says."""
    agent = connection.send(calls.agent(workspace_id, model=model))
    told = [agent.advice or ""]
    if not connection.address.named:
        if model is None and not agent.advice:
            told.append(_passed_over(agent, cwd))
        if sys.stderr is not None and sys.stderr.isatty():
            provider = model.partition("/")[0] if model is not None else agent.provider
            told.append(_foreign_key(provider, cwd))
    return [each for each in told if each]


def _passed_over(agent: "AgentInfo", cwd: str) -> str:
    """The first provider in longboat.json answers; if it cannot, another does. That is no secret."""
    config = config_of(cwd)
    if config is None or not config.providers or config.models.large is not None:
        return ""
    first = next(iter(config.providers))
    if agent.provider in (None, first):
        return ""
    return f"{first} of longboat.json is not ready: {agent.provider}/{agent.model} answers. (Why: longboat models)"


def _foreign_key(provider: str | None, cwd: str) -> str:
    """A key that some other shell gave the server pays for what this one asks."""
    found = read_discovery(os.environ)
    if found is None or not found.keys:
        return ""
    names = keys_of(provider, cwd) if provider is not None else ()
    used = next((name for name in names if name in found.keys), None)
    if used is None or any(os.environ.get(name) for name in names):
        return ""
    return (
        f"{provider} is asked with the server's {used}, which this shell does not have. (`longboat stop` forgets it.)"
    )
