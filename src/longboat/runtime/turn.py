"""The turn: what the agent does for one run — model steps and tool calls until an answer stands.

Owns the turn's task, its messages and how it ends. The task may be canceled at any instant; `unwind()`, which is not,
then closes the transcript (T3) and says what happened (L13). Must not decide anything about other runs.
"""

import asyncio
import logging
from enum import Enum
from typing import Protocol, assert_never

import msgspec

from longboat.core.history import calls_of, close_message, close_turn, for_model, text_of
from longboat.core.prompts import GO_ON, SUMMARIZE, SYSTEM
from longboat.core.stream import Draft, sayable
from longboat.core.turn import LoopGuard, estimate_tokens, nearly_full, plausible
from longboat.errors import LongboatError, ModelError
from longboat.models.seam import Finished, Model, ModelRequest, StopReason
from longboat.runtime.booking import Ending
from longboat.runtime.clock import now
from longboat.runtime.home import Home
from longboat.runtime.outbox import Outbox
from longboat.runtime.step import Step
from longboat.runtime.toolbox import call_tool
from longboat.store.protocol import Write
from longboat.store.rows import RunRecord, put_message, read_messages
from longboat.wire.events import Change
from longboat.wire.ids import new_id
from longboat.wire.models import (
    AgentEvent,
    AgentEventType,
    FinishPart,
    FinishReason,
    Message,
    Outcome,
    Role,
    Session,
    TextPart,
    ToolCallPart,
    Usage,
)

logger = logging.getLogger(__name__)

STUBBORN_S = 2.0
"""A task that has swallowed its cancellation is asked again after so long."""

WHOLE = 2**31
"""A page that holds any transcript."""

FAILED = "Longboat failed"

LOST = {
    Outcome.CANCELED: "The run was canceled before this call had a result.",
    Outcome.INTERRUPTED: "The server stopped before this call had a result; it may have had effects.",
    Outcome.ERROR: "The run failed before this call had a result.",
    Outcome.END_TURN: "This call was not made.",
}


class Stop(Enum):
    """Who ended a turn early."""

    CANCEL = "cancel"
    INTERRUPT = "interrupt"


class Host(Protocol):
    """What the turn asks of its session."""

    summary_seq: int

    @property
    def session(self) -> Session: ...

    async def drain_step(self, run_id: str) -> None: ...

    async def send_step(self, run_id: str) -> None: ...

    def next_message_seq(self) -> int: ...

    def add_usage(self, usage: Usage) -> None: ...


