"""Requests as ASGI has them: what a door reads of one, changes in it, or holds back of its answer."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from longboat.errors import BodyTooLarge
from longboat.wire.models import ErrorBody

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Asgi = Callable[[Any, Receive, Send], Awaitable[None]]

_IMPORT = re.compile(r"/v1/workspaces/[^/]+/sessions/import")
_REPEATABLE = re.compile(
    r"/v1/workspaces/[^/]+/(agent|agent/sessions/[^/]+/(cancel|prompts/clear)|runs/[^/]+/cancel"
    r"|sessions/[^/]+/(summarize|shell)|move)"
)


class DeferredRefusal:
    """Passes an answer on, except a refusal: that is kept until someone has looked at it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._kept: list[Any] = []
        self._refused = False

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._refused = message["status"] in (409, 503)
        if self._refused:
            self._kept.append(message)
        else:
            await self._send(message)

    @property
    def code(self) -> str | None:
        body = b"".join(message.get("body", b"") for message in self._kept)
        try:
            return msgspec.json.decode(body, type=ErrorBody).code
        except msgspec.DecodeError:
            return None

    async def release(self) -> None:
        for message in self._kept:
            await self._send(message)


def limit_body(scope: Any, receive: Receive, *, body_mb: int, import_mb: int) -> Receive:
    """Raises BodyTooLarge as the routes would, before the body is in memory."""
    is_import = _IMPORT.fullmatch(path_of(scope)) is not None
    limit_mb, setting = (import_mb, "max_import_mb") if is_import else (body_mb, "max_body_mb")
    declared = header_of(scope, "content-length") or ""
    size = int(declared) if declared.isascii() and declared.isdigit() else 0
    taken = 0

    async def limited() -> Any:
        nonlocal taken
        if max(size, taken) <= limit_mb << 20:
            message = await receive()
            taken += len(message.get("body", b""))
        if max(size, taken) > limit_mb << 20:
            raise BodyTooLarge(f"The body is larger than {limit_mb} MB (server.{setting} in longboat.json).")
        return message

    return limited


async def wait_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def wait_forever() -> Any:
    """Wait forever: something else watches whether the client is still there."""
    await asyncio.get_running_loop().create_future()


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that replays a body already read."""
    given = False

    async def replayed() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def is_repeatable(scope: Any) -> bool:
    """Whether a repeated request with the same key changes nothing more: a new run, a cancel, or a move."""
    return scope["method"] == "POST" and _REPEATABLE.fullmatch(path_of(scope)) is not None


def path_of(scope: Any) -> str:
    """As the routes see it: a slash at the end makes no difference."""
    path: str = scope["path"]
    return path.rstrip("/") or "/"


def with_own_state(routes: Asgi) -> Asgi:
    """The routes keep what they have read of a request in its state, also its headers: asked again with others, they
    would answer as the first time."""

    async def ask(scope: Any, receive: Receive, send: Send) -> None:
        await routes({**scope, "state": dict(scope.get("state", {}))}, receive, send)

    return ask


def is_read(scope: Any) -> bool:
    return scope["method"] in ("GET", "HEAD")


def header_of(scope: Any, name: str) -> str | None:
    wanted = name.encode()
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == wanted), None)


def with_header(scope: Any, name: str, value: str) -> Any:
    wanted = name.encode()
    kept = [(key, each) for key, each in scope["headers"] if key != wanted]
    return {**scope, "headers": [*kept, (wanted, value.encode("latin-1"))]}
