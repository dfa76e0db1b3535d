"""How long a model server may be silent, before its answer and between two pieces, and what is said then. Pure."""

import ipaddress
from urllib.parse import urlsplit

from longboat.errors import ModelError
from longboat.models.error_quotes import with_advice

NEARBY_S = 600.0
"""On this machine or in a private network, where a slow computer may have to read a long prompt first. Some servers
there also say nothing while the model writes a tool call, and then send it whole."""
ELSEWHERE_S = 120.0
OWN_API_S = 300.0
"""For providers with an API of their own, some of which send nothing while the model thinks."""

_LOCAL = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".fritz.box", ".ts.net")
"""Endings of names in private networks, Tailscale's among them."""
_SHARED = ipaddress.ip_network("100.64.0.0/10")
"""Not private in the letter of the standards, but used like that, by Tailscale for one."""
SILENT = "timeout"
"""The code of the error of a server that was silent for too long."""


def silence_limit_s(base_url: str | None, configured: float | None, *, elsewhere_s: float = ELSEWHERE_S) -> float:
    """How many seconds it may be silent, by where it is. Without a `base_url` it is the provider's own address."""
    if configured:
        return configured
    return NEARBY_S if base_url is not None and is_nearby(base_url) else elsewhere_s


def is_nearby(base_url: str) -> bool:
    """Whether the server is on this machine or in a private network."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return _is_local_name(host)
    return address.is_private or address.is_loopback or address.is_link_local or address in _SHARED


def _is_local_name(host: str) -> bool:
    host = host.removesuffix(".")
    return bool(host) and ("." not in host or host.endswith(_LOCAL))


def silent_error(provider: str, model: str, seconds: float, *, began: bool) -> ModelError:
    """`began`: something of the answer had come."""
    wants, key = ("between two pieces", "idle_s") if began else ("to begin", "first_token_s")
    return ModelError(
        f"{provider} sent nothing for {seconds:g} s. If it needs longer {wants}, set {key} of {model}.",
        title="The provider stopped responding",
        code=SILENT,
        retryable=True,
    )


def silent_in_turn_error(provider: str, seconds: float) -> ModelError:
    """It could be silent for longer, but the turn has not enough time for that and for another model."""
    return ModelError(
        f"{provider} sent nothing for {seconds:g} s, half of the turn's remaining time.",
        title="The provider stopped responding",
        code=SILENT,
        retryable=True,
    )


def still_loading_error(refused: ModelError, model: str, seconds: float) -> ModelError:
    """`seconds`: how long the model had. Trying again would only multiply what someone was willing to wait."""
    advice = f"Longboat waited {seconds:g} s. If it needs longer, set first_token_s of {model}."
    return ModelError(with_advice(refused.message, advice), title=refused.title, code=refused.code)
