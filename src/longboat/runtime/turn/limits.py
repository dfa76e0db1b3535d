"""Enforces the limits of a turn: warns the model before a limit, then asks a person or ends the run.

Owns what happens at a limit. Must not know how steps and results are counted: `core.limits` does.
"""

from asyncio import timeout
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec

from longboat.config.settings import LimitsSection
from longboat.core.answers import agrees, declines
from longboat.core.limits import Bounds, Limit, LimitCounter
from longboat.errors import LimitReached
from longboat.runtime.clock import now, seconds_between
from longboat.runtime.protocols import WorkspaceServices
from longboat.store.records import RunRecord
from longboat.wire.asks import Question
from longboat.wire.ids import new_id, person
from longboat.wire.models import Message, ToolCallPart, ToolResultPart
from longboat.wire.requests import Approve

GO_ON = "Continue"
STOP = "Stop"

NO_CALL = ""
"""The `tool_call_id` of a question that no tool call asks."""


class TurnLimits:
    def __init__(
        self,
        services: WorkspaceServices,
        record: RunRecord,
        *,
        tell: Callable[[str], None],
        flush: Callable[[], Awaitable[None]],
    ) -> None:
        """`tell` announces the decision to people; `flush` saves what the turn has done so far."""
        self._services = services
        self._record = record
        self._tell = tell
        self._flush = flush
        self._counter = LimitCounter(Bounds())
        self._began_at = now()
        self._resumed = record.tries > 0

    @property
    def _approved(self) -> bool:
        """Whether the higher limits apply, which end the run without asking. Never for a sub-agent."""
        return self._record.approve is Approve.ALL and not self._is_sub_agent

    @property
    def _is_sub_agent(self) -> bool:
        return self._record.run.parent_run_id is not None

    @property
    def _worked_s(self) -> float:
        waited_s = self._services.asks.waited_s(self._record.run.run_id)
        return max(0.0, seconds_between(self._began_at, now()) - waited_s)

    def begin(self, section: LimitsSection) -> None:
        """Start to count, also after a restart: a run resumes only a few times."""
        steps, minutes = section.steps, section.minutes
        if self._approved:
            steps, minutes = section.approved_steps, section.approved_minutes
        most = max(section.minutes, section.approved_minutes) if section.minutes and section.approved_minutes else 0
        bounds = Bounds(steps=steps, failures=section.failures, seconds=minutes * 60, most_seconds=most * 60)
        self._counter = LimitCounter(bounds)

    def renew(self) -> None:
        """Reset the counts: a person has sent another prompt into the turn."""
        self._counter.renew(self._worked_s)

    def add_nudge(self, call: ToolCallPart, result: ToolResultPart) -> ToolResultPart:
        """Return the result, with a nudge if the call keeps failing."""
        return _with_note(result, self._counter.nudge(call, result))

    def add_note(self, message: Message) -> Message:
        """Return the results of a step, with a note for the model if a limit is near."""
        results = [part for part in message.parts if isinstance(part, ToolResultPart)]
        self._counter.add_results(results)
        note = self._counter.warning(self._worked_s)
        if note is None or not results:
            return message
        return msgspec.structs.replace(message, parts=(*message.parts[:-1], _with_note(results[-1], note)))

    def add_step(self) -> None:
        self._counter.add_step()

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[float | None]:
        """While the model answers. One endless answer is one step, so its time is limited here: at the limit where the
        turn would end, or at the higher one if someone would be asked. Yields the time it has, in seconds. Raises
        LimitReached after it."""
        asks = await self._may_ask()
        left_s = self._counter.answer_s(self._worked_s, asks=asks)
        try:
            async with timeout(left_s) as deadline:
                yield left_s
        except TimeoutError:
            if not deadline.expired():
                raise
            told = self._counter.describe(Limit.TIME, self._worked_s)
            setting = "limits.approved_minutes" if asks else self._setting(Limit.TIME)
            raise LimitReached(f"{told} ({setting} in longboat.json). Send a prompt to continue.") from None

    async def check(self) -> str | None:
        """Call it before a step: at a limit, it asks whether to continue. Returns the person's text for the model, if
        it is more than a yes. Raises LimitReached if the run ends here."""
        known = self._services.asks.question_of(self._record.run.run_id, NO_CALL)
        if known is not None:  # asked before a restart
            return await self._ask(known)
        if self._resumed:
            await self._heed_answer()
        limit = self._counter.reached(self._worked_s)
        if limit is None:
            return None
        told = self._counter.describe(limit, self._worked_s)
        if not await self._may_ask():
            raise LimitReached(f"{told} ({self._setting(limit)} in longboat.json). Send a prompt to continue.")
        await self._flush()
        return await self._ask(self._question(f"The agent reached a limit: {told}. Continue?"))

    async def _may_ask(self) -> bool:
        if self._approved or self._is_sub_agent:  # a sub-agent's parent gets what it has, and decides
            return False
        return self._record.options.wait_for_answers or await self._services.host.can_answer()

    async def _heed_answer(self) -> None:
        """Check the last answer: the server may have been killed right after someone stopped the turn."""
        self._resumed = False
        answered = await self._services.asks.last_answered(self._record.run.run_id)
        if answered is not None and answered.tool_call_id == NO_CALL:
            _read_answer(answered)

    async def _ask(self, question: Question) -> str | None:
        who, more = _read_answer(await self._services.asks.question(question))
        self._tell(f"{who} let the turn continue{f': {more}' if more else '.'}")
        self.renew()
        return more

    def _question(self, text: str) -> Question:
        run = self._record.run
        return Question(
            id=new_id(),
            session_id=run.session_id,
            run_id=run.run_id,
            tool_call_id=NO_CALL,
            text=text,
            choices=(GO_ON, STOP),
            multiple=False,
            asked_at=now(),
            parent_run_id=run.parent_run_id,
            parent_session_id=run.parent_session_id,
        )

    def _setting(self, limit: Limit) -> str:
        higher = self._approved and limit is not Limit.FAILURES
        return f"limits.{'approved_' if higher else ''}{limit.value}"


def _read_answer(answered: Question) -> tuple[str, str | None]:
    """Return who let the turn continue, and their text if it is more than a yes. Raises LimitReached for a no."""
    who = person(answered.answered_by) if answered.answered_by else "Someone"
    said = " ".join(answered.answer).strip()
    if declines(said, STOP):
        raise LimitReached(f"{who} stopped it. Send a prompt to continue.")
    return who, None if agrees(said, GO_ON) else said


def _with_note(result: ToolResultPart, note: str | None) -> ToolResultPart:
    return result if note is None else msgspec.structs.replace(result, content=f"{result.content}\n\n{note}")
