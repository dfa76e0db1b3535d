"""A session as a client at the wire has it: prompts, cancels, the ledger, the transcript, the stream byte by byte."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import msgspec
from cli_home import GIVE_UP_S

from longboat.wire.events import Event, decode_event
from longboat.wire.models import RunComplete
from longboat.wire.sse import Decoder


@dataclass(kw_only=True)
class Watch:
    """One stream: its frames as they came, byte for byte, and the events in them."""

    frames: list[bytes] = field(default_factory=list)
    """Logged ones only: a snapshot is each client's own, and a heartbeat says nothing."""
    events: list[Event] = field(default_factory=list)
    raw: bytearray = field(default_factory=bytearray)
    connected: bool = False
    closed: bool = False
    clean: bool = False
    """The server ended the stream as a stream should end."""
    _rest: bytes = b""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def feed(self, chunk: bytes) -> None:
        self.raw += chunk
        *frames, self._rest = (self._rest + chunk).split(b"\n\n")
        for frame in frames:
            self._take(frame + b"\n\n")
        self._notify()

    def connect(self) -> None:
        self.connected = True
        self._notify()

    def reconnect(self) -> None:
        """The next bytes are those of another connection: the rest of a broken frame will not come."""
        self._rest = b""

    def close(self) -> None:
        self.closed = True
        self._notify()

    @property
    def cursor(self) -> str:
        """Where the next connection goes on."""
        if self.frames:
            return cursor_of(self.frames[-1])
        snapshot = next(event.payload for event in self.events if event.type == "snapshot")
        return str(snapshot.cursor)

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    async def until(self, holds: Callable[[Event], bool]) -> Event:
        """The first event that is so, come or still to come."""
        seen = 0
        async with asyncio.timeout(GIVE_UP_S):
            while True:
                for event in self.events[seen:]:
                    if holds(event):
                        return event
                seen = len(self.events)
                assert not self.closed, f"the stream ended after {self.types}"
                await self._changed.wait()

    async def opened(self, *, snapshot: bool) -> None:
        async with asyncio.timeout(GIVE_UP_S):
            while not self.connected and not self.closed:
                await self._changed.wait()
        if snapshot:
            await self.until(lambda event: event.type == "snapshot")

    async def complete(self, run_id: str) -> RunComplete:
        """The run's terminal event."""
        event = await self.until(
            lambda event: isinstance(event.payload, RunComplete) and event.payload.run_id == run_id
        )
        complete: RunComplete = event.payload
        return complete

    async def state(self, run_id: str, state: str) -> None:
        """Until the run is told to be so."""
        await self.until(
            lambda event: event.type == "run" and (event.payload.run_id, event.payload.state) == (run_id, state)
        )

    async def text(self, wanted: str) -> None:
        """Until a delta holds the text."""
        await self.until(lambda event: event.type == "message_delta" and wanted in event.payload.text)

    async def end(self) -> None:
        async with asyncio.timeout(GIVE_UP_S):
            while not self.closed:
                await self._changed.wait()

    def _take(self, frame: bytes) -> None:
        for decoded in Decoder().decode(frame):
            event = decode_event(decoded.data, decoded.id)
            assert event is not None
            self.events.append(event)
            if decoded.id is not None:
                self.frames.append(frame)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def cursor_of(frame: bytes) -> str:
    return frame.partition(b"\n")[0].removeprefix(b"id: ").decode()


def shared(one: Watch, other: Watch) -> tuple[list[bytes], list[bytes]]:
    """What both streams have had time to show, which must be the same; neither may have a gap."""
    spans = [[int(cursor_of(frame).rpartition("/")[2]) for frame in watch.frames] for watch in (one, other)]
    for span in spans:
        assert span == list(range(span[0], span[-1] + 1)), f"numbers are missing or out of order: {span}"
    first, last = max(span[0] for span in spans), min(span[-1] for span in spans)
    mine, theirs = (
        watch.frames[first - span[0] : last - span[0] + 1] for watch, span in zip((one, other), spans, strict=True)
    )
    return mine, theirs


def terminal_events(events: Iterable[Event]) -> list[RunComplete]:
    return [event.payload for event in events if isinstance(event.payload, RunComplete)]


