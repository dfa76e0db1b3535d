"""Sends each request to the owner of its workspace: an ASGI layer in front of a node's routes.

If this node is the owner, or can become the owner, its own routes answer. Otherwise the door passes the request to the
owner and the answer back to the client. If the owner of an event stream is gone, the door finds the next owner and
continues at the same cursor. Knows nothing about requests except how they name a workspace, and which of them are safe
to repeat.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from longboat.backoff import Backoff
from longboat.errors import (
    BadInput,
    BodyTooLarge,
    LongboatError,
    OwnedElsewhere,
    OwnerLost,
    OwnerUnreachable,
    ServerLeaving,
    StoreUnavailable,
)
from longboat.fleet.frames import Follower
from longboat.fleet.node import Node
from longboat.fleet.relay import NoConnection, Relay, back_headers, from_scope
from longboat.fleet.signature import HEADER, Relayed, digest_of, verify
from longboat.models.http_client import Answer
from longboat.tasks import Tasks
from longboat.wire.ids import new_id
from longboat.wire.models import ErrorBody
from longboat.wire.sse import HEARTBEAT

if TYPE_CHECKING:
    from longboat.runtime.app import App

logger = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Asgi = Callable[[Any, Receive, Send], Awaitable[None]]
Refuse = Callable[[LongboatError, Send], Awaitable[None]]

AGAIN = Backoff(base_s=0.05, ceiling_s=0.5)
MAX_KNOWN = 10_000
MORE_S = 5.0
"""How much longer than a lease a request waits for its next owner."""
SILENT_BEATS = 2.0
"""After this many heartbeats without a sign, a stream is asked for at the owner again."""
KEY = "idempotency-key"
NOTHING_DONE = frozenset({"owned_elsewhere", "workspace_closing"})
"""Refusals after which a request may be made again, here or at the next owner."""
IN_DOUBT = frozenset({"owner_lost", "server_leaving"})
"""Refusals that do not say whether the request took effect."""
MISDIRECTED = 421
"""How a node says to a door: I am not the owner."""

_WORKSPACE = re.compile(r"/v1/workspaces/([^/]+)(/.*)?")
_CLIENT = re.compile(r"/v1/clients/[^/]+")


class _Wanted(msgspec.Struct):
    """What the door has to know of a request for a directory."""

    path: str
    node: str | None = None


class Door:
    def __init__(self, routes: Asgi, app: "App", node: Node, *, refuse: Refuse) -> None:
        self._routes = routes
        self._app = app
        self._node = node
        self._refuse = refuse
        self._heartbeat_s = app.settings.heartbeat_s
        self._relay = Relay(node, silent_s=SILENT_BEATS * app.settings.heartbeat_s)
        self._owners: dict[str, str] = {}
        """Where other nodes were found last, by workspace."""
        limits = app.settings.server
        self._most = max(limits.max_body_mb, limits.max_import_mb) << 20

    def is_from_node(self, scope: Any) -> bool | None:
        """Whether another node hands this request on; None: it does not say so."""
        return None if _header(scope, HEADER) is None else self._signed(scope) is not None

    def _signed(self, scope: Any) -> Relayed | None:
        request = from_scope(scope)
        return verify(
            _header(scope, HEADER) or "",
            method=request.method,
            target=request.target,
            secret=self._node.secret,
            now=self._node.database_time(),
        )

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        except LongboatError as error:
            await self._refuse(error, send)

    async def _answer(self, scope: Any, receive: Receive, send: Send) -> None:
        found = _WORKSPACE.fullmatch(scope["path"])
        if _header(scope, HEADER) is not None:
            await self._answer_node(scope, receive, send, found[1] if found else None)
        elif found is not None and found[2] == "/events" and scope["method"] == "GET":
            await _Stream(self, scope, receive, send, found[1]).run()
        elif found is not None and (scope["method"] != "GET" or not self._app.is_open(found[1])):
            await self._find_owner(scope, receive, send, found[1])
        elif scope["path"] == "/v1/workspaces" and scope["method"] == "POST":
            await self._join(scope, receive, send)
        elif _CLIENT.fullmatch(scope["path"]) and scope["method"] == "DELETE":
            await self._drop_client(scope, receive, send)
        else:
            await self._routes(scope, receive, send)

    # What another node hands on

    async def _answer_node(self, scope: Any, receive: Receive, send: Send, workspace_id: str | None) -> None:
        """One hop is enough: whoever is not the owner says so."""
        signed = self._signed(scope)
        body = await self._read(receive)
        if signed is None or digest_of(body) != signed.body_digest:
            raise BadInput("The body is not the one that the node has signed.", code="bad_relay")
        if workspace_id is None:
            return await self._routes(scope, _again(body, receive), send)
        try:
            await self._app.workspace(workspace_id)
            await self._answer_here(scope, _again(body, receive), send)
        except (OwnedElsewhere, NotAccepted, ServerLeaving):
            await send({"type": "http.response.start", "status": MISDIRECTED, "headers": []})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _answer_here(self, scope: Any, receive: Receive, send: Send) -> None:
        """Raises NotAccepted, and has answered nothing, if a request that may be repeated should be: this node is
        leaving or has just lost the workspace. Raises OwnerLost if nobody knows what became of another change."""
        if scope["method"] == "GET":
            await self._routes(scope, receive, send)
            return
        held = _HeldRefusal(send)
        await self._routes(scope, receive, held.send)
        if held.code in NOTHING_DONE or (held.code in IN_DOUBT and _is_keyed(scope)):
            raise NotAccepted
        if held.code in IN_DOUBT and not self._node.leaving:
            raise OwnerLost
        await held.release()

    # Who the owner is

    def _note_owner(self, workspace_id: str, url: str) -> None:
        if len(self._owners) >= MAX_KNOWN:
            self._owners.clear()
        self._owners[workspace_id] = url

    def forget_owner(self, workspace_id: str) -> None:
        """It did not answer, or says that it is not the owner."""
        self._owners.pop(workspace_id, None)

    async def place(self, workspace_id: str) -> str | None:
        """Where the node is that answers for the workspace; None: here, and it is open. A node that is no longer the
        owner says so, or is refused by the store: an old answer does no harm."""
        if self._app.is_open(workspace_id):
            return None
        if (known := self._owners.get(workspace_id)) is not None:
            return known
        found = await self._node.find(workspace_id)
        if found.owner is not None and found.owner != self._node.name:
            if found.owner_url is not None:
                self._note_owner(workspace_id, found.owner_url)
            return found.owner_url
        if found.owner is None and found.home != self._node.name and found.home_url is not None:
            return found.home_url
        if found.owner is None and self._node.leaving:
            if found.other_url is None:
                raise ServerLeaving
            return found.other_url
        await self._app.workspace(workspace_id)
        return None

    @asynccontextmanager
    async def owner(self, workspace_id: str) -> AsyncIterator[Callable[[], Awaitable[str | None]]]:
        """Yields what finds the owner, again and again, with rests in between; raises once no one can be waited for."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._node.lease_s + MORE_S
        tries = 0

        async def find() -> str | None:
            nonlocal tries
            while True:
                await asyncio.sleep(AGAIN.delay(tries))
                tries += 1
                try:
                    return await self.place(workspace_id)
                except (OwnedElsewhere, ServerLeaving):
                    if loop.time() >= deadline:
                        raise

        yield find

    # Requests

    async def _find_owner(self, scope: Any, receive: Receive, send: Send, workspace_id: str) -> None:
        body = await self._read(receive)
        if _is_keyed(scope) and _header(scope, KEY) is None:
            scope = _with_header(scope, KEY, new_id())
        repeatable = _is_keyed(scope) or scope["method"] in ("GET", "HEAD")
        request = from_scope(scope, body)
        sent = False
        deadline = asyncio.get_running_loop().time() + self._node.lease_s + MORE_S
        async with self.owner(workspace_id) as find:
            while True:
                url = await find()
                if url is None:
                    try:
                        return await self._answer_here(scope, _again(body, receive), send)
                    except NotAccepted as error:
                        if asyncio.get_running_loop().time() >= deadline:
                            raise ServerLeaving from error
                        continue
                try:
                    answer = await self._relay.send(url, request, again=repeatable)
                except OSError as error:
                    self.forget_owner(workspace_id)
                    sent = sent or not isinstance(error, NoConnection)
                    if sent and not repeatable:
                        raise OwnerLost from error
                    if asyncio.get_running_loop().time() >= deadline:
                        raise OwnerUnreachable(url) from error
                    continue
                if answer.status == MISDIRECTED:
                    self.forget_owner(workspace_id)
                    await answer.aclose()
                    continue
                return await self._hand_back(answer, send)

    async def _hand_back(self, answer: Answer, send: Send) -> None:
        try:
            await send(
                {"type": "http.response.start", "status": answer.status, "headers": back_headers(answer.headers)}
            )
            while chunk := await answer.read():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await answer.aclose()

    async def _join(self, scope: Any, receive: Receive, send: Send) -> None:
        body = await self._read(receive)
        url = await self._home_of(body)
        if url is None:
            return await self._routes(scope, _again(body, receive), send)
        try:
            await self._hand_back(await self._relay.send(url, from_scope(scope, body), again=True), send)
        except OSError as error:
            raise OwnerUnreachable(url) from error

    async def _home_of(self, body: bytes) -> str | None:
        """Where the node is that a new or known directory belongs to; None: here."""
        try:
            wanted = msgspec.json.decode(body, type=_Wanted)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None  # the route says what is wrong
        if wanted.node not in (None, self._node.name):
            peers = await self._node.peers()
            if wanted.node not in peers:
                raise BadInput(
                    f"There is no node {wanted.node!r} now. `longboat nodes` lists them.", code="unknown_node"
                )
            return peers[wanted.node]
        known = await self._app.known_at(wanted.path)
        if known is None or self._app.is_open(known):
            return None
        async with self.owner(known) as find:
            return await find()

    async def _drop_client(self, scope: Any, receive: Receive, send: Send) -> None:
        """Everywhere: a client may be attached to workspaces of several owners."""
        request = from_scope(scope)
        peers = await self._node.peers()
        answers = await asyncio.gather(
            *(self._relay.send(url, request, again=True) for url in peers.values()), return_exceptions=True
        )
        for answer in answers:
            if not isinstance(answer, BaseException):
                await answer.aclose()
        await self._routes(scope, receive, send)

    async def _read(self, receive: Receive) -> bytes:
        taken = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise BadInput(
                    "The connection closed before the whole body arrived. Send it again.", code="body_incomplete"
                )
            taken += message.get("body", b"")
            more = message.get("more_body", False)
            if len(taken) > self._most:
                raise BodyTooLarge(f"The body is larger than {self._most >> 20} MB.")
        return bytes(taken)

    async def send_stream(self, url: str, scope: Any, cursor: str | None) -> Answer:
        more = {} if cursor is None else {"last-event-id": cursor}
        return await self._relay.send(url, from_scope(scope, more=more), again=True)

    def routes_for(self, scope: Any, cursor: str | None) -> tuple[Asgi, Any]:
        return self._routes, scope if cursor is None else _with_header(scope, "last-event-id", cursor)

    @property
    def heartbeat_s(self) -> float:
        return self._heartbeat_s

    @property
    def leaving(self) -> bool:
        return self._node.leaving


