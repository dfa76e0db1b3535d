"""A model and a tool that do what a script says. Real objects behind the real seams: nothing is patched.

    model = ScriptedModel([[CallTool("look", {"at": "x"})], [Say("Done.")]])

Must not know turns or the runtime.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from longboat.core.tool import ToolSpec
from longboat.errors import ModelError
from longboat.models.protocol import (
    EVERYTHING,
    Abilities,
    Finished,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    Sent,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    as_json,
)
from longboat.testing.script import (
    Break,
    CallTool,
    Fail,
    Gate,
    Recorded,
    Say,
    Script,
    ScriptExhausted,
    Step,
    Stop,
    Think,
    Use,
    wait_for,
    words,
)
from longboat.tools.context import ToolContext
from longboat.tools.protocol import ToolCall, ToolResult
from longboat.wire.models import Role, TextPart, Usage
from longboat.wire.tools import UNKNOWN, ToolTraits


class ScriptedModel:
    """Plays one step a request, in the order in which requests come; or what a function of the request gives."""

    def __init__(
        self,
        steps: Iterable[Step] | Callable[[ModelRequest], Step] = (),
        *,
        repeat: bool = False,
        provider: str = "scripted",
        name: str = "scripted",
        context_window: int = 128_000,
        abilities: Abilities = EVERYTHING,
    ) -> None:
        self.provider = provider
        self.name = name
        self.context_window = context_window
        self.abilities = abilities
        self.requests: Recorded[ModelRequest] = Recorded()
        self.abandoned = 0
        """How many streams were left before their end, as a cancel does."""
        self._answer = steps if callable(steps) else None
        self._script: Script[Step] = Script(() if callable(steps) else steps, repeat=repeat)
        self._calls = 0

    @classmethod
    def echo(cls) -> "ScriptedModel":
        """A model that says the last prompt back, forever."""
        return cls(lambda request: words(f"echo: {last_prompt(request)}"))

    def add(self, *steps: Step) -> None:
        """Append steps to the script."""
        self._script.add(*steps)

    async def wait_requests(self, count: int) -> None:
        """Wait until this many requests have come in total."""
        await self.requests.wait(count)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        self.requests.note(request)
        step = self._step(request)
        ended = asyncio.Event()
        try:
            async with aclosing(self._play(request, step, ended)) as events:
                yield events
        finally:
            if not ended.is_set():
                self.abandoned += 1

    def _step(self, request: ModelRequest) -> Step:
        if self._answer is not None:
            return self._answer(request)
        try:
            return self._script.take()
        except ScriptExhausted as error:
            raise ModelError(
                f"Request {len(self.requests)} came to the scripted model, but {error}."
                f" The last prompt was {last_prompt(request)[:200]!r}.",
                title="The script is used up",
                code="script_exhausted",
            ) from None

    async def _play(self, request: ModelRequest, step: Step, ended: asyncio.Event) -> AsyncGenerator[ModelEvent, None]:
        yield Sent(as_json(request, model=self.name), exact=False)
        usage = Usage()
        reason = StopReason.END_TURN
        calls = 0
        for item in step:
            match item:
                case Say(text=text):
                    yield TextDelta(text)
                case Think(text=text):
                    yield ReasoningDelta(text)
                case CallTool():
                    self._calls += 1
                    yield ToolCallStart(calls, item.call_id or f"call_{self._calls}", item.name)
                    yield ToolCallDelta(calls, item.input)
                    calls += 1
                    reason = StopReason.TOOL_USE
                case Use():
                    usage = Usage(input_tokens=item.input_tokens, output_tokens=item.output_tokens, cost=item.cost)
                case Stop():
                    reason = item.reason
                    break
                case Fail(error=error):
                    ended.set()
                    raise error
                case Break():
                    ended.set()
                    raise ModelError("The script broke the stream.", code="stream_broken", retryable=True)
                case _:
                    await wait_for(item)
        ended.set()
        yield Finished(reason, usage)


def last_prompt(request: ModelRequest) -> str:
    """The text of the last user message."""
    for message in reversed(request.messages):
        if message.role is Role.USER:
            return "".join(part.text for part in message.parts if isinstance(part, TextPart))
    return ""


Reply = str | ToolResult | Exception


class ScriptedTool:
    """A tool that records its calls and replies: with a text, a result, an error to raise, or a function of the call.

    With a gate it waits there first, so that a test can act while the tool runs.
    """

    def __init__(
        self,
        name: str,
        reply: Reply | Callable[[ToolCall], Reply] = "done",
        *,
        gate: Gate | None = None,
        description: str = "A scripted tool.",
        schema: Mapping[str, Any] | None = None,
        traits: ToolTraits = UNKNOWN,
    ) -> None:
        """Small models get it too."""
        self.spec = ToolSpec(
            name=name, description=description, schema=schema or {"type": "object"}, traits=traits, brief=description
        )
        self.calls: Recorded[ToolCall] = Recorded()
        self.canceled = 0
        """How many calls were canceled while they waited at the gate."""
        self._reply = reply
        self._gate = gate

    async def wait_calls(self, count: int) -> None:
        """Wait until it was called this many times in total."""
        await self.calls.wait(count)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        self.calls.note(call)
        if self._gate is not None:
            try:
                await self._gate.arrive()
            except asyncio.CancelledError:
                self.canceled += 1
                raise
        reply = self._reply(call) if callable(self._reply) else self._reply
        if isinstance(reply, Exception):
            raise reply
        return ToolResult(content=reply) if isinstance(reply, str) else reply
