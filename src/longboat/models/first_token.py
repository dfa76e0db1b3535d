"""How long a model server may take to begin its answer, and what is said when it took longer. Pure."""

import ipaddress
from urllib.parse import urlsplit

from longboat.errors import ModelError

NEARBY_S = 600.0
"""On this machine or in a private network, where a slow computer may have to read a long prompt first."""
ELSEWHERE_S = 120.0
OWN_API_S = 300.0
"""For providers with an API of their own, some of which send nothing while the model thinks."""


def first_token_s(base_url: str | None, configured: float | None, *, elsewhere_s: float = ELSEWHERE_S) -> float:
    """How many seconds the answer may take to begin. Without a `base_url` it is the provider's own address."""
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
    return address.is_private or address.is_loopback or address.is_link_local


def _is_local_name(host: str) -> bool:
    return bool(host) and ("." not in host or host.endswith((".localhost", ".local", ".internal", ".lan")))


def silent_error(provider: str, model: str, seconds: float, *, began: bool) -> ModelError:
    """`began`: something of the answer had come."""
    advice = "" if began else f" If it needs longer to begin, set first_token_s of {model}."
    return ModelError(
        f"{provider} sent nothing for {seconds:g} s.{advice}",
        title="The provider stopped responding",
        code="timeout",
        retryable=True,
    )
