"""The Python SDK: `Client` for asyncio, `SyncClient` for plain code.

async with Client() as client:
    async for event in client.run("Why is the sky blue?"):
        print(event.type)
"""

from typing import TYPE_CHECKING

from longboat.wire.events import Event
from longboat.wire.requests import Submit

if TYPE_CHECKING:
    from longboat.client.aio import Client
    from longboat.client.mirror import Mirror, Transcript
    from longboat.client.sync import SyncClient

__all__ = ["Client", "Event", "Mirror", "Submit", "SyncClient", "Transcript"]

_HOMES = {
    "Client": "longboat.client.aio",
    "Mirror": "longboat.client.mirror",
    "SyncClient": "longboat.client.sync",
    "Transcript": "longboat.client.mirror",
}


def __getattr__(name: str) -> object:
    """Load httpx2 when a client is first asked for: short commands use `client.calls` without it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
