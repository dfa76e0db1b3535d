"""A coding task from prompt to end: a real git repository, a whole Longboat, a scripted model, two who watch.

async with open_scenario(tmp_path, [[call("view", path="a.py")], [Say("Seen.")]], files={"a.py": "x = 1\\n"}) as scene:
    await scene.turn("look")
    await scene.check()
"""

import hashlib
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checks import check_ends, check_requests, check_transcript, finish_of, replayed
from running_app import RunningApp, Watcher, launch, watch
from wire_rules import check_openai, check_wires

from longboat.config.load import user_config_file
from longboat.config.trust import record, trusted_file
from longboat.models.openai_request import encode_request
from longboat.models.protocol import ModelRequest
from longboat.runtime.workspace.workspace import Workspace
from longboat.testing import CallTool, ScriptedModel, Step
from longboat.testing.scripted import last_prompt
from longboat.tools.protocol import Tool
from longboat.wire.asks import Permission, PermissionAnswer
from longboat.wire.models import Message, Outcome, Role, RunComplete, TextPart, ToolResultPart
from longboat.wire.requests import AnswerPermission, Approve
from longboat.wire.sse import Decoder

PLAIN: dict[str, Any] = {
    "titles": False,
    "retry": {"base_s": 0, "attempts": 3},
    # A server that happens to be installed would be started by every file that is read.
    "lsp": {name: {"enabled": False} for name in ("basedpyright", "pyright", "pylsp")},
}
WINDOW = 100_000


def call(name: str, /, **arguments: Any) -> CallTool:
    return CallTool(name, json.dumps(arguments))


class Parts:
    """Several models in one: each session's first prompt says which steps are its own."""

    def __init__(self, parts: Mapping[str, Sequence[Step]]) -> None:
        self._parts = {prompt: list(steps) for prompt, steps in parts.items()}

    def __call__(self, request: ModelRequest) -> Step:
        first = next(message for message in request.messages if message.role is Role.USER)
        prompt = "".join(part.text for part in first.parts if isinstance(part, TextPart))
        return self._parts[prompt].pop(0)


