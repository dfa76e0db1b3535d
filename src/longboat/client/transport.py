"""What both clients need of httpx2: timeouts, limits, and the errors that a lost connection means."""

import os
from typing import Any
from urllib.parse import urlsplit

import httpx2

from longboat.client.address import Address, read_discovery
from longboat.client.answers import untrusted
from longboat.client.call import Call
from longboat.client.reconnection import STOPPED
from longboat.errors import LongboatError, ServerUnreachable

CONNECT_S = 5.0
SILENCE_S = 45.0
"""The server's heartbeat comes every 15 s: a stream silent for three of them is dead."""

STREAM_TIMEOUT = httpx2.Timeout(CONNECT_S, read=SILENCE_S)
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20)


def timeout(call: Call[Any]) -> httpx2.Timeout:
    return httpx2.Timeout(call.timeout_s, connect=CONNECT_S)


def unreachable(address: Address, cause: Exception, *, known: bool) -> LongboatError:
    """`known`: the server has answered before. One that never has may not have been started."""
    if "CERTIFICATE_VERIFY_FAILED" in str(cause):
        return untrusted(address)
    advice = "" if known else ". Does one run there? `longboat serve` starts one."
    return ServerUnreachable(
        f"No answer from the Longboat server at {address}: {cause or type(cause).__name__}{advice}"
    )


def parting(address: Address, lost: LongboatError) -> LongboatError:
    """Whether the server was lost or stopped: a server that shuts down in order removes its discovery file."""
    if address.named or read_discovery(os.environ) is not None:
        return lost
    return ServerUnreachable("The server was stopped: any `longboat` command starts one.", code=STOPPED)


def is_remote(address: Address) -> bool:
    """Whether the environment's proxies may be in the way; on this machine they never are."""
    host = urlsplit(address.url).hostname if address.url else None
    return host is not None and host not in {"127.0.0.1", "::1", "localhost"}


def needs_tls(address: Address) -> bool:
    """Building a TLS context costs 50 ms, so only where one is used."""
    return bool(address.url and address.url.startswith("https:"))