@dataclass
class SessionClient:
    """One client at one session."""

    http: httpx2.AsyncClient
    workspace: str
    session_id: str
    start: str
    """The cursor before anything happened in the session."""

    @classmethod
    async def create(cls, http: httpx2.AsyncClient, workspace: str) -> "SessionClient":
        created = await http.post(f"{workspace}/sessions", json={})
        assert created.status_code == 201, created.text
        session = cls(http, workspace, created.json()["id"], start="")
        session.start = await session.head()
        return session

    # Prompts and cancels

    async def ask(self, prompt: str, run_id: str | None = None, **more: Any) -> httpx2.Response:
        body = {"session_id": self.session_id, "prompt": prompt} | ({"run_id": run_id} if run_id else {}) | more
        return await self.http.post(f"{self.workspace}/agent", json=body)

    async def submit(self, prompt: str, run_id: str | None = None, **more: Any) -> str:
        """The run_id of a prompt that was accepted."""
        answer = await self.ask(prompt, run_id, **more)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["run_id"])

    async def cancel(self, key: str | None = None) -> list[str]:
        headers = {} if key is None else {"Idempotency-Key": key}
        answer = await self.http.post(f"{self.workspace}/agent/sessions/{self.session_id}/cancel", headers=headers)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["canceled"])

    async def cancel_run(self, run_id: str) -> dict[str, Any]:
        answer = await self.http.post(f"{self.workspace}/runs/{run_id}/cancel")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    # What is on record

    async def run(self, run_id: str, *, wait_s: float = 0) -> dict[str, Any]:
        answer = await self.http.get(f"{self.workspace}/runs/{run_id}", params={"wait": wait_s})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def outcome(self, run_id: str) -> str:
        """How the run ended, once it has."""
        run = await self.run(run_id, wait_s=GIVE_UP_S / 2)
        assert run["state"] == "finished", run
        return str(run["outcome"])

    async def ledger(self) -> list[dict[str, Any]]:
        """All runs of the session in order of accept."""
        items: list[dict[str, Any]] = []
        params: dict[str, Any] = {"session_id": self.session_id, "limit": 500}
        while True:
            page = (await self.http.get(f"{self.workspace}/runs", params=params)).json()
            items += page["items"]
            if page["next"] is None:
                return items[::-1]
            params["after"] = page["next"]

    async def messages(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        params: dict[str, Any] = {"limit": 500}
        while True:
            page = (await self.http.get(f"{self.workspace}/sessions/{self.session_id}/messages", params=params)).json()
            items += page["items"]
            if page["next"] is None:
                return items
            params["after"] = page["next"]

    async def transcript(self) -> list[tuple[str, str, str]]:
        """Role, text and finish reason of every message."""
        return [(message["role"], text_of(message), finish_of(message)) for message in await self.messages()]

    async def status(self) -> dict[str, Any]:
        return dict((await self.http.get(f"{self.workspace}/agent/sessions/{self.session_id}")).json())

    # The stream

    @asynccontextmanager
    async def watch(self, client_id: str = "watcher", *, after: str | None = None) -> AsyncIterator[Watch]:
        """A stream that is open: its snapshot, or the answer to its cursor, has come."""
        watch = Watch()
        task = asyncio.create_task(self._read(watch, client_id, after))
        try:
            await watch.opened(snapshot=after is None)
            yield watch
        finally:
            task.cancel()
            await asyncio.wait((task,))
            if not task.cancelled() and not isinstance(task.exception(), httpx2.TransportError | None):
                task.result()

    async def _read(self, watch: Watch, client_id: str, after: str | None) -> None:
        headers = {} if after is None else {"last-event-id": after}
        url = f"{self.workspace}/events?client_id={client_id}&answers=true"
        try:
            async with self.http.stream("GET", url, headers=headers) as answer:
                assert answer.status_code == 200, await answer.aread()
                watch.connect()
                async for chunk in answer.aiter_raw():
                    watch.feed(chunk)
                watch.clean = True
        finally:
            watch.close()

    async def head(self) -> str:
        """Where the log stands now."""
        async with self.watch("historian") as watch:
            return watch.cursor

    async def replay(self, after: str | None = None) -> Watch:
        """The log after a cursor, by default since the session began, up to where it stands now."""
        head = await self.head()
        if head == (after or self.start):
            return Watch()
        async with self.watch("historian", after=after or self.start) as watch:
            await watch.until(lambda event: event.cursor == head)
        return watch

    async def check_books(self) -> dict[str, str]:
        """Every run ended once, ledger and log agree, and the log rebuilds the transcript (E1, T5). The outcomes."""
        log = await self.replay()
        own = [event for event in log.events if getattr(event.payload, "session_id", None) == self.session_id]
        complete = terminal_events(own)
        outcomes = {run["run_id"]: run["outcome"] for run in await self.ledger()}
        assert Counter(event.run_id for event in complete) == dict.fromkeys(outcomes, 1)
        assert {event.run_id: event.outcome.value for event in complete} == outcomes
        shown = {message["id"]: message for message in await self.messages()}
        assert {key: text_of(message) for key, message in rebuild(own).items()} == {
            key: text_of(message) for key, message in shown.items()
        }
        assert (await self.status())["busy"] is False
        return outcomes


def text_of(message: dict[str, Any]) -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


def finish_of(message: dict[str, Any]) -> str:
    return "".join(part["reason"] for part in message["parts"] if part["type"] == "finish")


def rebuild(events: Iterable[Event]) -> dict[str, dict[str, Any]]:
    """The messages as a client has them that followed the stream; no delta may leave a gap or repeat."""
    messages: dict[str, dict[str, Any]] = {}
    for event in events:
        match event.type:
            case "message" if event.change == "deleted":
                del messages[event.payload.id]
            case "message":
                messages[event.payload.id] = msgspec.to_builtins(event.payload)
            case "message_delta":
                part = messages[event.payload.message_id]["parts"][event.payload.part]
                name = {"tool_call": "input", "tool_result": "content"}.get(part["type"], "text")
                assert event.payload.offset == len(part[name]), "a gap or a repeat"
                part[name] += event.payload.text
    return messages


def check_request(body: dict[str, Any]) -> list[tuple[str, str]]:
    """A model request that every provider takes; returns its roles and texts without the system prompt."""
    system, *messages = body["messages"]
    assert system["role"] == "system"
    waiting: list[str] = []
    for before, message in zip([system, *messages], messages, strict=False):
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, f"calls without a result: {waiting}"
        assert message["role"] != before["role"], "two of a kind in a row"
        assert message.get("content") or message.get("tool_calls"), "an empty message"
        waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert not waiting, f"calls without a result: {waiting}"
    assert messages[-1]["role"] in ("user", "tool")
    return [(message["role"], message["content"]) for message in messages]
