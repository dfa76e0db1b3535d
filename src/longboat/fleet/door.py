"""Sends each request to the owner of its workspace: an ASGI layer in front of a node's routes.

If this node is the owner, or can become the owner, its own routes answer. Otherwise the door passes the request to the
owner and the answer back to the client. If the owner of an event stream is gone, the door finds the next owner and
continues at the same cursor. Knows nothing about requests except how they name a workspace, and which of them are safe
to repeat.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from longboat.backoff import Backoff
from longboat.errors import (
    BadInput,
    LongboatError,
    OwnedElsewhere,
    OwnerLost,
    OwnerUnreachable,
    ServerLeaving,
    StoreUnavailable,
)
from longboat.fleet.asgi_requests import (
    Asgi,
    DeferredRefusal,
    Receive,
    Send,
    header_of,
    is_read,
    is_repeatable,
    limit_body,
    path_of,
    replay_body,
    wait_disconnected,
    wait_forever,
    with_header,
    with_own_state,
)
from longboat.fleet.node import Node
from longboat.fleet.owners import SUCCESSOR_WAIT_S, LeaseWatch, OwnerLookup, Owners
from longboat.fleet.relay import MISDIRECTED, RETRY, HandedOn, NoConnection, Relay, back_headers, from_scope
from longboat.fleet.signature import HEADER, Relayed, digest_of, verify
from longboat.fleet.stream import Stream
from longboat.models.http_client import Answer
from longboat.runtime.ownership import NODE_KEY, OBSERVED
from longboat.tasks import Tasks
from longboat.wire.ids import new_id, repeated_key

if TYPE_CHECKING:
    from longboat.runtime.app import App

logger = logging.getLogger(__name__)

Refuse = Callable[[LongboatError, Send], Awaitable[None]]

DROP_S = 3.0
"""How long another node has to release a client."""
SLOW = Backoff(base_s=1.0, ceiling_s=5.0)
"""After each such time without an answer, a door looks whether it asks the owner."""
PROBE_S = 1.0
"""How often a stream that is read from the store tries to reach the owner."""
KEY = "idempotency-key"
NOTHING_DONE = frozenset({"owned_elsewhere", "workspace_closing"})
"""Refusals after which a request may be made again, here or at the next owner."""
UNAVAILABLE = 503
IN_DOUBT = frozenset({"owner_lost", "server_leaving"})
"""Refusals that do not say whether the request took effect."""
DOUBT = "longboat-in-doubt"
"""A header beside MISDIRECTED: this node was the owner, and the request may have taken effect."""

_WORKSPACE = re.compile(r"/v1/workspaces/([^/]+)(/.*)?")
_CLIENT = re.compile(r"/v1/clients/[^/]+")


class _Wanted(msgspec.Struct):
    """What the door has to know of a request for a directory."""

    path: str
    node: str | None = None


class Door:
    def __init__(self, routes: Asgi, app: "App", node: Node, *, refuse: Refuse) -> None:
        self._routes = with_own_state(routes)
        self._app = app
        self._node = node
        self._refuse = refuse
        self._heartbeat_s = app.settings.heartbeat_s
        # A stream that misses a heartbeat is asked for again.
        self._relay = Relay(node, silent_s=app.settings.heartbeat_s + node.lease_s / 3)
        self.owners = Owners(app, node)
        limits = app.settings.server
        self._limits = {"body_mb": limits.max_body_mb, "import_mb": limits.max_import_mb}

    def is_from_node(self, scope: Any) -> bool | None:
        """Whether another node hands this request on; None: it does not say so."""
        return None if header_of(scope, HEADER) is None else self._signed(scope) is not None

    def _signed(self, scope: Any) -> Relayed | None:
        request = from_scope(scope)
        return verify(
            header_of(scope, HEADER) or "",
            method=request.method,
            target=request.target,
            headers=request.headers,
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
        self._node.drop_expired()  # a node that was stopped for long must not answer as the owner
        receive, path = limit_body(scope, receive, **self._limits), path_of(scope)
        found = _WORKSPACE.fullmatch(path)
        if header_of(scope, HEADER) is not None:
            await self._answer_node(scope, receive, send, found[1] if found else None)
        elif found is not None and found[2] == "/events" and scope["method"] == "GET":
            await Stream(self, scope, receive, send, found[1]).run()
        elif found is not None and (scope["method"] != "GET" or not self._app.is_open(found[1])):
            await self._find_owner(scope, receive, send, found[1])
        elif path == "/v1/workspaces" and scope["method"] == "POST":
            await self._join(scope, receive, send)
        elif _CLIENT.fullmatch(path) and scope["method"] == "DELETE":
            await self._drop_client(scope, receive, send)
        else:
            await self._routes(scope, receive, send)

    # What another node hands on

    async def _answer_node(self, scope: Any, receive: Receive, send: Send, workspace_id: str | None) -> None:
        """One hop is enough: a node that is not the owner says so."""
        signed = self._signed(scope)
        body = await self._read(receive)
        if signed is None or digest_of(body) != signed.body_digest:
            raise BadInput("The request body does not match its signature.", code="bad_relay")
        try:
            if workspace_id is not None:
                await self._app.workspace(workspace_id)
            await self._answer_here(scope, replay_body(body, receive), send)
        except (OwnedElsewhere, NotAccepted, ServerLeaving) as error:
            doubtful = isinstance(error, NotAccepted) and error.in_doubt
            headers = [(DOUBT.encode(), b"1")] if doubtful else []
            await send({"type": "http.response.start", "status": MISDIRECTED, "headers": headers})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _answer_here(self, scope: Any, receive: Receive, send: Send, *, in_doubt: bool = False) -> None:
        """Raises NotAccepted, and has answered nothing, if a request that may be repeated should be: this node is
        leaving or has just lost the workspace. Raises OwnerLost if nobody knows what became of another change.
        `in_doubt`: an owner before this one may have carried the request out, so a store that cannot be written does
        not mean that nothing was accepted."""
        if scope["method"] == "GET":
            await self._routes(scope, receive, send)
            return
        held = DeferredRefusal(send)
        await self._routes(scope, receive, held.send)
        repeatable = is_repeatable(scope) or path_of(scope) == "/v1/workspaces"
        if held.code in NOTHING_DONE or (held.code in IN_DOUBT and repeatable):
            raise NotAccepted(in_doubt=held.code == OwnerLost.code)
        if in_doubt and held.code == StoreUnavailable.code:
            raise NotAccepted(in_doubt=True)
        if held.code in IN_DOUBT and not self._node.leaving:
            raise OwnerLost
        await held.release()

    # Requests

    async def _find_owner(self, scope: Any, receive: Receive, send: Send, workspace_id: str) -> None:
        body = await self._read(receive)
        if is_repeatable(scope) and header_of(scope, KEY) is None:
            scope = with_header(scope, KEY, NODE_KEY + new_id())
        request = from_scope(scope, body)
        lease = LeaseWatch(self._node, workspace_id)
        in_doubt = False
        search = self.owners.search(workspace_id)
        gone: asyncio.Task[None] | None = None
        async with Tasks() as tasks:
            while gone is None or not gone.done():  # a client that has left may ask again, with another key
                if in_doubt:
                    scope = with_header(scope, KEY, repeated_key(header_of(scope, KEY) or ""))
                    request = from_scope(scope, body)
                try:
                    url = await search.find()
                    if url is None:
                        failure = await self._try_here(scope, replay_body(body, receive), send, in_doubt=in_doubt)
                    else:
                        failure = await self._try_at(url, workspace_id, scope, request, send, in_doubt=in_doubt)
                    if failure is None:
                        return
                    in_doubt = in_doubt or isinstance(failure, OwnerLost | _Unanswered)
                    if await self._is_final(failure, search, lease):
                        raise failure
                except (OwnedElsewhere, OwnerUnreachable, ServerLeaving, StoreUnavailable) as error:
                    raise (OwnerLost() if in_doubt else error) from None
                gone = gone or tasks.spawn(wait_disconnected(receive), name="wait for the client to leave")

    async def _is_final(self, failure: LongboatError, search: OwnerLookup, lease: LeaseWatch) -> bool:
        """Whether waiting for another owner is pointless."""
        if isinstance(failure, _Misdirected):
            # It hands the workspace over as soon as its turns have ended. As long as it renews the lease, it is alive.
            if await lease.is_held():
                search.restart_deadline()
            return search.deadline_passed
        if isinstance(failure, ServerLeaving) and self._node.leaving and not await self._node.peers():
            return True
        return search.deadline_passed or (
            isinstance(failure, OwnerUnreachable) and not isinstance(failure, _Misdirected) and await lease.is_renewed()
        )

    async def _try_here(
        self, scope: Any, receive: Receive, send: Send, *, in_doubt: bool = False
    ) -> LongboatError | None:
        try:
            await self._answer_here(scope, receive, send, in_doubt=in_doubt)
        except NotAccepted as error:
            if self._node.leaving:
                return ServerLeaving()
            # Without doubt, this node hands the workspace over: wait for its next owner, as the other doors do.
            return OwnerLost() if error.in_doubt else _Misdirected(self._node.url)
        return None

    async def _try_at(
        self, url: str, workspace_id: str, scope: Any, request: HandedOn, send: Send, *, in_doubt: bool
    ) -> LongboatError | None:
        """None if the request is answered; otherwise it may be tried again. `in_doubt`: as in `_answer_here`."""
        repeatable = is_repeatable(scope) or is_read(scope)
        try:
            answer = await self.ask_owner(url, workspace_id, request, again=repeatable)
        except OSError as error:
            self.owners.forget(workspace_id)
            if is_read(scope) and await self._answer_from_store(scope, send, url):
                return None
            if is_read(scope) or isinstance(error, NoConnection):
                return OwnerUnreachable(url)
            if not repeatable:
                raise OwnerLost from error
            return _Unanswered(url)
        if answer.status == MISDIRECTED:
            self.owners.forget(workspace_id)
            await answer.aclose()
            return _Unanswered(url) if DOUBT in answer.headers else _Misdirected(url)
        if in_doubt and answer.status == UNAVAILABLE:
            await answer.aclose()
            return OwnerLost()
        await self._hand_back(answer, send, has_body=scope["method"] != "HEAD")
        return None

    async def ask_owner(self, url: str, workspace_id: str | None, request: HandedOn, *, again: bool) -> Answer:
        """As `Relay.send`. A request may take as long as it takes. But a node that is stopped or cut off does not
        answer: asks no longer than it is the owner and can be reached. `workspace_id`: None if it has no owner yet."""
        clock = asyncio.get_running_loop().time
        # What may not be repeated is given up only if it is sure that no answer will come.
        reached_at, unreached_s = clock(), 0.0 if again else self._node.lease_s
        async with Tasks() as tasks:
            asking = tasks.spawn(self._relay.send(url, request, again=again), name="ask the owner", awaited=True)
            looks = 0
            while not (await asyncio.wait((asking,), timeout=SLOW.delay(looks := looks + 1)))[0]:
                is_owner = workspace_id is None or await self.owners.is_owner(url, workspace_id)
                if not is_owner and not asking.done():
                    raise ConnectionError(f"{url} is no longer the owner of {workspace_id}")
                try:
                    await self._relay.probe(url)
                    reached_at = clock()
                except OSError as error:
                    if clock() - reached_at >= unreached_s and not asking.done():
                        # Not as it is: NoConnection would mean that the node has not seen the request.
                        raise ConnectionError(str(error)) from error
            return asking.result()

    async def _answer_from_store(self, scope: Any, send: Send, owner: str) -> bool:
        """Answer a request for what the store has, since the owner cannot be reached; False if it needs the owner."""
        held = DeferredRefusal(send)
        await self._routes({**scope, OBSERVED: owner}, wait_forever, held.send)
        if held.code == OwnerUnreachable.code:
            return False
        await held.release()
        return True

    async def _hand_back(self, answer: Answer, send: Send, *, has_body: bool = True) -> None:
        try:
            await send(
                {"type": "http.response.start", "status": answer.status, "headers": back_headers(answer.headers)}
            )
            while has_body and (chunk := await answer.read()):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await answer.aclose()

    async def _join(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request that opens a directory. Safe to repeat: the same directory is the same workspace."""
        body = await self._read(receive)
        request, clock, tries = from_scope(scope, body), asyncio.get_running_loop().time, 0
        deadline = clock() + self._node.lease_s + SUCCESSOR_WAIT_S
        while True:
            await self._node.wait_leases_moved(RETRY.delay(tries))
            tries += 1
            workspace_id, url = await self._place_of(body)
            if url is None:
                failure = await self._try_here(scope, replay_body(body, receive), send)
            else:
                failure = await self._try_to_join_at(url, workspace_id, request, send)
            if failure is None:
                return
            if clock() >= deadline:
                raise failure
            # A directory that is not known yet would be only ours.
            if self._node.leaving and (workspace_id is None or not await self._node.peers()):
                raise failure

    async def _try_to_join_at(
        self, url: str, workspace_id: str | None, request: HandedOn, send: Send
    ) -> LongboatError | None:
        try:
            answer = await self.ask_owner(url, workspace_id, request, again=True)
        except OSError:
            self.owners.forget(workspace_id)
            return OwnerUnreachable(url)
        if answer.status == MISDIRECTED:
            self.owners.forget(workspace_id)
            await answer.aclose()
            return OwnerUnreachable(url)
        await self._hand_back(answer, send)
        return None

    async def _place_of(self, body: bytes) -> tuple[str | None, str | None]:
        """The workspace of a directory that other nodes have, if it is known, and where the node is that answers; None:
        here. Only this node knows its own directories: while a caretaker still has one of them, the request waits."""
        try:
            wanted = msgspec.json.decode(body, type=_Wanted)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None, None  # the route says what is wrong
        peers = {} if wanted.node in (None, self._node.name) else await self._node.peers()
        known = await self._app.known_elsewhere(wanted.path, wanted.node)
        if known is None and wanted.node not in (None, self._node.name, *peers):
            message = f"Node {wanted.node!r} is down or stopping. `longboat nodes` lists the nodes."
            raise BadInput(message, code="unknown_node")
        known = known or await self._app.known_shared(wanted.path)
        if known is None:
            return None, peers.get(wanted.node or "")
        return known.workspace_id, await self.owners.search(known.workspace_id).find()

    async def _drop_client(self, scope: Any, receive: Receive, send: Send) -> None:
        """Detach the client at every node: it may be attached to workspaces of several owners."""
        request = from_scope(scope)

        async def detach_client_at(url: str) -> None:
            with suppress(OSError):  # also a TimeoutError: its streams end with the node that does not answer
                async with asyncio.timeout(DROP_S):
                    await (await self._relay.send(url, request, again=True)).aclose()

        await asyncio.gather(*map(detach_client_at, (await self._node.peers()).values()))
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
        return bytes(taken)

    async def send_stream(self, url: str, workspace_id: str, scope: Any, cursor: str | None) -> Answer:
        more = {} if cursor is None else {"last-event-id": cursor}
        return await self.ask_owner(url, workspace_id, from_scope(scope, more=more), again=True)

    async def send_own_stream(self, scope: Any, cursor: str | None, send: Send) -> None:
        if cursor is not None:
            scope = with_header(scope, "last-event-id", cursor)
        await self._routes(scope, wait_forever, send)

    async def wait_reachable(self, workspace_id: str) -> None:
        """Wait until the owner can be reached, or is this node."""
        while True:
            await asyncio.sleep(PROBE_S)
            self.owners.forget(workspace_id)
            with suppress(OSError, OwnedElsewhere, ServerLeaving, StoreUnavailable):
                url = await self.owners.locate(workspace_id)
                if url is not None:
                    await self._relay.probe(url)
                return

    @property
    def heartbeat_s(self) -> float:
        return self._heartbeat_s

    @property
    def leaving(self) -> bool:
        return self._node.leaving

    async def wait_leaving(self) -> None:
        await self._app.left.wait()


class _Unanswered(OwnerUnreachable):
    """The owner may have carried out the request."""


class _Misdirected(OwnerUnreachable):
    """The node that was asked is not the owner, or is leaving."""


class NotAccepted(Exception):
    """The request should be made again. `in_doubt`: it may have taken effect here, and its key tells the next owner."""

    def __init__(self, *, in_doubt: bool) -> None:
        super().__init__()
        self.in_doubt = in_doubt
