"""A model that uses tools in the way that works for it: natively, in steps, or as text.

Owns the detection: native tools first, then the next way if the server refuses or ignores tools, or if the model prints
its calls as text. It remembers what works. Must not know any wire format.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace

import msgspec

from longboat.core.history import text_of
from longboat.core.repetition import RepetitionGuard
from longboat.errors import ModelError
from longboat.models.openai_refusal import TOOLS_REFUSED
from longboat.models.protocol import (
    Closable,
    Finished,
    ModelEvent,
    ModelRequest,
    Notice,
    ReasoningDelta,
    Sent,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    WrappedModel,
)
from longboat.models.tool_modes.memory import ToolMemory, ToolUse
from longboat.models.tool_modes.printed_calls import is_about_calls, is_broken_call, mentions_call, whole_call
from longboat.models.tool_modes.steps import Step, StepReader, as_steps, tools_to_look_with
from longboat.models.tool_modes.text_calls import CallWatch, as_text, find_calls, salvage_call, write_calls
from longboat.models.tool_modes.tool_texts import TextCall, write_as_text
from longboat.wire.ids import new_id
from longboat.wire.model_requests import ToolMode
from longboat.wire.models import Usage

NATIVE = ToolUse(mode="native")
STEPS = ToolUse(mode="steps")
OTHER_STEPS = ToolUse(mode="steps", openai_schema=False)
TEXT = ToolUse(mode="text")
WAYS = (NATIVE, STEPS, OTHER_STEPS, TEXT)
"""In the order in which they are tried."""

_CHARACTERS_PER_TOKEN = 8
"""Higher than the average of any text: a server that counts fewer tokens has not read the whole text."""
_ASKS = {
    "native": "calls its tools natively",
    "steps": "asks it for steps in JSON",
    "text": "asks it to write its tool calls as text",
}


class _Unfit(Exception):
    """This way of using tools does not work here. `error` is raised if no other way does."""

    def __init__(self, why: str, error: ModelError) -> None:
        super().__init__(why)
        self.why = why
        self.error = error


class ToolModel(WrappedModel):
    """An adapter for models that may lack native tools."""

    def __init__(
        self, adapter: Closable, memory: ToolMemory, *, wanted: ToolMode | None = None, has_tools: bool = False
    ) -> None:
        """`wanted` is the configured mode; None: detect it. `has_tools`: the model is known to call natively."""
        super().__init__(adapter)
        self._memory = memory
        self._wanted = wanted
        self._worked = memory.recall() if wanted is None else None
        """How the last answer used tools, also before a restart."""
        self._known = self._worked if wanted is None else ToolUse(mode=wanted)
        self._told_of_prose = has_tools

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        async with aclosing(self._events(request)) as events:
            yield events

    async def _events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        ways = self._ways(request)
        unfit: _Unfit | None = None
        for use in ways:
            untold = unfit is not None and use.mode != ways[0].mode
            try:
                async with aclosing(self._use(use, request)) as events:
                    async for event in events:
                        if isinstance(event, Sent):
                            yield replace(event, tool_mode=use.mode)
                            continue
                        if untold and unfit is not None:
                            untold = False
                            yield self._notice(unfit.why, use, withdraw=True)
                        yield event
                return
            except _Unfit as found:
                unfit = unfit or found
            except ModelError as error:
                # A model that has called natively has tools: the refusal is about this request.
                if use.mode != "native" or error.code != TOOLS_REFUSED or self._known == NATIVE:
                    raise
                unfit = _Unfit(f"The server does not support tools for {self._display_name}.", error)
        assert unfit is not None, "only a way that is unfit leads here"
        raise unfit.error

    def _ways(self, request: ModelRequest) -> tuple[ToolUse, ...]:
        """The ways to try, in order."""
        if not request.tools or self._wanted == "native":
            return (self._known or NATIVE,)
        return WAYS[WAYS.index(self._known or NATIVE) :]

    def _use(self, use: ToolUse, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if use.mode == "native":
            if not request.tools or not request.may_call or request.schema is not None:
                return self._passed_on(request)
            return self._watched(request) if self._known is None else self._natively(request)
        if not request.tools:
            # There may still be calls in the transcript.
            return self._passed_on(replace(request, messages=write_as_text(request.messages, write_calls)))
        return self._in_steps(use, request) if use.mode == "steps" else self._as_text(request)

    async def _passed_on(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async with self.adapter.stream(request) as events:
            async for event in events:
                yield event

    # Natively

    async def _natively(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """The answer of a model that is known to call natively. Its text is an answer, whatever it looks like."""
        said: list[str] = []
        called = False
        async with self.adapter.stream(request) as events:
            async for event in events:
                match event:
                    case TextDelta():
                        said.append(event.text)
                    case ToolCallStart():
                        called = True
                    case Notice(withdraw=True):
                        said.clear()
                    case Finished() if called:
                        await self._learn(NATIVE)
                    case Finished() if self._is_slip(request, "".join(said)):
                        yield self._notice_of_printed()
                yield event

    def _is_slip(self, request: ModelRequest, answer: str) -> bool:
        found = None if is_about_calls(request) else whole_call(answer, request.tools)
        return found is not None and not found.before

    async def _watched(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """The answer of a model that is not known yet. What may be a printed call is held back until the end."""
        watch, repetition, shown, called = CallWatch(), RepetitionGuard(), "", False
        async with self.adapter.stream(request) as events:
            async for event in events:
                match event:
                    case TextDelta():
                        repetition.hear(event.text)
                        if text := watch.feed(event.text):
                            shown += text
                            yield TextDelta(text)
                    case ToolCallStart():
                        called = True
                        if held := watch.finish():
                            yield TextDelta(held)
                        yield event
                    case Notice(withdraw=True):
                        watch, repetition, shown = CallWatch(), RepetitionGuard(), ""
                        yield event
                    case Finished():
                        for last in await self._end_watched(request, shown, watch.finish(), event, called=called):
                            yield last
                    case _:
                        yield event

    async def _end_watched(
        self, request: ModelRequest, shown: str, held: str, end: Finished, *, called: bool
    ) -> list[ModelEvent]:
        """The last events of an answer. One that is not certain to be a printed call stands as it is."""
        if called:
            await self._learn(NATIVE)
            return _step_events(held, (), end)
        answer, why = shown + held, f"{self._display_name} printed a tool call as text."
        if not is_about_calls(request):
            if (found := whole_call(answer, request.tools)) is not None:
                await self._learn(STEPS)
                return [self._notice(why, STEPS), *_step_events(found.before[len(shown) :], found.calls, end)]
            if is_broken_call(answer, request.tools):
                raise _Unfit(why, self._unreadable())
        if _ignores_tools(request, end.usage):
            why = f"The server does not pass the tools to {self._display_name}."
            raise _Unfit(why, ModelError(why, title="The model cannot use tools", code=TOOLS_REFUSED))
        if mentions_call(held, request.tools):
            return [self._notice_of_printed(), *_step_events(held, (), end)]
        return [*self._notice_of_prose(request), *_step_events(held, (), end)]

    # In steps

    async def _in_steps(self, use: ToolUse, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        reader, repetition, heard = StepReader(), RepetitionGuard(), False
        try:
            async with aclosing(self._passed_on(as_steps(request, openai_schema=use.openai_schema))) as events:
                async for event in events:
                    heard = heard or not isinstance(event, Sent)
                    match event:
                        case TextDelta():
                            repetition.hear(event.text)
                            thought, answer = reader.feed(event.text)
                            if thought:
                                yield ReasoningDelta(thought)
                            if answer:
                                yield TextDelta(answer)
                        case Notice(withdraw=True):
                            reader, repetition = StepReader(), RepetitionGuard()
                            yield event
                        case Finished():
                            step = await self._read_step(use, request, reader)
                            for last in _step_events(step.answer, step.calls, event):
                                yield last
                        case _:
                            yield event
        except ModelError as error:
            if error.code == "bad_request" and not heard and use != self._worked:
                raise _Unfit(self._no_schema, error) from None
            raise

    async def _read_step(self, use: ToolUse, request: ModelRequest, reader: StepReader) -> Step:
        step = reader.finish()
        if step is not None:
            await self._learn(use)
            return step
        # The server accepted the schema but did not enforce it.
        found = find_calls(reader.written, request.tools)
        if not found.calls and use != self._worked:
            raise _Unfit(self._no_schema, self._unreadable())
        return Step(answer=found.before, calls=found.calls)

    @property
    def _no_schema(self) -> str:
        return f"The server does not hold {self._display_name} to a JSON schema."

    # As text

    async def _as_text(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        watch, repetition = CallWatch(), RepetitionGuard()
        async with aclosing(self._passed_on(as_text(request))) as events:
            async for event in events:
                match event:
                    case TextDelta() if request.may_call:
                        repetition.hear(event.text)
                        if shown := watch.feed(event.text):
                            yield TextDelta(shown)
                    case Notice(withdraw=True):
                        watch, repetition = CallWatch(), RepetitionGuard()
                        yield event
                    case Finished():
                        await self._learn(TEXT)
                        for last in self._end_text(request, watch.finish(), event):
                            yield last
                    case _:
                        yield event

    def _end_text(self, request: ModelRequest, held: str, end: Finished) -> list[ModelEvent]:
        found = find_calls(held, request.tools)
        if found.calls or found.broken_at is None:
            return _step_events(found.before, found.calls, end)
        call = salvage_call(held, request.tools)
        if call is None:
            raise self._unreadable()
        return _step_events(held[: found.broken_at], (call,), end)

    # Detection

    async def _learn(self, use: ToolUse) -> None:
        self._worked = use
        if use == self._known:
            return
        self._known = use
        if self._wanted is None:
            with suppress(OSError):  # then Longboat detects it again next time
                await asyncio.to_thread(self._memory.keep, use)

    @property
    def _display_name(self) -> str:
        return f"{self.provider}/{self.name}"

    def _notice(self, why: str, use: ToolUse, *, withdraw: bool = False) -> Notice:
        return Notice(
            f'{why} Longboat now {_ASKS[use.mode]}. Set "tools" for this model in longboat.json to change this.',
            withdraw=withdraw,
        )

    def _notice_of_prose(self, request: ModelRequest) -> list[ModelEvent]:
        """Warn once if a prompt that may be about files was answered without a tool call. The answer may be right, so
        it is kept."""
        if self._told_of_prose or not tools_to_look_with(request):
            return []
        self._told_of_prose = True
        advice = 'If it should have used its tools, set "tools": "steps" for this model in longboat.json.'
        return [Notice(f"{self._display_name} answered without looking at any file. {advice}")]

    def _notice_of_printed(self) -> Notice:
        return Notice(
            f"{self._display_name} wrote text that looks like a tool call, and Longboat did not make it. If it should "
            'have, set "tools": "steps" for this model in longboat.json.'
        )

    def _unreadable(self) -> ModelError:
        return ModelError(
            f"{self._display_name} wrote a tool call that cannot be read. Choose another model, or set "
            '"tools": "steps" for this one in longboat.json.',
            title="The model cannot use tools",
            code="unreadable_tool_call",
        )


def _step_events(text: str, calls: Iterable[TextCall], end: Finished) -> list[ModelEvent]:
    said: list[ModelEvent] = [TextDelta(text)] if text else []
    made = [event for index, call in enumerate(calls) for event in _call_events(index, call)]
    reason = StopReason.TOOL_USE if made and end.reason is StopReason.END_TURN else end.reason
    return [*said, *made, replace(end, reason=reason)]


def _call_events(index: int, call: TextCall) -> Iterator[ModelEvent]:
    yield ToolCallStart(index, f"call_{new_id()}", call.name)
    yield ToolCallDelta(index, call.arguments)


def _ignores_tools(request: ModelRequest, usage: Usage) -> bool:
    """Whether the server counted far fewer tokens than the tools alone need."""
    said = len(request.system) + sum(len(text_of(message)) for message in request.messages)
    if usage.input_tokens < said // _CHARACTERS_PER_TOKEN:
        return False  # it cannot count
    tools = sum(len(tool.description) + len(msgspec.json.encode(tool.schema)) for tool in request.tools)
    return usage.input_tokens < tools // _CHARACTERS_PER_TOKEN
