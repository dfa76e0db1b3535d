"""The advice shown when nothing is configured and the local model is used as a fallback.

Must not know how a model is chosen: it gets the chosen provider.
"""

from longboat.config.settings import Config
from longboat.models.providers import LOCAL_TYPE

_NO_CODER = "Using the small local model. It can chat but cannot code."


def advice_on(config: Config, provider: str) -> str | None:
    """How to get a better model, unless someone chose the current one."""
    if provider != LOCAL_TYPE or provider in config.providers or config.models.large is not None:
        return None
    if config.providers:
        return f"No provider in longboat.json is ready. {_NO_CODER} Run `longboat models` to see what is missing."
    return f"No provider is configured. {_NO_CODER} For a better one, run `longboat connect` (in the apps: /connect)."
