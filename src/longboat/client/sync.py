"""The sync client, twin of `aio` line by line. What is said and what it means is in `calls`, `tail`, `following`."""

import os
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import httpx2
import msgspec

from longboat.client import calls, transport
from longboat.client.address import find
from longboat.client.answers import error_from, may_pass
from longboat.client.calls import Call
from longboat.client.following import Next, Script, follow
from longboat.client.patience import Outage, Patience
from longboat.client.tail import Tail
from longboat.errors import LongboatError, RunNotFound, ServerUnreachable, WorkspaceClosing
from longboat.wire import models
from longboat.wire.events import Event
from longboat.wire.ids import new_id
from longboat.wire.requests import Approve, EditRun, Submit

T = TypeVar("T")


class SyncClient:
    """Talks to a Longboat server without asyncio: `with SyncClient() as client: …`.

    Without arguments it finds the user's own server (LONGBOAT_URL, LONGBOAT_SOCKET, or the discovery file). One client
    serves many threads and streams at once. Every refusal is raised as its class in `longboat.errors`. While
    a server that was there is away, calls that may be repeated wait for it: `on_outage` is called with the error when
    that begins, and with None when it is over.
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        token: str | None = None,
        socket: str | os.PathLike[str] | None = None,
        client_id: str | None = None,
        on_outage: Outage | None = None,
    ) -> None:
        self.client_id = client_id or new_id()
        self._find = partial(find, url=url, token=token, socket=socket)
        self.address = self._find()
        self._http = transport.open_sync(self.address)
        self._reached = False
        self._on_outage = on_outage

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Runs go on without us (B2)."""
        self._http.close()

    # -- watching

    def run(
        self,
        prompt: str,
        *,
        session_id: str | None = None,
        workspace_id: str | None = None,
        path: str | os.PathLike[str] | None = None,
        run_id: str | None = None,
        delivery: models.Delivery | None = None,
        model: str | None = None,
        attachments: Sequence[models.Attachment] = (),
        approve: Approve = Approve.ASK,
        give_up_after_s: float | None = 60.0,
    ) -> Generator[Event, None, None]:
        """Submit a prompt and yield the events of its run; the last one is its `run_complete`.

        Without `session_id` a session is created; without `workspace_id` the workspace is that of `path`, by default
        the working directory. With a `run_id` that is known there, it is that run in its session, and nothing new. A
        lost stream is taken up again; a server gone for `give_up_after_s` raises ServerUnreachable. Leaving early does
        not cancel the run: `cancel_run` does.
        """
        if workspace_id is None:
            workspace_id = (self._insist(calls.join(path or ".", self.client_id), give_up_after_s)).id
        if session_id is None:
            session_id = self._session_for(workspace_id, run_id, give_up_after_s)
        submit = Submit(
            session_id=session_id,
            prompt=prompt,
            run_id=run_id or new_id(),
            delivery=delivery,
            model=model,
            attachments=tuple(attachments),
            approve=approve,
            client_id=self.client_id,
        )
        script = follow(workspace_id, submit.session_id, submit.run_id or "", submit)
        with closing(self._play(script, workspace_id, session_id, give_up_after_s)) as events:
            yield from events

    def watch(
        self, workspace_id: str, run_id: str, *, give_up_after_s: float | None = 60.0
    ) -> Generator[Event, None, None]:
        """The events of a run that somebody submitted, from now to its `run_complete`, which may be the only one."""
        session_id = (self._insist(calls.get_run(workspace_id, run_id), give_up_after_s)).session_id
        script = follow(workspace_id, session_id, run_id)
        with closing(self._play(script, workspace_id, session_id, give_up_after_s)) as events:
            yield from events

    def _session_for(self, workspace_id: str, run_id: str | None, give_up_after_s: float | None) -> str:
        """The session of a run that is known; else a new one."""
        if run_id is not None:
            try:
                return (self._insist(calls.get_run(workspace_id, run_id), give_up_after_s)).session_id
            except RunNotFound:
                pass
        return (self._insist(calls.create_session(workspace_id), give_up_after_s)).id

    def _play(
        self, script: Script[None], workspace_id: str, session_id: str, give_up_after_s: float | None
    ) -> Generator[Event, None, None]:
        answer = None
        stream = self.events(workspace_id, session_id, give_up_after_s=give_up_after_s)
        with closing(stream) as events:
            while True:
                try:
                    step = script.send(answer)
                except StopIteration:
                    return
                answer = None
                match step:
                    case Event():
                        yield step
                    case Next():
                        answer = next(events)
                    case _:
                        answer = self._insist(step, give_up_after_s)

    def events(
        self,
        workspace_id: str,
        session_id: str | None = None,
        after: str | None = None,
        *,
        give_up_after_s: float | None = None,
    ) -> Generator[Event, None, None]:
        """The workspace's events, for ever: a lost stream is taken up again exactly where it broke.

        Starts with a `snapshot`, or right after the cursor `after`. `resync` says that the cursor is no longer in the
        log; a `snapshot` follows it.
        """
        tail, patience = Tail(after), Patience(give_up_after_s, on_outage=self._on_outage)
        while True:
            try:
                with closing(self._connection(workspace_id, session_id, tail)) as chunks:
                    for chunk in chunks:
                        patience.heard()
                        yield from tail.feed(chunk)
                lost: LongboatError = ServerUnreachable(f"The event stream of {self.address} ended.")
            except ServerUnreachable as error:
                lost = error
            self._pause(patience, lost)

    def _connection(self, workspace_id: str, session_id: str | None, tail: Tail) -> Generator[bytes, None, None]:
        call = calls.events(workspace_id, self.client_id, session_id)
        try:
            with self._http.stream(
                "GET", call.target, headers=tail.headers, timeout=transport.STREAM_TIMEOUT
            ) as response:
                self._reached = True
                if response.status_code != 200:
                    error = error_from(response.status_code, response.read())
                    raise ServerUnreachable(error.message) if may_pass(response.status_code, error) else error
                tail.connected()
                yield from response.iter_raw()
        except httpx2.TransportError as lost:
            raise transport.unreachable(self.address, lost) from lost

    # -- asking

    def _send(self, call: Call[T]) -> T:
        try:
            response = self._http.request(
                call.method, call.target, content=call.body, headers=call.headers, timeout=transport.timeout(call)
            )
        except httpx2.TransportError as lost:
            raise transport.unreachable(self.address, lost) from lost
        self._reached = True
        return call.read(response.status_code, response.content)

    def _insist(self, call: Call[T], give_up_after_s: float | None) -> T:
        """Send, and send again while the server is away, if the call bears it."""
        patience = Patience(give_up_after_s, on_outage=self._on_outage)
        while True:
            try:
                answer = self._send(call)
            except (ServerUnreachable, WorkspaceClosing) as lost:
                if not call.repeatable:
                    raise
                self._pause(patience, lost)
            else:
                patience.heard()
                return answer

    def _pause(self, patience: Patience, lost: LongboatError) -> None:
        """Wait before the next try. A server that was discovered may have come back at another address."""
        if not self._reached:  # more likely a wrong address than an outage
            raise lost
        time.sleep(patience.lost(lost))
        found = self._find()
        if found != self.address:
            old, self.address, self._http = self._http, found, transport.open_sync(found)
            old.close()

    # -- the server

    def health(self) -> models.Health:
        return self._send(calls.health())

    def version(self) -> models.Version:
        return self._send(calls.version())

    def shutdown(self, *, if_idle: bool = False) -> None:
        """Stop the server; with `if_idle`, only if no run is unfinished (ServerBusy otherwise)."""
        self._send(calls.shutdown(if_idle=if_idle))

    # -- workspaces

    def workspaces(self) -> models.WorkspacePage:
        return self._send(calls.workspaces())

    def join(self, path: str | os.PathLike[str]) -> models.Workspace:
        """Create the workspace of a directory, or join it."""
        return self._send(calls.join(path, self.client_id))

    def workspace(self, workspace_id: str) -> models.Workspace:
        return self._send(calls.workspace(workspace_id))

    def release(self, workspace_id: str) -> None:
        """Give up this client's claim on the workspace."""
        self._send(calls.release(workspace_id, self.client_id))

    def drop_client(self, client_id: str) -> None:
        """Drop every claim of a client, this one's or another's."""
        self._send(calls.drop_client(client_id))

    def agent(self, workspace_id: str) -> models.AgentInfo:
        return self._send(calls.agent(workspace_id))

    # -- sessions

    def create_session(self, workspace_id: str, title: str = "") -> models.Session:
        return self._send(calls.create_session(workspace_id, title))

    def sessions(self, workspace_id: str, *, limit: int = 100, after: str | None = None) -> models.SessionPage:
        """Newest first; `after` is the `next` of the former page."""
        return self._send(calls.sessions(workspace_id, limit=limit, after=after))

    def session(self, workspace_id: str, session_id: str) -> models.Session:
        return self._send(calls.session(workspace_id, session_id))

    def rename_session(self, workspace_id: str, session_id: str, title: str) -> models.Session:
        return self._send(calls.rename_session(workspace_id, session_id, title))

    def delete_session(self, workspace_id: str, session_id: str) -> None:
        """Cancel its runs, then delete it."""
        self._send(calls.delete_session(workspace_id, session_id))

    def messages(
        self, workspace_id: str, session_id: str, *, limit: int = 100, after: str | None = None
    ) -> models.MessagePage:
        """The transcript, oldest first."""
        return self._send(calls.messages(workspace_id, session_id, limit=limit, after=after))

    def session_status(self, workspace_id: str, session_id: str) -> models.SessionStatus:
        return self._send(calls.session_status(workspace_id, session_id))

    def queued(self, workspace_id: str, session_id: str) -> models.RunPage:
        return self._send(calls.queued(workspace_id, session_id))

    def clear_queue(self, workspace_id: str, session_id: str) -> models.Canceled:
        """Cancel what is queued; the active run goes on."""
        return self._send(calls.clear_queue(workspace_id, session_id))

    def cancel_session(self, workspace_id: str, session_id: str) -> models.Canceled:
        """Cancel everything accepted so far in the session."""
        return self._send(calls.cancel_session(workspace_id, session_id))

    # -- runs

    def submit(self, workspace_id: str, request: Submit) -> models.Accepted:
        """Hand in a prompt and return as soon as it is durable."""
        if request.client_id is None:
            request = msgspec.structs.replace(request, client_id=self.client_id)
        return self._send(calls.submit(workspace_id, request))

    def runs(
        self,
        workspace_id: str,
        *,
        state: models.RunState | None = None,
        session_id: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> models.RunPage:
        """The ledger, newest first."""
        call = calls.runs(workspace_id, state=state, session_id=session_id, limit=limit, after=after)
        return self._send(call)

    def get_run(self, workspace_id: str, run_id: str, *, wait_s: float = 0) -> models.Run:
        """One run; with `wait_s`, answered when it is finished or that time has passed."""
        return self._send(calls.get_run(workspace_id, run_id, wait_s=wait_s))

    def cancel_run(self, workspace_id: str, run_id: str) -> models.Run:
        """Cancel one run in whatever state it is; TooLate if it was folded and already sent to the model."""
        return self._send(calls.cancel_run(workspace_id, run_id))

    def edit_run(
        self,
        workspace_id: str,
        run_id: str,
        *,
        prompt: str | None = None,
        delivery: models.Delivery | None = None,
    ) -> models.Run:
        """Change a run that has not started."""
        return self._send(calls.edit_run(workspace_id, run_id, EditRun(prompt=prompt, delivery=delivery)))
