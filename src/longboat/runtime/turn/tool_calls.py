"""The tool calls of a turn, step by step.

Owns the results of the current step, and notices when the same call is repeated over and over. Must not know models or
the rest of the turn.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from longboat.core.history import group_calls
from longboat.core.stream import encodable
from longboat.core.turn import LoopGuard
from longboat.errors import ModelError
from longboat.runtime.clock import now, seconds_between
from longboat.runtime.protocols import TurnOwner, WorkspaceServices
from longboat.runtime.turn.limits import TurnLimits
from longboat.runtime.turn.outbox import Outbox
from longboat.runtime.turn.planning import surplus_plans
from longboat.runtime.turn.setup import TurnSetup
from longboat.runtime.turn.tool_caller import ToolCaller
from longboat.store.records import RunRecord
from longboat.tasks import run_together
from longboat.wire.asks import CallAnswer
from longboat.wire.events import Change
from longboat.wire.models import Message, MessageDelta, ToolCallPart, ToolResultPart


class ToolCalls:
    def __init__(
        self,
        services: WorkspaceServices,
        owner: TurnOwner,
        record: RunRecord,
        outbox: Outbox,
        limits: TurnLimits,
        *,
        heed_stop: Callable[[], None],
        problem: Callable[[str], None],
    ) -> None:
        """`heed_stop` raises if the turn must do nothing new; `problem` reports problems to people."""
        self._services = services
        self._owner = owner
        self._record = record
        self._outbox = outbox
        self._limits = limits
        self._heed_stop = heed_stop
        self._problem = problem
        self._loop_guard = LoopGuard()
        self._current: StepResults | None = None
        self._order: list[str] = []
        """The ids of the current step's calls."""
        self.told: set[Path] = set()
        """Instructions of files below the workspace that the model has read in this turn."""

    async def make(
        self, calls: Sequence[ToolCallPart], message: Message, setup: TurnSetup, *, new: bool, at_limit: bool = False
    ) -> Message:
        """The message of the results, finished. `calls`: all of the step. `new`: nobody has seen the message yet; else
        a restart came in between, and the calls that have a result in it are not made again. `at_limit`: the model hit
        its output limit."""
        self._order = [call.id for call in calls]
        made = self._current = StepResults(message, self._outbox, new=new)
        caller = ToolCaller(
            services=self._services,
            record=self._record,
            setup=setup,
            told=self.told,
            surplus_plans=surplus_plans(calls),
            last_at_limit=calls[-1].id if at_limit and calls else "",
            problem=self._problem,
        )
        for together in group_calls(calls):  # all of them: a restart makes no other groups
            group = [call for call in together if call.id not in made.done]
            self._heed_stop()
            slots = made.begin(*group)
            await run_together([self._see_call(caller, *pair) for pair in zip(slots, group, strict=True)])
            self._check_loop(slots, group)
        results = made.finish(now(), self._limits.add_note, order=self._order)
        self._current = None
        return results

    def cut_off(self) -> Message | None:
        """Return the message of the step in which the turn ends, if any, with the times of calls that get no
        result."""
        if self._current is None:
            return None
        message = self._current.cut_off(self._order)
        for part in message.parts:
            if isinstance(part, ToolResultPart) and not part.finished:
                self._owner.add_call(self._record.run.run_id, part)
        return message

    async def _see_call(self, caller: ToolCaller, slot: "Slot", call: ToolCallPart) -> None:
        with self._services.traces.tool(self._record.run.run_id, call) as report:
            result = slot.said = await caller.call(call, slot)
            report(result)
        self._owner.add_call(self._record.run.run_id, slot.put(self._limits.add_nudge(call, result)))

    def _check_loop(self, slots: Sequence["Slot"], calls: Sequence[ToolCallPart]) -> None:
        """In the order of the calls, however their ends came: the same answers are judged the same."""
        for slot, call in zip(slots, calls, strict=True):
            assert slot.said is not None, "each call of the group is over"
            if self._loop_guard.is_loop(call, slot.said):
                raise ModelError(
                    f"The agent repeated the same {call.name} call with the same result. Tell it what to do "
                    "differently.",
                    title="Stopped: the agent was looping",
                    code="loop_detected",
                )


MAX_SHOWN = 1_000_000
"""Maximum live output of one call, in characters. The tool's own file has all of it."""


