"""A bare ASGI application for uvicorn's own command line."""

from collections.abc import Awaitable, Callable
from typing import Any


async def app(scope: dict[str, Any], receive: object, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})