class Turn:
    def __init__(self, home: Home, host: Host, record: RunRecord) -> None:
        self._home = home
        self._host = host
        self._record = record
        self._session_id = record.run.session_id
        self._outbox = Outbox(home.store, home.id, self._session_id)
        self._history: list[Message] = []
        self._own: list[Message] = []
        """The assistant and tool messages of this turn."""
        self._draft: Draft | None = None
        self._prompts = [record.run.prompt]
        self._stop: Stop | None = None
        self._summarizing = False
        self._summarized = False
        self._counted = (0, 0)
        """Tokens the provider counted, and how many messages of the history they cover."""
        self._loop_guard = LoopGuard()
        self._task: asyncio.Task[StopReason] = asyncio.get_running_loop().create_task(self._steps())

    @property
    def run_id(self) -> str:
        return self._record.run.run_id

    # From the session

    def stop(self, why: Stop) -> None:
        """Ask the turn to end. A cancel outranks an interruption."""
        first = self._stop is None
        if first or why is Stop.CANCEL:
            self._stop = why
        if first:
            self._insist()

    def _insist(self) -> None:
        if not self._task.done():
            self._task.cancel()
            asyncio.get_running_loop().call_later(STUBBORN_S, self._insist)

    def fold(self, message: Message) -> None:
        self._history.append(message)
        self._prompts.append(text_of(message))

    def withdraw(self, message: Message) -> None:
        self._history.remove(message)
        self._prompts.remove(text_of(message))

    async def unwind(self) -> tuple[Outcome, Ending]:
        """Wait for the task, close the transcript, and say how it ended."""
        try:
            await asyncio.wait([self._task])
        finally:
            self._task.cancel()
        try:
            return await self._close(*self._judge())
        except Exception:
            # A defect of ours must not leave the run active for ever: it ends without its last words (E1).
            self._log_failure("a turn could not be closed")
            return Outcome.ERROR, Ending(message_id=None, text="", error=f"{FAILED}: the server's log has the details.")

    async def _close(self, outcome: Outcome, finish: FinishPart) -> tuple[Outcome, Ending]:
        self._outbox.hold()
        if self._summarizing:
            self._drop_draft()  # half a summary is nobody's answer
        own = [*self._own, self._draft.message()] if self._draft is not None else self._own
        closing = close_turn(own, finish, at=now(), lost=LOST[outcome], blank=self._blank)
        for message, new in closing.changes:
            self._outbox.whole(message, Change.CREATED if new else Change.UPDATED)
        if outcome is Outcome.ERROR:
            self._notice(AgentEventType.ERROR, finish.title, finish.detail)
        self._notice(AgentEventType.AGENT_FINISHED, "", "")
        writes, entries = await self._outbox.close()
        error = "" if outcome in (Outcome.END_TURN, Outcome.CANCELED) else sentence(finish)
        text = text_of(closing.answer)
        return outcome, Ending(message_id=closing.answer.id, text=text, error=error, writes=writes, entries=entries)

    def _judge(self) -> tuple[Outcome, FinishPart]:
        """What happened: an end is an end even if a cancel was asked for (L13)."""
        if self._task.cancelled():
            return stopped(self._stop)
        error = self._task.exception()
        if error is None:
            return Outcome.END_TURN, FinishPart(reason=_FINISH[self._task.result()])
        if self._stop is not None:
            return stopped(self._stop)
        match error:
            case ModelError():
                title, detail = error.title, error.message
            case LongboatError():
                title, detail = "The turn could not go on", error.message
            case _:
                self._log_failure("turn failed", error)
                title, detail = FAILED, f"{type(error).__name__}: the server's log has the details."
        return Outcome.ERROR, FinishPart(reason=FinishReason.ERROR, title=sayable(title), detail=sayable(detail))

    def _log_failure(self, what: str, error: BaseException | None = None) -> None:
        extra = {"run_id": self.run_id, "session_id": self._session_id}
        logger.error(what, exc_info=error or True, extra=extra)

    # The task

    async def _steps(self) -> StopReason:
        model = await self._home.model(self._record.model, "large")
        after = max(self._host.summary_seq - 1, 0)
        self._history = await self._home.store.read(
            lambda reader: read_messages(reader, self._session_id, after=after, limit=WHOLE)
        )
        while True:
            self._heed_stop()
            await self._host.drain_step(self.run_id)
            await self._make_room(model)
            await self._host.send_step(self.run_id)
            reason, calls = await self._step(model)
            if reason is not None:
                return reason
            await self._run_tools(calls)

    async def _step(self, model: Model) -> tuple[StopReason | None, list[ToolCallPart]]:
        """One answer of the model: why the turn ends with it, or the calls it goes on with.

        Neither, if the window overflowed: then the session was summarized and the step is to be built anew.
        """
        try:
            finished = await self._ask(model, for_model(self._history, self._host.summary_seq))
        except ModelError as error:
            if error.code != "context_overflow" or self._summarized:
                raise
            await self._summarize(model)
            return None, []
        assert self._draft is not None
        self._summarized = False
        message = self._draft.message()
        calls = calls_of(message)
        if calls:
            message = close_message(message, None, at=now())
            self._draft = None
            self._own.append(message)
            self._history.append(message)
            # What the tools are about to do must be known after a power cut.
            self._outbox.whole(message, durable=True)
            await self._outbox.flush()
        usage = plausible(finished.usage)
        used = usage.input_tokens + usage.output_tokens
        self._counted = (used, len(self._history)) if used else (0, 0)
        return (None, calls) if calls else (finished.reason, [])

    async def _ask(self, model: Model, messages: tuple[Message, ...]) -> Finished:
        """Stream an answer into a new draft."""
        if self._draft is None:
            blank = msgspec.structs.replace(
                self._blank(Role.ASSISTANT),
                model=model.name,
                provider=model.provider,
                summary=self._summarizing,
            )
            self._draft = Draft(blank)
            self._outbox.whole(blank, Change.CREATED)
        request = ModelRequest(
            system=SYSTEM.format(directory=self._home.directory),
            messages=messages,
            tools=tuple(tool.spec for tool in self._home.tools.values()),
        )
        step = Step(model, self._draft, self._outbox, self._home.config().retry, self._notice)
        finished = await step.take(request)
        self._host.add_usage(plausible(finished.usage))
        return finished

    async def _run_tools(self, calls: list[ToolCallPart]) -> None:
        if not calls:
            return
        message = self._blank(Role.TOOL)
        self._own.append(message)
        self._outbox.whole(message, Change.CREATED)
        for call in calls:
            self._heed_stop()
            result = await call_tool(self._home, self._record.run, call)
            message = msgspec.structs.replace(message, parts=(*message.parts, result))
            self._own[-1] = message
            self._outbox.whole(message)
            if self._loop_guard.is_loop(call, result):
                raise ModelError(
                    f"The same call of {call.name} gave the same result again and again. Say what to do differently.",
                    title="Stopped: the agent went round in circles",
                    code="loop_detected",
                )
        message = msgspec.structs.replace(message, finished_at=now())
        self._own[-1] = message
        self._outbox.whole(message)
        self._history.append(message)

    def _heed_stop(self) -> None:
        """A tool or an adapter may have swallowed the cancellation: the turn does nothing new all the same."""
        if self._stop is not None:
            raise asyncio.CancelledError

    # The window

    async def _make_room(self, model: Model) -> None:
        """T8: summarize before the window is full; the same run goes on."""
        counted, covered = self._counted
        used = counted + estimate_tokens(for_model(self._history[covered:], self._host.summary_seq))
        if nearly_full(used, model.context_window) and not self._summarized and self._can_shrink():
            await self._summarize(model)

    def _can_shrink(self) -> bool:
        """Whether a summary could help: there is more than the prompt (or the last summary) itself."""
        return len(for_model(self._history, self._host.summary_seq)) > 1

    async def _summarize(self, model: Model) -> None:
        self._notice(AgentEventType.SUMMARIZING, "The context window is nearly full: summarizing, then going on.", "")
        request = self._blank(Role.USER)
        request = msgspec.structs.replace(request, parts=(TextPart(text=SUMMARIZE),))
        self._drop_draft()
        self._summarizing = True
        await self._host.send_step(self.run_id)  # the summary shows the model what was folded
        await self._ask(model, (*for_model(self._history, self._host.summary_seq), request))
        assert self._draft is not None
        draft = self._draft.message()
        if not text_of(draft).strip():
            raise ModelError(
                "The model gave no summary, and without one the conversation does not fit. Start a new session.",
                title="The context window is full",
                code="summary_empty",
            )
        self._summarizing = False
        text = text_of(draft) + GO_ON + "\n\n".join(self._prompts)
        summary = msgspec.structs.replace(draft, parts=(TextPart(text=text),), finished_at=now())
        self._draft = None
        mark = Write("session_summary", {"session_id": self._session_id, "seq": summary.seq}, rows=1)
        self._outbox.tell(summary, Change.UPDATED, writes=[put_message(summary), mark])
        # What was told will be on disk, whatever becomes of this turn: memory follows at once.
        self._host.summary_seq = summary.seq
        self._history.append(summary)
        self._counted = (0, 0)
        self._summarized = True
        await self._outbox.flush()

    def _drop_draft(self) -> None:
        """Withdraw an answer that is none: one that overflowed the window, or half a summary."""
        if self._draft is not None:
            message = self._draft.message()
            write = Write("message_delete", {"message_id": message.id}, rows=1)
            self._outbox.tell(message, Change.DELETED, writes=[write])
            self._draft = None

    def _blank(self, role: Role) -> Message:
        return Message(
            id=new_id(),
            session_id=self._session_id,
            run_id=self.run_id,
            seq=self._host.next_message_seq(),
            role=role,
            parts=(),
            created_at=now(),
        )

    def _notice(self, kind: AgentEventType, message: str, detail: str) -> None:
        event = AgentEvent(
            type=kind,
            session_id=self._session_id,
            run_id=self.run_id,
            message=sayable(message),
            detail=sayable(detail),
        )
        self._outbox.tell(event)


_FINISH = {
    StopReason.END_TURN: FinishReason.END_TURN,
    StopReason.TOOL_USE: FinishReason.END_TURN,
    StopReason.MAX_TOKENS: FinishReason.MAX_TOKENS,
    StopReason.CONTENT_FILTER: FinishReason.CONTENT_FILTER,
}


def stopped(why: Stop | None) -> tuple[Outcome, FinishPart]:
    """How a turn ends that did not end by itself."""
    match why:
        case Stop.CANCEL:
            return Outcome.CANCELED, FinishPart(reason=FinishReason.CANCELED)
        case Stop.INTERRUPT | None:
            detail = "The server stopped while this run was active. Send the prompt again to go on."
            finish = FinishPart(reason=FinishReason.INTERRUPTED, title="Interrupted", detail=detail)
            return Outcome.INTERRUPTED, finish
        case _:
            assert_never(why)


def sentence(finish: FinishPart) -> str:
    """A finish as one line for people."""
    return f"{finish.title}: {finish.detail}" if finish.detail else finish.title
