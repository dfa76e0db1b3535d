"""One client's event stream, from whichever node has the events.

If the owner is gone, the next one is asked for the rest, and the client's connection stays open. If the owner cannot be
reached, the events come from the store. Knows of events only where they end and their cursors.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from longboat.errors import OwnedElsewhere, ServerLeaving, StoreUnavailable
from longboat.fleet.asgi_requests import Receive, Send, wait_disconnected
from longboat.fleet.frames import Follower
from longboat.fleet.relay import MISDIRECTED, RETRY, back_headers
from longboat.runtime.ownership import OBSERVED
from longboat.tasks import Tasks
from longboat.wire.sse import HEARTBEAT

if TYPE_CHECKING:
    from longboat.fleet.door import Door

logger = logging.getLogger(__name__)

PASSING = frozenset({409, 503})
"""A node that refuses to continue a stream like this may do so in a moment, or another one may."""


class Stream:
    """One client's stream, from whichever node has the events."""

    def __init__(self, door: "Door", scope: Any, receive: Receive, send: Send, workspace_id: str) -> None:
        self._door = door
        self._scope = scope
        self._receive = receive
        self._send = send
        self._workspace_id = workspace_id
        self._frames = Follower()
        self._putting = asyncio.Lock()
        self._started = False
        self._ended = False
        """The last answer is final: any other node would give it too."""
        self._is_own = False
        """The events come from this server, which ends its streams itself."""
        self._breaks = 0
        """Failures in a row without a frame in between."""

    async def run(self) -> None:
        async with Tasks() as tasks:
            passing = tasks.spawn(self._pass_all(), name="pass events on", awaited=True)
            gone = tasks.spawn(wait_disconnected(self._receive), name="wait for the client to leave")
            left = tasks.spawn(self._door.wait_leaving(), name="wait for the server to leave")
            await asyncio.wait((passing, gone, left), return_when=asyncio.FIRST_COMPLETED)
            if left.done() and self._is_own:
                await asyncio.wait((passing, gone), return_when=asyncio.FIRST_COMPLETED)
            for task in (passing, gone, left):
                task.cancel()
            await asyncio.wait((passing, gone, left))
        if not passing.cancelled():
            passing.result()
        if not gone.cancelled():
            return
        if not self._started:
            raise ServerLeaving
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pass_all(self) -> None:
        while not self._ended:
            await asyncio.sleep(RETRY.delay(self._breaks))
            self._breaks += 1
            self._is_own = False
            url = await self._find()
            self._is_own = url is None
            self._frames.drop_tail()
            try:
                await (self._pass_own() if url is None else self._pass_from(url))
            except OSError as error:
                logger.debug("the stream of %s broke: %s", self._workspace_id, error)
                if url is not None and not self._door.leaving:
                    await self._pass_from_store(url)
            if self._started and self._breaks > 1:
                await self._send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})
            self._door.owners.forget(self._workspace_id)
            if self._door.leaving:
                break  # the client finds another door

    async def _find(self) -> str | None:
        """Find the owner. A client whose stream has begun waits as long as it takes, and gets heartbeats."""
        if not self._started:
            return await self._door.owners.search(self._workspace_id).find()
        while True:
            try:
                async with asyncio.timeout(self._door.heartbeat_s):
                    return await self._door.owners.search(self._workspace_id).find()
            except (TimeoutError, OwnedElsewhere, ServerLeaving, StoreUnavailable):
                await self._send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})
                await asyncio.sleep(RETRY.ceiling_s)

    async def _pass_from(self, url: str) -> None:
        answer = await self._door.send_stream(url, self._workspace_id, self._scope, self._frames.cursor)
        try:
            if answer.status == MISDIRECTED or (answer.status in PASSING and self._started):
                return
            if answer.status != 200 and self._started:
                self._ended = True
                return
            await self._start(answer.status, back_headers(answer.headers))
            if answer.status != 200:
                self._ended = True
                while chunk := await answer.read():
                    await self._put(chunk)
                return
            while chunk := await answer.read():
                await self._put(self._frames.feed(chunk))
        finally:
            await answer.aclose()

    async def _pass_from_store(self, owner: str) -> None:
        """Pass on from the store what the owner writes, until it can be reached again or there is another owner."""
        self._frames.drop_tail()
        async with Tasks() as tasks:
            scope = {**self._scope, OBSERVED: owner}
            passing = tasks.spawn(self._pass_own(scope), name="pass events of the store on", awaited=True)
            probing = tasks.spawn(self._door.wait_reachable(self._workspace_id), name="wait for the owner")
            await asyncio.wait((passing, probing), return_when=asyncio.FIRST_COMPLETED)
            async with self._putting:  # a frame whose cursor we know is on its way to the client, whole
                passing.cancel()
                await asyncio.wait((passing,))
        if not passing.cancelled():
            passing.result()

    async def _pass_own(self, scope: Any = None) -> None:
        status, passes = 200, True

        async def send(message: Any) -> None:
            nonlocal status, passes
            if message["type"] == "http.response.start":
                status, passes = message["status"], message["status"] == 200 or not self._started
                self._ended = status != 200 and (passes or status not in PASSING)
                if passes:
                    await self._start(status, message["headers"])
            elif status == 200:
                await self._put_frames(message["body"])
            elif passes:
                await self._put(message["body"])

        await self._door.send_own_stream(scope or self._scope, self._frames.cursor, send)

    async def _start(self, status: int, headers: Any) -> None:
        if not self._started:
            self._started = True
            await self._send({"type": "http.response.start", "status": status, "headers": list(headers)})

    async def _put_frames(self, chunk: bytes) -> None:
        async with self._putting:
            await self._put(self._frames.feed(chunk))

    async def _put(self, chunk: bytes) -> None:
        if chunk:
            if chunk != HEARTBEAT:
                self._breaks = 0
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