@dataclass
class Scene:
    running: RunningApp
    model: ScriptedModel
    other: Watcher
    """A second client, attached from the beginning."""

    @property
    def path(self) -> Path:
        return self.running.workspace.directory

    @property
    def workspace(self) -> Workspace:
        return self.running.workspace

    @property
    def watcher(self) -> Watcher:
        return self.running.watcher

    # What people do

    async def turn(self, prompt: str, run_id: str = "r1", *, ask: bool = False, **more: Any) -> RunComplete:
        """A prompt seen through to its end."""
        await self.start(prompt, run_id, ask=ask, **more)
        return await self.running.completed(run_id)

    async def start(self, prompt: str, run_id: str = "r1", *, ask: bool = False, **more: Any) -> None:
        await self.running.submit(prompt, run_id, approve=Approve.ASK if ask else Approve.ALL, **more)

    async def asked(self, nth: int = 1) -> Permission:
        """The nth permission that was asked for."""
        found: dict[str, Permission] = {}

        def is_there(event: Any) -> bool:
            if event.type == "permission_request":
                found[event.payload.id] = event.payload
            return len(found) >= nth

        await self.watcher.until(is_there)
        return list(found.values())[nth - 1]

    async def answer(self, ask: Permission, answer: PermissionAnswer, **more: Any) -> None:
        request = AnswerPermission(answer=answer, client_id=more.pop("by", "watcher"), **more)
        await self.workspace.asks.answer_permission(ask.id, request)

    async def cancel(self, run_id: str = "r1") -> RunComplete:
        await self.workspace.cancel_session(self.running.session_id)
        return await self.running.completed(run_id)

    async def showing(self, text: str) -> str:
        """All live output of tools, once it has this in it."""
        await self.watcher.until(lambda _: text in self.shown())
        return self.shown()

    # What there is

    def shown(self) -> str:
        """What tools have shown while they ran."""
        results = {message.id for message in self.watcher.of("message") if message.role is Role.TOOL}
        return "".join(delta.text for delta in self.watcher.of("message_delta") if delta.message_id in results)

    def read(self, name: str) -> str:
        return (self.path / name).read_text()

    def git(self, *arguments: str) -> str:
        return git(self.path, *arguments)

    def results(self) -> list[ToolResultPart]:
        """The finished results of all calls of all sessions, in order."""
        last: dict[str, Message] = {message.id: message for message in self.watcher.of("message")}
        parts = [part for message in last.values() for part in message.parts]
        return [part for part in parts if isinstance(part, ToolResultPart) and part.finished]

    def fine(self) -> list[str]:
        """The contents of all results, none of which is an error."""
        assert [part for part in self.results() if part.is_error] == []
        return [part.content for part in self.results()]

    # What must hold at the end

    async def check(self) -> None:
        """One end for every run, the same events for everybody, transcripts that providers take. Before any undo."""
        await check_ends(self.running)
        for session in (await self.workspace.ledger.sessions(limit=500, after=None)).items:
            await self._check_session(session.id)
        check_requests(self.model.requests)
        for request in self.model.requests:
            check_openai(json.loads(encode_request(request, model="m")))
        await self._check_streams()

    async def _check_session(self, session_id: str) -> None:
        messages = list(await self.running.messages(session_id))
        if not messages:
            return
        check_transcript(messages)
        assert replayed(self.watcher.events, session_id) == messages
        summary_seq = (await self.workspace.sessions.get(session_id)).live.summary_seq
        await check_wires(messages, summary_seq=summary_seq, tools=self.model.requests[-1].tools)

    async def _check_streams(self) -> None:
        """Both watchers, and one who reads it all again, saw the same bytes in the same order (http.md)."""
        mine = frames_of(self.watcher)
        last = list(mine)[-1]
        await self.other.until(lambda event: event.cursor == last)
        theirs = frames_of(self.other)
        assert theirs == {cursor: mine[cursor] for cursor in mine if cursor in theirs}
        assert list(theirs) == list(mine)[-len(theirs) :]
        start = next(event.payload.cursor for event in self.watcher.events if event.type == "snapshot")
        # A replay is a client like any other: nobody new may come between what is compared.
        async with watch(self.workspace, client_id="watcher", after=start) as again:
            await again.until(lambda event: event.cursor == last)
        replay = frames_of(again)
        assert {cursor: replay[cursor] for cursor in mine} == mine

    async def canceled_once(self, run_id: str = "r1", *, lost: int = 1) -> None:
        """T3, E4: the run is canceled, `lost` calls say so, everything is in order, and the next prompt works."""
        (complete,) = self.watcher.terminals(run_id)
        assert (complete.outcome, complete.error) == (Outcome.CANCELED, "")
        messages = await self.running.messages()
        answer = next(message for message in reversed(messages) if message.role is Role.ASSISTANT)
        assert finish_of(answer).reason == "canceled"
        cut = [part for part in self.results() if "canceled" in part.content and part.is_error]
        assert len(cut) == lost, self.results()
        assert await self.workspace.asks.permissions() == ()
        assert await self.workspace.asks.questions() == ()
        assert (await self.turn("and now?", f"{run_id}-next")).text == "Still here."
        assert last_prompt(self.model.requests[-1]) == "and now?"
        await self.check()


def frames_of(watcher: Watcher) -> dict[str, bytes]:
    """The logged frames by their cursors."""
    frames: dict[str, bytes] = {}
    for frame in watcher.frames:
        for decoded in Decoder().decode(frame):
            if decoded.id is not None:
                frames[decoded.id] = frame
    return frames


@asynccontextmanager
async def open_scenario(
    directory: Path,
    steps: Iterable[Step] | Callable[[ModelRequest], Step] | ScriptedModel,
    *,
    files: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
    tools: Iterable[Tool] = (),
    **settings: Any,
) -> AsyncIterator[Scene]:
    """`config` is laid over a plain configuration that is trusted, as if its owner had said so."""
    model = steps if isinstance(steps, ScriptedModel) else ScriptedModel(steps, context_window=WINDOW)
    text = json.dumps({**PLAIN, **(config or {})})
    make_repository(directory / "project", {**(files or {}), "longboat.json": text})
    async with (
        launch(directory, model, tools=tools, config=text, **settings) as running,
        watch(running.workspace, client_id="other") as other,
    ):
        yield Scene(running, model, other)


def make_repository(path: Path, files: Mapping[str, str]) -> None:
    """A git repository with these files committed; its longboat.json is trusted."""
    for name, text in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    git(path, "init", "--quiet", "--initial-branch=main")
    git(path, "add", ".")
    git(path, "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "--quiet", "-m", "begin")
    digest = hashlib.sha256((path / "longboat.json").read_bytes()).hexdigest()
    record(trusted_file(user_config_file(os.environ, Path.home())), path, digest)


def git(path: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=path, check=True, capture_output=True, text=True)
    return done.stdout.strip()
