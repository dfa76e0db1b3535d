"""One model request, streamed into a draft and retried if that may help (T7).

Owns retries and what clients see of a stream. Must not know what the turn does with the answer.
"""

import asyncio
import random
from collections.abc import Callable

from longboat.backoff import Backoff
from longboat.config.settings import RetrySection
from longboat.core.repetition import CHECKED_LONG, RepetitionGuard
from longboat.core.stream import Draft
from longboat.errors import ModelError
from longboat.models.protocol import (
    Finished,
    Model,
    ModelEvent,
    ModelRequest,
    Notice,
    Progress,
    ReasoningDelta,
    Sent,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from longboat.models.silence import silent_in_turn_error
from longboat.runtime.turn.outbox import Outbox
from longboat.runtime.turn.sent_requests import SentRequests
from longboat.runtime.turn.traces import Traces
from longboat.wire.models import AgentEventType, Message, MessageDelta

GiveNotice = Callable[[AgentEventType, str, str], None]


class Step:
    def __init__(
        self,
        model: Model,
        draft: Draft,
        outbox: Outbox,
        retry: RetrySection,
        notice: GiveNotice,
        *,
        sent_requests: SentRequests,
        traces: Traces,
    ) -> None:
        self._model = model
        self._draft = draft
        self._outbox = outbox
        self._backoff = Backoff(base_s=retry.base_s, ceiling_s=retry.max_s, jitter=(0.8, 1.2), attempts=retry.attempts)
        self._notice = notice
        self._sent_requests = sent_requests
        self._traces = traces
        self._repetition = RepetitionGuard()
        self._repetition_in_calls = RepetitionGuard(CHECKED_LONG)

    async def take(
        self, request: ModelRequest, *, gives_way: Callable[[ModelError], bool], silent_s: float | None
    ) -> Finished:
        """The end of the answer; its text is in the draft. Raises ModelError once trying again is no use, or if the
        model should give way to another one. `silent_s`: how long it may be silent at first, if not as long as its
        adapter allows."""
        failures = 0
        run_id = self._draft.message().run_id
        while True:
            try:
                with self._traces.step(run_id, self._model, request) as report:
                    finished = await self._try_in_time(request, silent_s)
                    report(finished, self._draft.message())
            except ModelError as error:
                self._sent_requests.fail(error)
                failures += 1
                if not error.retryable or gives_way(error) or self._backoff.gives_up(failures):
                    raise
                self._withdraw()
                wait_s = self._wait_s(failures, error)
                self._notice(
                    AgentEventType.RETRYING,
                    f"{error.title}. Retrying in {wait_s:.1f} s ({failures + 1} of {self._backoff.attempts}).",
                    error.message,
                )
                with self._traces.retry(run_id, failures + 1, error):
                    await asyncio.sleep(wait_s)
            except asyncio.CancelledError:
                self._sent_requests.cancel()
                raise
            else:
                self._sent_requests.finish(finished)
                return finished

    def _wait_s(self, failures: int, error: ModelError) -> float:
        wait_s = self._backoff.delay(failures, random.random)
        return min(max(wait_s, error.retry_after_s or 0), self._backoff.ceiling_s)

    def _withdraw(self) -> None:
        if not self._draft.empty:
            self._draft.withdraw()
            self._outbox.whole(self._draft.message())

    async def _try_in_time(self, request: ModelRequest, silent_s: float | None) -> Finished:
        try:
            async with asyncio.timeout(silent_s) as silence:
                return await self._try(request, silence)
        except TimeoutError:
            if silent_s is None or not silence.expired():
                raise
            raise silent_in_turn_error(self._model.provider, silent_s) from None

    async def _try(self, request: ModelRequest, silence: asyncio.Timeout) -> Finished:
        """`silence` ends with the first sign of life."""
        self._repetition = RepetitionGuard()
        self._repetition_in_calls = RepetitionGuard(CHECKED_LONG)
        async with self._model.stream(request) as events:
            async for event in events:
                if silence.when() is not None and not isinstance(event, Sent):
                    silence.reschedule(None)
                if isinstance(event, Finished):
                    return event
                self._hear(event, request)
                if self._outbox.crowded:
                    await self._outbox.room()
        raise ModelError(
            "The stream ended before the answer was complete.",
            title="The model's answer broke off",
            code="stream_broken",
            retryable=True,
        )

    def _hear(self, event: ModelEvent, request: ModelRequest) -> None:
        match event:
            case TextDelta() if event.text:
                self._repetition.hear(event.text)
                self._say(*self._draft.add_text(event.text))
            case ReasoningDelta() if event.text or event.signature:
                self._repetition.hear(event.text)
                self._say(*self._draft.add_reasoning(event.text, event.signature))
            case ToolCallStart():
                traits = next((tool.traits for tool in request.tools if tool.name == event.name), None)
                self._outbox.whole(self._draft.start_call(event.index, event.call_id, event.name, traits))
            case ToolCallDelta() if event.text:
                self._repetition_in_calls.hear(event.text)
                self._say(None, self._draft.add_input(event.index, event.text))
            case Sent():
                self._sent_requests.begin(event, self._model, summary=not request.may_call)
            case Progress():
                self._notice(AgentEventType.LOADING, event.message, "")
            case Notice():
                if event.withdraw:
                    self._withdraw()
                self._notice(AgentEventType.NOTICE, event.message, "")

    def _say(self, shape: Message | None, delta: MessageDelta) -> None:
        if shape is not None:
            self._outbox.whole(shape)
        if delta.text:
            self._outbox.delta(delta)