class Slot:
    """One call's result: the tool's output so far and people's answers, then the result itself."""

    def __init__(self, results: "StepResults", place: int, call_id: str, name: str) -> None:
        self._results = results
        self._place = place
        self.call_id = call_id
        self._shown: list[str] = []
        self._length = 0
        self._answers: list[CallAnswer] = []
        self._open = ToolResultPart(tool_call_id=call_id, name=name, content="", finished=False)
        self._began_at = now()
        self._asked_at: str | None = None
        self._waited_s = 0.0
        self._result: ToolResultPart | None = None
        self.said: ToolResultPart | None = None
        """What the tool returned, before anything was added to it."""

    def part(self) -> ToolResultPart:
        if self._result is not None:
            return self._result
        return msgspec.structs.replace(
            self._open,
            content="".join(self._shown),
            answers=tuple(self._answers),
            began_at=self._began_at,
            waited_s=self._waited_s,
        )

    def show(self, text: str) -> None:
        """Show live output. Drops output of a tool that has already returned."""
        text = encodable(text)[: max(0, MAX_SHOWN - self._length)]
        if self._result is not None or not text:
            return
        at = self._length
        self._shown.append(text)
        self._length += len(text)
        self._results.grow(self._place, at, text)

    def ask(self, asked_at: str) -> None:
        self._asked_at = asked_at

    def note(self, answer: CallAnswer, asked_at: str, answered_at: str) -> None:
        """Record an answer at once, so that it is known who let a call run even if the call never gets a result."""
        if self._result is None:
            self._answers.append(answer)
            self._began_at = min(self._began_at, asked_at)  # asked before a restart; the call is repeated after it
            self.wait(seconds_between(asked_at, answered_at))
            self._results.tell()

    def wait(self, waited_s: float) -> None:
        self._asked_at = None
        self._waited_s = round(self._waited_s + waited_s, 3)

    def put(self, result: ToolResultPart) -> ToolResultPart:
        self._result = self._timed(msgspec.structs.replace(result, answers=tuple(self._answers)))
        self._results.tell()
        return self._result

    def cut_off(self) -> ToolResultPart | None:
        """Return the part of a call that gets no result, with its times; None if it has one."""
        if self._result is not None:
            return None
        if self._asked_at is not None:
            self.wait(seconds_between(self._asked_at, now()))
        return self._timed(self.part())

    def _timed(self, part: ToolResultPart) -> ToolResultPart:
        """Add the times as of now."""
        ran_s = max(0.0, round(seconds_between(self._began_at, now()) - self._waited_s, 3))
        return msgspec.structs.replace(part, began_at=self._began_at, waited_s=self._waited_s, ran_s=ran_s)

    def keep(self, result: ToolResultPart) -> "Slot":
        """Keep a result from before a restart."""
        self._result = result
        return self


class StepResults:
    """The message with the results of one step's calls, as far as they have come."""

    def __init__(self, message: Message, outbox: Outbox, *, new: bool) -> None:
        self._base = message
        self._outbox = outbox
        done = [part for part in message.parts if isinstance(part, ToolResultPart) and part.finished]
        self.done = frozenset(part.tool_call_id for part in done)
        """The calls that had a result before a restart."""
        self._slots = [Slot(self, at, part.tool_call_id, part.name).keep(part) for at, part in enumerate(done)]
        outbox.whole(self.message(), Change.CREATED if new else Change.UPDATED)

    def message(self) -> Message:
        return msgspec.structs.replace(self._base, parts=tuple(slot.part() for slot in self._slots))

    def begin(self, *calls: ToolCallPart) -> list[Slot]:
        """Start these calls. Returns where to report what happens in each."""
        first = len(self._slots)
        begun = [Slot(self, place, call.id, call.name) for place, call in enumerate(calls, first)]
        self._slots += begun
        self.tell()
        return begun

    def grow(self, place: int, offset: int, text: str) -> None:
        delta = MessageDelta(
            message_id=self._base.id,
            session_id=self._base.session_id,
            run_id=self._base.run_id,
            part=place,
            offset=offset,
            text=text,
        )
        self._outbox.delta(delta)

    def tell(self) -> None:
        self._outbox.whole(self.message())

    def cut_off(self, order: Sequence[str]) -> Message:
        self._sort(order)
        parts = tuple(slot.cut_off() or slot.part() for slot in self._slots)
        return msgspec.structs.replace(self._base, parts=parts)

    def finish(self, at: str, add_note: Callable[[Message], Message], *, order: Sequence[str]) -> Message:
        """The results in the `order` of their calls; `add_note` adds more text for the model."""
        self._base = msgspec.structs.replace(self._base, finished_at=at)
        self._sort(order)
        message = add_note(self.message())
        self._outbox.whole(message)
        return message

    def _sort(self, order: Sequence[str]) -> None:
        places = {call_id: place for place, call_id in enumerate(order)}
        self._slots.sort(key=lambda slot: places[slot.call_id])
