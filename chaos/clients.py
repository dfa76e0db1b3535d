"""Clients that do what people and programs do, all at once, and write down what they sent and what they were told.

What a client does next is drawn from its own seed; what comes of it depends on who is faster.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import msgspec

from chaos.evidence import NO_ANSWER, Exchange, Json
from chaos.plan import Kind, Step, call_command, command_of, encode

AGAIN_S = 0.1
MAX_SESSIONS = 5
"""Per workspace, for prompts; older ones are left alone."""
LONG_QUEUE = 6
IMPORTED = "Imported by chaos"
"""The title of imported sessions."""
UNKEPT = ("look", "export", "import")
"""Kinds of requests whose content no one checks, and which would fill the memory."""
KINDS = {
    Kind.SAY: 8,
    Kind.SAY_SLOWLY: 6,
    Kind.BASH: 10,
    Kind.BASH_LONG: 3,
    Kind.BASH_STUBBORN: 2,
    Kind.JOB: 2,
    Kind.WRITE: 8,
    Kind.QUESTION: 4,
    Kind.AGENT: 2,
}
LAST = {Kind.SAY: 12, Kind.REFUSED: 1, Kind.BROKEN: 1}
TYPED = (Kind.BASH, Kind.BASH, Kind.BASH_LONG, Kind.BASH_STUBBORN)
"""Commands of people."""


@dataclass
class Workspace:
    """What the clients of a workspace share: where it is, and what there is to act upon."""

    name: str
    route: str
    nodes: Sequence[str] = ()
    """Where it may be moved."""
    sessions: list[str] = field(default_factory=list)
    runs: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=30))
    """The newest runs, each with its session."""
    submits: deque[Json] = field(default_factory=lambda: deque(maxlen=10))
    """The newest prompts with a run_id of their own."""
    cancels: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=10))
    """The newest cancels of sessions that have a key: session and key."""

    @property
    def workspace_id(self) -> str:
        return self.route.rpartition("/")[2]

    @property
    def events(self) -> str:
        return f"{self.route}/events"

    def add_session(self, session_id: str) -> None:
        self.sessions = [*self.sessions, session_id][-MAX_SESSIONS:]


class Client:
    def __init__(
        self,
        doors: Sequence[httpx2.AsyncClient],
        workspace: Workspace,
        name: str,
        *,
        seed: str,
        record: Callable[[Exchange], None],
        pause_s: float,
    ) -> None:
        self.name = name
        self._doors = doors
        self._workspace = workspace
        self._random = random.Random(f"{seed}/{name}")
        self._record = record
        self._pause_s = pause_s
        self._prompts = 0
        self._actions: dict[Callable[[], Awaitable[None]], int] = {
            self._submit: 30,
            self._repeat: 4,
            self._repeat_cancel: 3,
            self._answer: 22,
            self._cancel_run: 8,
            self._cancel_session: 5,
            self._clear: 3,
            self._edit: 5,
            self._undo: 4,
            self._redo: 3,
            self._fork: 2,
            self._copy: 1,
            self._summarize: 2,
            self._shell: 4,
            self._kill_job: 2,
            self._create: 3,
            self._delete: 1,
            self._look: 3,
        }
        if workspace.nodes:
            self._actions[self._move] = 4

    async def work(self, over: asyncio.Event) -> None:
        """Act until it is over. What was begun is ended, for nothing may happen that is not on record."""
        while not over.is_set():
            (action,) = self._random.choices(list(self._actions), list(self._actions.values()))
            await action()
            await asyncio.sleep(self._random.uniform(0, self._pause_s))

    async def ask(self, kind: str, method: str, path: str, body: Json | None = None, **about: str) -> Exchange:
        """Send a request, and put it on record with whatever came of it."""
        headers = {"idempotency-key": key} if (key := about.get("key", "")) else {}
        door = self._random.choice(self._doors)
        sent_at, status, answer = time.time(), NO_ANSWER, {}
        client = about.pop("client", self.name)
        try:
            reply = await door.request(method, self._workspace.route + path, json=body, headers=headers)
            status, answer = reply.status_code, _json(reply)
        except httpx2.TimeoutException:
            answer = {"timeout": True}
        except httpx2.TransportError:
            await asyncio.sleep(AGAIN_S)
        if status == 404 and about.get("session_id") in self._workspace.sessions:
            self._workspace.sessions.remove(about["session_id"])
        exchange = Exchange(
            client=client,
            kind=kind,
            workspace=self._workspace.name,
            **about,
            body=body or {},
            sent_at=sent_at,
            ended_at=time.time(),
            status=status,
            answer=answer,
        )
        self._record(replace(exchange, body={}, answer={}) if kind in UNKEPT and status < 300 and status else exchange)
        return exchange

    # Also for whoever brings things to their end

    async def submit(self, session_id: str, prompt: str) -> Exchange:
        body: Json = {"session_id": session_id, "prompt": prompt, "approve": "all"}
        return await self.ask("submit", "POST", "/agent", body, session_id=session_id)

    async def cancel(self, session_id: str, key: str = "") -> None:
        path = f"/agent/sessions/{session_id}/cancel"
        await self.ask("cancel_session", "POST", path, session_id=session_id, key=key)

    async def deny(self, kind: str, ask: Json) -> None:
        await self._say(kind, ask, "deny" if kind == "permissions" else ["neither"], self.name)

    # Prompts

    async def _submit(self) -> None:
        if (session_id := self._session()) is None:
            return await self._create()
        self._prompts += 1
        own_id = self._random.random() < 0.6
        prompt = call_command(self._plan()) if self._random.random() < 0.15 else self._plan()
        body: Json = {"session_id": session_id, "prompt": prompt, "client_id": self.name}
        body["approve"] = "ask" if self._random.random() < 0.4 else "all"
        if own_id:
            body["run_id"] = f"{self.name}.{self._prompts}"
        if self._random.random() < 0.4:
            body["delivery"] = self._random.choice(["steer", "queue"])
        done = await self.ask("submit", "POST", "/agent", body, session_id=session_id, key=body.get("run_id", ""))
        if own_id:
            self._workspace.submits.append(body)
        if done.status == 202:
            self._workspace.runs.append((done.answer["run_id"], session_id))
            if (done.answer["position"] or 0) > LONG_QUEUE:
                await self.cancel(session_id)
        return None

    def _plan(self) -> str:
        kinds = self._random.choices(list(KINDS), list(KINDS.values()), k=self._random.randint(0, 3))
        kinds += self._random.choices(list(LAST), list(LAST.values()))
        steps = [Step(kind, f"{self.name}.{self._prompts}.{place}.{kind}") for place, kind in enumerate(kinds)]
        return f"Prompt {self._prompts} of {self.name}: {encode(steps)}"

    async def _repeat(self) -> None:
        """As a client does that did not hear the answer."""
        if self._workspace.submits:
            body = self._random.choice(self._workspace.submits)
            where = {"session_id": body["session_id"], "key": body["run_id"]}
            await self.ask("repeat", "POST", "/agent", body, **where)

    async def _edit(self) -> None:
        if self._workspace.runs:
            run_id, session_id = self._random.choice(self._workspace.runs)
            self._prompts += 1
            body = self._random.choice([{"prompt": self._plan()}, {"delivery": "steer"}, {"delivery": "queue"}])
            await self.ask("edit", "PATCH", f"/runs/{run_id}", body, session_id=session_id, run_id=run_id)

    async def _summarize(self) -> None:
        if session_id := self._session():
            await self.ask("summarize", "POST", f"/sessions/{session_id}/summarize", {}, session_id=session_id)

    async def _shell(self) -> None:
        if session_id := self._session():
            self._prompts += 1
            kind = self._random.choice(TYPED)
            body = {"command": command_of(Step(kind, f"{self.name}.{self._prompts}.shell.{kind}"))}
            await self.ask("shell", "POST", f"/sessions/{session_id}/shell", body, session_id=session_id)

    # Cancels

    async def _cancel_run(self) -> None:
        if self._workspace.runs:
            run_id, session_id = self._random.choice(self._workspace.runs)
            await self.ask("cancel_run", "POST", f"/runs/{run_id}/cancel", session_id=session_id, run_id=run_id)

    async def _cancel_session(self) -> None:
        if session_id := self._session():
            key = ""
            if self._random.random() < 0.5:
                self._prompts += 1
                key = f"{self.name}.cancel.{self._prompts}"
                self._workspace.cancels.append((session_id, key))
            await self.cancel(session_id, key)

    async def _repeat_cancel(self) -> None:
        """As a client does that did not hear the answer."""
        if self._workspace.cancels:
            await self.cancel(*self._random.choice(self._workspace.cancels))

    async def _clear(self) -> None:
        if session_id := self._session():
            await self.ask("clear", "POST", f"/agent/sessions/{session_id}/prompts/clear", session_id=session_id)

    async def _kill_job(self) -> None:
        jobs = await self.ask("look", "GET", "/jobs")
        for job in jobs.answer.get("items", ())[:1]:
            await self.ask("kill_job", "POST", f"/jobs/{job['id']}/kill")

    # Asks

    async def _answer(self) -> None:
        """One of the asks that wait; now and then two clients do so at once, or one answers while another cancels."""
        kind = self._random.choice(["permissions", "permissions", "questions"])
        listed = await self.ask("look", "GET", f"/{kind}")
        if not listed.answer.get("items"):
            return
        ask = self._random.choice(listed.answer["items"])
        answers: list[Any] = (
            [["this"], ["that"], ["neither"]] if kind == "questions" else ["once", "once", "once", "deny", "session"]
        )
        sending = [self._say(kind, ask, self._random.choice(answers), self.name)]
        chance = self._random.random()
        if chance < 0.3:
            sending.append(self._say(kind, ask, self._random.choice(answers), f"{self.name}.twin"))
        elif chance < 0.4:
            where = {"session_id": ask["session_id"], "run_id": ask["run_id"]}
            sending.append(self.ask("cancel_run", "POST", f"/runs/{ask['run_id']}/cancel", **where))
        await asyncio.gather(*sending)

    def _say(self, kind: str, ask: Json, answer: Any, client: str) -> Awaitable[Exchange]:
        body = {"answer": answer, "client_id": client}
        return self.ask("answer", "POST", f"/{kind}/{ask['id']}", body, ask_id=ask["id"], client=client)

    # Sessions

    async def _create(self) -> None:
        done = await self.ask("create", "POST", "/sessions", {})
        if done.status == 201:
            self._workspace.add_session(done.answer["id"])

    async def _delete(self) -> None:
        if session_id := self._session():
            await self.ask("delete", "DELETE", f"/sessions/{session_id}", session_id=session_id)

    async def _undo(self) -> None:
        if session_id := self._session():
            await self.ask("undo", "POST", f"/sessions/{session_id}/undo", session_id=session_id)

    async def _redo(self) -> None:
        if session_id := self._session():
            await self.ask("redo", "POST", f"/sessions/{session_id}/redo", session_id=session_id)

    async def _fork(self) -> None:
        if session_id := self._session():
            done = await self.ask("fork", "POST", f"/sessions/{session_id}/fork", {}, session_id=session_id)
            if done.status == 202:
                self._workspace.add_session(done.answer["id"])

    async def _copy(self) -> None:
        """Export a session and import it again."""
        if (session_id := self._session()) is None:
            return
        found = await self.ask("export", "GET", f"/sessions/{session_id}/export", session_id=session_id)
        if found.status == 200:
            document = found.answer
            document["session"]["title"] = IMPORTED
            done = await self.ask("import", "POST", "/sessions/import", document)
            if done.status == 201:
                self._workspace.add_session(done.answer["id"])

    async def _move(self) -> None:
        body = {"node": self._random.choice(self._workspace.nodes), "force": self._random.random() < 0.7}
        await self.ask("move", "POST", "/move", body)

    async def _look(self) -> None:
        if session_id := self._session():
            await self.ask("look", "GET", f"/sessions/{session_id}/messages?limit=20", session_id=session_id)
            await self.ask("look", "GET", f"/agent/sessions/{session_id}/prompts/queued", session_id=session_id)

    def _session(self) -> str | None:
        return self._random.choice(self._workspace.sessions) if self._workspace.sessions else None


def _json(reply: httpx2.Response) -> Json:
    try:
        value = msgspec.json.decode(reply.content) if reply.content else {}
    except msgspec.DecodeError:
        value = reply.text
    return value if isinstance(value, dict) else {"value": value}