class NotAccepted(Exception):
    """The request took no effect here. It may at the next owner."""


class _HeldRefusal:
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


class _Stream:
    """One client's stream, from whichever node has the events."""

    def __init__(self, door: Door, scope: Any, receive: Receive, send: Send, workspace_id: str) -> None:
        self._door = door
        self._scope = scope
        self._receive = receive
        self._send = send
        self._workspace_id = workspace_id
        self._frames = Follower()
        self._started = False
        self._ended = False
        """Another node would say the same."""
        self._breaks = 0
        """In a row, without a frame in between."""

    async def run(self) -> None:
        async with Tasks() as tasks:
            passing = tasks.spawn(self._pass_all(), name="pass events on", awaited=True)
            leaving = tasks.spawn(self._wait_disconnected(), name="wait for the client to leave")
            await asyncio.wait((passing, leaving), return_when=asyncio.FIRST_COMPLETED)
            for task in (passing, leaving):
                task.cancel()
            await asyncio.wait((passing, leaving))
        if not passing.cancelled():
            passing.result()

    async def _wait_disconnected(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _pass_all(self) -> None:
        while not self._ended:
            await asyncio.sleep(AGAIN.delay(self._breaks))
            self._breaks += 1
            url = await self._find()
            self._frames.drop_tail()
            try:
                await (self._pass_own() if url is None else self._pass_from(url))
            except OSError as error:
                logger.debug("the stream of %s broke: %s", self._workspace_id, error)
            self._door.forget_owner(self._workspace_id)
            if self._door.leaving:
                break  # the client finds another door
        if self._started:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _find(self) -> str | None:
        """The owner. A client whose stream has begun waits as long as it takes, and hears that we are there."""
        async with self._door.owner(self._workspace_id) as find:
            if not self._started:
                return await find()
        while True:
            try:
                async with self._door.owner(self._workspace_id) as find, asyncio.timeout(self._door.heartbeat_s):
                    return await find()
            except (TimeoutError, OwnedElsewhere, ServerLeaving, StoreUnavailable):
                await self._send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})

    async def _pass_from(self, url: str) -> None:
        answer = await self._door.send_stream(url, self._scope, self._frames.cursor)
        try:
            if answer.status == MISDIRECTED or (answer.status == 503 and self._started):
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

    async def _pass_own(self) -> None:
        routes, scope = self._door.routes_for(self._scope, self._frames.cursor)
        status = 200

        async def send(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status != 200:
                    self._ended = True
                if status == 200 or not self._started:
                    await self._start(status, message["headers"])
            elif status == 200:
                await self._put(self._frames.feed(message["body"]))
            elif self._started:
                await self._put(message["body"])

        await routes(scope, _never, send)

    async def _start(self, status: int, headers: Any) -> None:
        if not self._started:
            self._started = True
            await self._send({"type": "http.response.start", "status": status, "headers": list(headers)})

    async def _put(self, chunk: bytes) -> None:
        if chunk:
            self._breaks = 0
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})


async def _never() -> Any:
    """The client is watched elsewhere."""
    await asyncio.get_running_loop().create_future()


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read already, for someone else who reads it."""
    given = False

    async def replayed() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _is_keyed(scope: Any) -> bool:
    """A prompt: its key makes a repeated one the same run."""
    return bool(scope["method"] == "POST" and scope["path"].endswith("/agent"))


def _header(scope: Any, name: str) -> str | None:
    wanted = name.encode()
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == wanted), None)


def _with_header(scope: Any, name: str, value: str) -> Any:
    wanted = name.encode()
    kept = [(key, each) for key, each in scope["headers"] if key != wanted]
    return {**scope, "headers": [*kept, (wanted, value.encode("latin-1"))]}
