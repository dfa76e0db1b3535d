"""The async client. Owns connections; `calls`, `methods`, `tail` and `following` say what to send and what responses
mean. The sync client, `sync.py`, is generated from this file: run `make generate` after a change."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, aclosing
from functools import partial
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2

from longboat.client import calls, methods, transport
from longboat.client.address import Address, find
from longboat.client.answers import error_from, may_pass
from longboat.client.call import Call
from longboat.client.following import Next, Open
from longboat.client.inbox import InboxTail
from longboat.client.methods import EventProcedure, documented
from longboat.client.reconnection import Outage, Reconnection
from longboat.client.tail import StreamTail, Tail
from longboat.errors import (
    LongboatError,
    OwnedElsewhere,
    OwnerLost,
    OwnerUnreachable,
    ServerLeaving,
    ServerUnreachable,
    Unavailable,
    WorkspaceClosing,
)
from longboat.wire import models
from longboat.wire.events import Event
from longboat.wire.ids import new_id
from longboat.wire.inbox import InboxEvent

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E")
Lost = tuple[type[LongboatError], ...]

AWAY: Lost = (ServerUnreachable, WorkspaceClosing, ServerLeaving, OwnedElsewhere, OwnerUnreachable, OwnerLost)
"""What the next server may answer: of one server after its restart, or of several."""


def request_method(make: Callable[P, Call[T]]) -> Callable[Concatenate["Client", P], Coroutine[Any, Any, T]]:
    """Make a method that sends one request."""

    async def ask(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._send(make(*args, **kwargs))

    return documented(ask, make, leaving_out=0)


def named_request_method(
    make: Callable[Concatenate[str, P], Call[T]],
) -> Callable[Concatenate["Client", P], Coroutine[Any, Any, T]]:
    """Make a method that sends one request with this client's name."""

    async def ask(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._send(make(self.client_id, *args, **kwargs))

    return documented(ask, make, leaving_out=1)


def event_method(make: Callable[P, EventProcedure]) -> Callable[Concatenate["Client", P], AsyncGenerator[Event, None]]:
    """Make a method that carries out a procedure and yields its events."""

    def carry_out(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[Event, None]:
        return self._carry_out(make(*args, **kwargs))

    return documented(carry_out, make, leaving_out=0)


def named_event_method(
    make: Callable[Concatenate[str, P], EventProcedure],
) -> Callable[Concatenate["Client", P], AsyncGenerator[Event, None]]:
    """Make a method that carries out a procedure with this client's name and yields its events."""

    def carry_out(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[Event, None]:
        return self._carry_out(make(self.client_id, *args, **kwargs))

    return documented(carry_out, make, leaving_out=1)


def _open(address: Address) -> httpx2.AsyncClient:
    """Open the connections. Proxies of the environment apply only if the server is on another machine."""
    if transport.is_remote(address):
        return httpx2.AsyncClient(base_url=address.base_url, headers=address.headers, limits=transport.LIMITS)
    pool = httpx2.AsyncHTTPTransport(uds=address.socket, verify=transport.needs_tls(address), limits=transport.LIMITS)
    return httpx2.AsyncClient(base_url=address.base_url, headers=address.headers, transport=pool, trust_env=False)


class Client:
    """Talks to a Longboat server from asyncio: `async with Client() as client: …`.

    Without arguments it finds your own server (LONGBOAT_URL, LONGBOAT_SOCKET, or the discovery file). One client can
    serve many tasks and streams at once. Each error of the server raises its class in `longboat.errors`. If a server
    that was reachable goes away, calls that are safe to repeat wait for it. `on_outage` is called with the error when
    an outage begins, again if the server turns out to have been stopped, and with None when the outage is over. Set
    `answers` if someone can answer the agent's questions at this client while it streams events or the inbox.
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        token: str | None = None,
        socket: str | os.PathLike[str] | None = None,
        client_id: str | None = None,
        answers: bool = False,
        on_outage: Outage | None = None,
    ) -> None:
        self.client_id = client_id or new_id()
        self.answers = answers
        self._find = partial(find, url=url, token=token, socket=socket)
        self.address = self._find()
        self._http = _open(self.address)
        self._reached = False
        self.on_outage = on_outage

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. Runs continue (B2)."""
        await self._http.aclose()

    # -- watching

    run = named_event_method(methods.run)
    watch = event_method(methods.watch)

    def events(
        self,
        workspace_id: str,
        session_id: str | None = None,
        after: str | None = None,
        *,
        give_up_after_s: float | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Yield the workspace's events without end; after a lost connection, resume exactly where it broke.

        Starts with a `snapshot`, or right after the cursor `after`. If the cursor is no longer in the log, yields
        `resync` and then a `snapshot`.
        """
        return self._follow(
            calls.events(workspace_id, self.client_id, session_id, answers=self.answers),
            Tail(after),
            self._reconnection(give_up_after_s),
        )

    def inbox_events(self, *, give_up_after_s: float | None = None) -> AsyncGenerator[InboxEvent, None]:
        """Yield the inbox without end: its first page, then every change. After an outage, yields the first page again.
        `longboat.client.inbox.InboxMirror` keeps a copy of the inbox. Does not report outages to `on_outage`."""
        call = calls.inbox_events(self.client_id, answers=self.answers)
        return self._follow(call, InboxTail(), Reconnection(give_up_after_s))

    async def _follow(
        self, call: Call[None], tail: StreamTail[E], reconnection: Reconnection
    ) -> AsyncGenerator[E, None]:
        while True:
            try:
                async with aclosing(self._connection(call, tail)) as chunks:
                    async for chunk in chunks:
                        reconnection.heard()
                        for event in tail.feed(chunk):
                            yield event
                lost: LongboatError = ServerUnreachable(f"The event stream of {self.address} ended.")
            except ServerUnreachable as error:
                lost = error
            await self._pause(reconnection, lost)

    async def _connection(self, call: Call[None], tail: StreamTail[E]) -> AsyncGenerator[bytes, None]:
        try:
            async with self._http.stream(
                "GET", call.target, headers=tail.headers, timeout=transport.STREAM_TIMEOUT
            ) as response:
                self._reached = True
                if response.status_code != 200:
                    error = error_from(response.status_code, await response.aread())
                    raise ServerUnreachable(error.message) if may_pass(response.status_code, error) else error
                tail.connected()
                async for chunk in response.aiter_raw():
                    yield chunk
        except httpx2.TransportError as lost:
            raise transport.unreachable(self.address, lost, known=self._reached) from lost

    async def _carry_out(self, wanted: EventProcedure) -> AsyncGenerator[Event, None]:
        procedure, step = wanted.procedure, next(wanted.procedure)
        events: AsyncGenerator[Event, None]
        async with AsyncExitStack() as opened:
            while True:
                answer: Any = None
                refusal: LongboatError | None = None
                try:
                    match step:
                        case Event():
                            yield step
                        case Open(workspace_id=workspace_id, session_id=session_id):
                            await opened.aclose()
                            stream = self.events(workspace_id, session_id, give_up_after_s=wanted.give_up_after_s)
                            events = await opened.enter_async_context(aclosing(stream))
                        case Next():
                            answer = await anext(events)
                        case Call():
                            answer = await self._retry(step, self._reconnection(wanted.give_up_after_s))
                except LongboatError as error:
                    refusal = error
                try:
                    step = procedure.send(answer) if refusal is None else procedure.throw(refusal)
                except StopIteration:
                    return

    # -- asking

    async def _send(self, call: Call[T]) -> T:
        try:
            response = await self._http.request(
                call.method, call.target, content=call.body, headers=call.headers, timeout=transport.timeout(call)
            )
        except httpx2.TransportError as lost:
            raise transport.unreachable(self.address, lost, known=self._reached) from lost
        self._reached = True
        return call.read(response.status_code, response.content)

    async def _retry(self, call: Call[T], reconnection: Reconnection, passing: Lost = AWAY) -> T:
        """Send the call; while the server is away, send it again if it is repeatable."""
        while True:
            try:
                answer = await self._send(call)
            except passing as lost:
                if not call.repeatable:
                    raise
                call = call.repeated()
                await self._pause(reconnection, lost)
            else:
                reconnection.heard()
                return answer

    async def _pause(self, reconnection: Reconnection, lost: LongboatError) -> None:
        """Wait before the next try. A server found by discovery may have come back at another address."""
        if not self._reached:  # more likely a wrong address than an outage
            raise lost
        await asyncio.sleep(reconnection.lost(transport.parting(self.address, lost)))
        found = self._find()
        if found != self.address:
            old, self.address, self._http = self._http, found, _open(found)
            await old.aclose()

    def _reconnection(self, give_up_after_s: float | None) -> Reconnection:
        return Reconnection(give_up_after_s, on_outage=self.on_outage)

    # -- one request each: `calls` and `methods` have the docstrings

    health = request_method(calls.health)
    ready = request_method(calls.ready)
    version = request_method(calls.version)
    nodes = request_method(calls.nodes)
    shutdown = request_method(calls.shutdown)
    open_web = request_method(calls.open_web)
    providers = request_method(calls.providers)
    check_provider = request_method(calls.check_provider)
    connect_provider = request_method(calls.connect_provider)
    forget_provider = request_method(calls.forget_provider)

    workspaces = request_method(calls.workspaces)
    join = named_request_method(methods.join)
    workspace = request_method(calls.workspace)
    move_workspace = request_method(calls.move_workspace)
    release = named_request_method(methods.release)
    drop_client = request_method(calls.drop_client)
    agent = request_method(calls.agent)
    offered_models = request_method(calls.offered_models)

    create_session = request_method(calls.create_session)
    sessions = request_method(calls.sessions)
    session = request_method(calls.session)
    rename_session = request_method(calls.rename_session)
    mark_session = request_method(calls.mark_session)
    search_sessions = request_method(calls.search_sessions)
    delete_session = request_method(calls.delete_session)
    messages = request_method(calls.messages)
    todos = request_method(calls.todos)
    session_status = request_method(calls.session_status)
    queued = request_method(calls.queued)
    fork_session = request_method(calls.fork_session)
    summarize_session = named_request_method(methods.summarize_session)
    export_session = request_method(calls.export_session)
    export_text = request_method(calls.export_text)
    import_session = request_method(methods.import_session)
    undo = request_method(calls.undo)
    redo = request_method(calls.redo)
    revert = named_request_method(methods.revert)
    redo_revert = named_request_method(methods.redo_revert)

    submit = named_request_method(methods.submit)
    shell = named_request_method(methods.shell)
    runs = request_method(calls.runs)
    get_run = request_method(calls.get_run)
    edit_run = request_method(methods.edit_run)

    permissions = request_method(calls.permissions)
    answer_permission = named_request_method(methods.answer_permission)
    questions = request_method(calls.questions)
    answer_question = named_request_method(methods.answer_question)

    inbox = named_request_method(methods.inbox)
    mark_seen = named_request_method(methods.mark_seen)
    push_info = request_method(calls.push_info)
    subscribe_push = named_request_method(methods.subscribe_push)
    unsubscribe_push = request_method(calls.unsubscribe_push)

    jobs = request_method(calls.jobs)
    job = request_method(calls.job)
    kill_job = named_request_method(methods.kill_job)
    mcp = request_method(calls.mcp)
    mcp_login = request_method(calls.mcp_login)
    lsp = request_method(calls.lsp)
    skills = request_method(calls.skills)
    files = request_method(calls.files)
    search = request_method(calls.search)
    diff = request_method(calls.diff)
    session_timeline = request_method(calls.session_timeline)
    model_requests = request_method(calls.model_requests)
    model_request = request_method(calls.model_request)
    changes = request_method(calls.changes)
    file_text = request_method(calls.file_text)
    welcome = request_method(calls.welcome)
    session_usage = request_method(calls.session_usage)
    stats = request_method(calls.stats)

    async def cancel_run(self, workspace_id: str, run_id: str, *, give_up_after_s: float = 0) -> models.Run:
        """Cancel one run in any state. Raises TooLate if the run was folded and already sent to the model. While the
        server is away or cannot write, tries again for up to `give_up_after_s` seconds."""
        return await self._send_with_retry(calls.cancel_run(workspace_id, run_id, self.client_id), give_up_after_s)

    async def cancel_session(
        self, workspace_id: str, session_id: str, *, give_up_after_s: float = 0
    ) -> models.Canceled:
        """Cancel everything accepted so far in a session. Does nothing if the session is idle. Tries again like
        `cancel_run`, and cancels nothing that was accepted in between."""
        return await self._send_with_retry(
            calls.cancel_session(workspace_id, session_id, self.client_id), give_up_after_s
        )

    async def clear_queue(self, workspace_id: str, session_id: str, *, give_up_after_s: float = 0) -> models.Canceled:
        """Cancel the waiting runs of a session, but not the active one. Tries again like `cancel_session`."""
        return await self._send_with_retry(calls.clear_queue(workspace_id, session_id, self.client_id), give_up_after_s)

    async def _send_with_retry(self, call: Call[T], give_up_after_s: float) -> T:
        return await self._retry(call, Reconnection(give_up_after_s), (*AWAY, Unavailable))
