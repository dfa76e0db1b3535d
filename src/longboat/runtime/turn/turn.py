"""The turn: what the agent does for one run: model steps and tool calls until the answer is complete.

Owns the turn's task, its messages and how it ends. The task may be canceled at any time; `unwind()`, which cannot be,
then closes the transcript (T3) and reports what happened (L13). Must not decide anything about other runs.
"""

import asyncio
import logging
from dataclasses import replace
from functools import partial

import msgspec

from longboat.core.history import calls_of, close_message, close_turn, for_model, not_begun, text_of
from longboat.core.prompts import GO_ON, PLAN, SAY_SOMETHING, SUMMARIZE
from longboat.core.stream import Draft
from longboat.core.turn import Asked, estimate_tokens, nearly_full, plausible
from longboat.errors import ModelError
from longboat.models.protocol import Finished, Model, ModelRequest, StopReason
from longboat.runtime.clock import now
from longboat.runtime.protocols import TurnOwner, WorkspaceServices
from longboat.runtime.session.unit_builder import Ending
from longboat.runtime.turn.failover import TurnModels
from longboat.runtime.turn.inputs import TurnInputs, read_inputs
from longboat.runtime.turn.limits import TurnLimits
from longboat.runtime.turn.mcp_prompts import fill_in_prompt
from longboat.runtime.turn.outbox import Notices, Outbox
from longboat.runtime.turn.outcome import (
    CUT_OFF,
    FAILED,
    LOST,
    Stop,
    check_answer,
    describe_finish,
    judge_turn,
    log_failure,
)
from longboat.runtime.turn.planning import approval_in, was_approved, without_plan
from longboat.runtime.turn.sent_requests import SentRequests
from longboat.runtime.turn.setup import TurnSetup, announce
from longboat.runtime.turn.step import Step
from longboat.runtime.turn.surroundings import surroundings_now
from longboat.runtime.turn.tool_calls import ToolCalls
from longboat.store.changes import delete_message, put_message, put_surroundings, set_summary
from longboat.store.records import RunRecord
from longboat.wire.events import Change
from longboat.wire.ids import new_id, person
from longboat.wire.models import (
    AgentEventType,
    FinishPart,
    Message,
    Outcome,
    Role,
    TextPart,
    ToolCallPart,
)

logger = logging.getLogger(__name__)

STUBBORN_S = 2.0
"""How long to wait before canceling a task again that swallowed its cancellation."""

FULL = "The context window is nearly full. Summarizing, then continuing."


class Turn:
    def __init__(self, services: WorkspaceServices, owner: TurnOwner, record: RunRecord) -> None:
        self._services = services
        self._owner = owner
        self._record = record
        self._session_id = record.run.session_id
        self._outbox = Outbox(services.store, services.id, self._session_id, parent=owner.session.parent_id)
        self._notices = Notices(record.run, self._outbox, owner.next_message_seq)
        self._sent_requests = SentRequests(record.run, self._outbox)
        self._history: list[Message] = []
        self._own: list[Message] = []
        """The assistant and tool messages of this turn."""
        self._draft: Draft | None = None
        self._setup = TurnSetup(system="")
        self._asked = Asked(record.run.prompt)
        self._stop: Stop | None = None
        self._stopped_by: str | None = None
        self._summarizing = False
        self._summarized = False
        self._asked_to_speak = False
        """The model ended without text, and was asked once more."""
        self._counted = (0, 0)
        """Tokens the provider counted, and how many messages of the history they cover."""
        self._models: TurnModels | None = None
        self._added = ""
        """What was added to the system prompt in this turn."""
        self._limits = TurnLimits(services, record, tell=self._notices.problem, flush=self._outbox.flush)
        self._tool_calls = ToolCalls(
            services,
            owner,
            record,
            self._outbox,
            self._limits,
            heed_stop=self._heed_stop,
            problem=self._notices.problem,
        )
        self._task: asyncio.Task[StopReason] | None = None

    @property
    def run_id(self) -> str:
        return self._record.run.run_id

    # From the session

    def start(self) -> None:
        """Start the steps; `unwind()` waits for their end."""
        self._task = self._services.tasks.spawn(self._steps(), name=f"steps of {self.run_id}", awaited=True)

    def stop(self, why: Stop, *, by: str | None = None) -> None:
        """Ask the turn to end. A cancel outranks an interruption. `by` is the client that requests it."""
        first = self._stop is None
        self._stopped_by = self._stopped_by or by
        if first or why is Stop.CANCEL:
            self._stop = why
        if first:
            self._cancel_again()

    def _cancel_again(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            asyncio.get_running_loop().call_later(STUBBORN_S, self._cancel_again)

    def fold(self, message: Message) -> None:
        self._history.append(message)
        self._asked.add(text_of(message))
        self._limits.renew()

    def withdraw(self, message: Message) -> None:
        self._history.remove(message)
        self._asked.take_back(text_of(message))

    async def unwind(self) -> tuple[Outcome, Ending]:
        """Wait for the task, close the transcript, and say how it ended."""
        assert self._task is not None, "a turn is started first"
        try:
            await asyncio.wait([self._task])
        finally:
            self._task.cancel()
        try:
            return await self._close(*judge_turn(self._task, self._stop, self._record.run))
        except Exception:
            # A bug of ours must not leave the run active forever: it ends without its last output (E1).
            log_failure("a turn could not be closed", self._record.run)
            ending = Ending(message_id=None, text="", error=f"{FAILED}. See the server's log for details.")
            return Outcome.ERROR, self._services.asks.withdraw(self.run_id).joined(ending)

    async def _close(self, outcome: Outcome, finish: FinishPart) -> tuple[Outcome, Ending]:
        self._outbox.hold()
        if outcome is Outcome.CANCELED and self._stopped_by is not None:
            finish = msgspec.structs.replace(finish, detail=f"by {person(self._stopped_by)}")
        if self._summarizing:
            self._drop_draft()  # half a summary is not an answer
        if self._record.tries and not self._history:
            await self._read_inputs()
        half = (self._draft.message() if self._draft is not None else None, self._tool_calls.cut_off())
        own = [*self._own, *(message for message in half if message is not None)]
        waiting = self._services.asks.calls(self.run_id) if outcome is Outcome.INTERRUPTED else set()
        not_run = not_begun(own, waiting)
        closing = close_turn(own, finish, at=now(), lost=LOST[outcome], blank=self._notices.blank, not_run=not_run)
        for message, new in closing.changes:
            self._outbox.whole(message, Change.CREATED if new else Change.UPDATED)
        if outcome is Outcome.ERROR:
            self._notices.notice(AgentEventType.ERROR, finish.title, finish.detail)
        if (cut_off := CUT_OFF.get(finish.reason)) is not None:
            self._notices.problem(cut_off)
        self._notices.notice(AgentEventType.AGENT_FINISHED)
        writes, entries = await self._outbox.close()
        error = "" if outcome in (Outcome.END_TURN, Outcome.CANCELED) else describe_finish(finish)
        form = self._setup.form
        text = text_of(closing.answer) if form is None else form.answer or ""  # for programs: the JSON, or nothing
        ending = Ending(
            message_id=closing.answer.id, text=text, error=error, code=finish.code, writes=writes, entries=entries
        )
        return outcome, self._services.asks.withdraw(self.run_id).joined(ending)

    # The task

    async def _steps(self) -> StopReason:
        await asyncio.sleep(0)  # who waits for the decision hears of it first: a client gets its 202
        if self._record.options.shell is not None:
            return await self._run_shell(self._record.options.shell)
        lineup = await self._services.lineup(self._record.model, "large")
        config = self._services.config()  # for the whole turn, so that a file being edited does not end it
        self._limits.begin(config.limits)
        self._models = TurnModels(lineup, config.retry, self._notices.problem)
        if self._record.tries and await was_approved(self._services.store, self._record):
            self._record = without_plan(self._record)
        inputs = await self._read_inputs()
        self._setup = await self._services.turn_setup(self._record, self._model, inputs.project)
        for problem in self._setup.problems:
            self._notices.problem(problem)
        if self._record.options.summarize:
            return await self._sum_up()
        await self._fill_in()
        await self._add_notes(inputs)
        await self._resume_calls()
        while True:
            self._heed_stop()
            await self._check_limits()
            await self._owner.drain_step(self.run_id)
            await self._announce_prompts()
            try:
                if await self._make_room(self._model):
                    continue  # prompts that arrived meanwhile can still steer
                await self._owner.send_step(self.run_id)
                self._limits.add_step()
                reason, calls = await self._step(self._model)
            except ModelError as error:
                await self._fail_over(error)
                continue
            if calls:
                await self._run_tools(calls, at_limit=reason is StopReason.MAX_TOKENS)
            elif reason is not None and not self._ask_to_speak(reason) and not await self._send_back():
                return reason

    @property
    def _model(self) -> Model:
        assert self._models is not None, "a turn finds its models first"
        return self._models.current

    async def _fail_over(self, error: ModelError) -> None:
        """Let another model continue the turn from the transcript. Raises the error if none can."""
        assert self._models is not None, "a model has failed"
        model = self._models.take_over(error)
        self._drop_draft()
        self._summarizing = False
        self._counted = (0, 0)  # it counts tokens in its own way
        await self._set_up_again(model)

    async def _set_up_again(self, model: Model) -> None:
        setup = await self._services.turn_setup(self._record, model, await self._services.tools.read_project())
        self._setup = replace(setup, system=setup.system + self._added, form=self._setup.form)

    async def _heed_approval(self) -> None:
        """If people approved the plan of the step that just ended, give the turn all tools."""
        answer = approval_in(self._own[-2:]) if self._record.options.plan else None
        if answer is not None:
            self._record = without_plan(self._record)
            self._limits.renew()
            self._notices.problem(f"{person(answer.answered_by or 'Someone')} approved the plan.")
            await self._set_up_again(self._model)

    async def _read_inputs(self) -> TurnInputs:
        """Read the transcript so far and the project's files. The transcript of a resumed run includes its own part,
        which it closes like the rest (T3)."""
        inputs = await read_inputs(self._services, self._session_id, summary_seq=self._owner.summary_seq)
        self._history = [*inputs.history.messages]
        self._own = [message for message in self._history if self._is_own(message)]
        return inputs

    def _is_own(self, message: Message) -> bool:
        return message.run_id == self.run_id and message.role is not Role.USER

    async def _run_shell(self, command: str) -> StopReason:
        """Run a person's command. It is recorded as a tool call without a model; the model of the next prompt reads
        it."""
        self._setup = await self._services.tools.shell()
        shell = next(tool.spec for tool in self._setup.tools.values())
        text = msgspec.json.encode({shell.traits.command: command}).decode()
        call = ToolCallPart(id=new_id(), name=shell.name, input=text, finished=True, traits=shell.traits)
        message = msgspec.structs.replace(self._notices.blank(Role.ASSISTANT), parts=(call,), finished_at=now())
        self._own.append(message)
        self._outbox.whole(message, Change.CREATED, durable=True)
        await self._outbox.flush()
        await self._run_tools([call])
        return StopReason.END_TURN

    async def _fill_in(self) -> None:
        """Replace a call of an MCP server's prompt with the text from the server, in the request and in the transcript.
        Done here, because a server that hangs then delays no one, and a cancel can reach the turn."""
        own = (i for i, each in enumerate(self._history) if each.run_id == self.run_id and each.role is Role.USER)
        if (place := next(own, None)) is None:
            return  # a summary has taken its place since
        said = await fill_in_prompt(self._services.tools, self._record.run, self._history[place], self._notices.problem)
        self._asked.begin_with(text_of(said))
        if said is not self._history[place]:
            self._history[place] = said
            self._outbox.whole(said)

    async def _add_notes(self, inputs: TurnInputs) -> None:
        """Put notes before the next prompt: what has changed around the session, and which of its file changes people
        undid. They stay there for later turns. They are not part of the transcript, because no one said them."""
        around = await self._describe_surroundings(inputs)
        undone = await self._services.review.notes(self._session_id, self.run_id, inputs.history)
        for place, message in enumerate(self._history):
            if message.role is Role.USER:
                notes = (around.pop(message.run_id, None), undone.pop(message.run_id, None))
                parts = tuple(TextPart(text=note) for note in notes if note is not None)
                self._history[place] = msgspec.structs.replace(message, parts=(*parts, *message.parts))

    async def _describe_surroundings(self, inputs: TurnInputs) -> dict[str, str]:
        """Add the date and the repository's state at the start of the session to the system prompt; for each run that
        found them changed, make the note that goes with its prompt."""
        if not self._setup.surroundings:
            return {}
        known = {**inputs.history.surroundings}
        around = surroundings_now(self._services.directory, inputs.project.head)
        prompts = {message.run_id for message in self._history if message.role is Role.USER}
        first = next(iter(known), self.run_id)
        told = [text for run_id, text in known.items() if run_id == first or run_id in prompts]
        if self.run_id not in known and not around.is_told(told):
            environ = partial(self._services.tools.environ_of, self._record.run)
            note = known[self.run_id] = await around.describe(environ, first=not told)
            self._outbox.write(put_surroundings(self._session_id, self.run_id, note))
        self._add_to_system(known.pop(first))
        return known

    def _ask_to_speak(self, reason: StopReason) -> bool:
        """Whether the model ended without text and should try again: many do after their last tool call."""
        assert self._draft is not None, "a step without calls leaves its answer"
        if self._asked_to_speak or reason is not StopReason.END_TURN or text_of(self._draft.message()).strip():
            check_answer(self._draft.message(), reason)
            return False
        self._asked_to_speak = True
        self._notices.problem("The model sent an empty answer. Asking it once more.")
        self._drop_draft()
        self._tell_model(SAY_SOMETHING)
        return True

    def _tell_model(self, text: str) -> None:
        """Add text for the model only; no person said it."""
        self._history.append(msgspec.structs.replace(self._notices.blank(Role.USER), parts=(TextPart(text=text),)))

    async def _send_back(self) -> bool:
        """Whether the answer does not match the prompt's schema and the model should try again."""
        if self._setup.form is None or self._draft is None:
            return False
        complaint = await self._setup.form.complaint(text_of(self._draft.message()))
        if complaint is None:
            return False
        answer = close_message(self._draft.message(), None, at=now())
        self._draft = None
        self._own.append(answer)
        self._outbox.whole(answer)
        self._history.append(answer)
        self._tell_model(complaint)
        return True

    async def _check_limits(self) -> None:
        said = await self._limits.check()
        if said is not None:
            self._tell_model(said)

    async def _announce_prompts(self) -> None:
        """Let hooks deny the prompt that started the turn, object to later ones, and add to both (A5)."""
        for prompt, first in self._asked.untold():
            said = await announce(
                self._services, self._setup.hooks, self._record.run, prompt, first=first, problem=self._notices.problem
            )
            for text in said:
                self._add_to_system(text)

    def _add_to_system(self, text: str) -> None:
        """Add to the system prompt, also for a model that takes over."""
        self._added += f"\n\n{text}"
        self._setup = replace(self._setup, system=f"{self._setup.system}\n\n{text}")

    async def _step(self, model: Model) -> tuple[StopReason | None, list[ToolCallPart]]:
        """Get one answer from the model. Returns why it ended, and the calls with which the turn continues. Neither if
        the window overflowed: the session was then summarized, and the step must be built again."""
        try:
            finished = await self._ask(model, for_model(self._history, self._owner.summary_seq))
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
            self._take(message)
            # What the tools are about to do must be known after a power cut.
            self._outbox.whole(message, durable=True)
            await self._outbox.flush()
        usage = plausible(finished.usage)
        used = usage.input_tokens + usage.output_tokens
        self._counted = (used, len(self._history)) if used else (0, 0)
        return finished.reason, calls

    async def _ask(self, model: Model, messages: tuple[Message, ...]) -> Finished:
        """Stream an answer into a new draft."""
        if self._draft is None:
            blank = msgspec.structs.replace(
                self._notices.blank(Role.ASSISTANT),
                model=model.name,
                provider=model.provider,
                summary=self._summarizing,
            )
            self._draft = Draft(blank, taken=[call.id for message in self._history for call in calls_of(message)])
            self._outbox.begin(blank)
        request = ModelRequest(
            system=self._setup.system,
            messages=messages,
            tools=tuple(tool.spec for tool in self._setup.tools.values()),
            effort=self._setup.effort,
            schema=self._setup.form.schema if self._setup.form is not None and not self._summarizing else None,
            may_call=not self._summarizing,
        )
        assert self._models is not None, "a turn finds its models first"
        step = Step(
            model,
            self._draft,
            self._outbox,
            self._models.retry,
            self._notices.notice,
            sent_requests=self._sent_requests,
            traces=self._services.traces,
        )
        async with self._limits.answering() as left_s:
            silent_s = left_s / 2 if left_s is not None and self._models.has_others else None
            finished = await step.take(request, gives_way=self._models.gives_way, silent_s=silent_s)
        self._models.answered()
        used = plausible(finished.usage)
        context = used.output_tokens + (0 if self._summarizing else used.input_tokens)
        self._owner.add_usage(self.run_id, f"{model.provider}/{model.name}", used, context=context)
        return finished

    async def _run_tools(self, calls: list[ToolCallPart], *, at_limit: bool = False) -> None:
        blank = self._notices.blank(Role.TOOL)
        self._take(await self._tool_calls.make(calls, blank, self._setup, new=True, at_limit=at_limit))
        await self._heed_approval()

    async def _resume_calls(self) -> None:
        """After a restart, repeat calls that waited for an answer: they have done nothing yet (A2)."""
        last = self._history[-1] if self._history else None
        if last is None or last.role is not Role.TOOL or last.finished_at is not None:
            return
        self._own.remove(self._history.pop())
        calls = calls_of(self._history[-1])
        self._take(await self._tool_calls.make(calls, last, self._setup, new=False))
        await self._heed_approval()

    def _take(self, message: Message) -> None:
        """Add a message to the turn and to what the model sees."""
        self._own.append(message)
        self._history.append(message)

    def _heed_stop(self) -> None:
        """Raise if the turn was stopped: a tool or an adapter may have swallowed the cancellation."""
        if self._stop is not None:
            raise asyncio.CancelledError

    # The window

    async def _make_room(self, model: Model) -> bool:
        """Summarize before the window is full; the same run continues (T8). Returns whether that was needed."""
        counted, covered = self._counted
        used = counted + estimate_tokens(for_model(self._history[covered:], self._owner.summary_seq))
        needed = nearly_full(used, model.context_window) and not self._summarized and self._can_shrink()
        if needed:
            await self._summarize(model)
        return needed

    def _can_shrink(self) -> bool:
        """Whether a summary could help: there is more than the prompt (or the last summary) itself."""
        return len(for_model(self._history, self._owner.summary_seq)) > 1

    async def _sum_up(self) -> StopReason:
        """A7: make a summary on request. It is the whole turn, and its answer. Prompts that steer meanwhile run after
        it (L10)."""
        self._history = [message for message in self._history if message.run_id != self.run_id or message.summary]
        if not self._history or self._history[-1].run_id != self.run_id:  # else a restart came right after it
            if not self._can_shrink():
                raise ModelError(
                    "There are no new messages to summarize.",
                    title="Nothing to summarize",
                    code="nothing_to_summarize",
                )
            self._asked.forget()
            while not self._summarized:
                try:
                    await self._summarize(self._model, "Summarizing on request.")
                except ModelError as error:
                    await self._fail_over(error)
        self._own = [self._history[-1]]
        return StopReason.END_TURN

    async def _summarize(self, model: Model, why: str = FULL) -> None:
        self._notices.notice(AgentEventType.SUMMARIZING, why)
        request = self._notices.blank(Role.USER)
        request = msgspec.structs.replace(request, parts=(TextPart(text=SUMMARIZE),))
        self._drop_draft()
        self._summarizing = True
        await self._owner.send_step(self.run_id)  # the summary shows the model what was folded
        await self._ask(model, (*for_model(self._history, self._owner.summary_seq), request))
        assert self._draft is not None
        draft = self._draft.message()
        if not text_of(draft).strip():
            raise ModelError(
                "The model returned no summary, and the conversation does not fit without one. Start a new session.",
                title="No summary" if self._record.options.summarize else "The context window is full",
                code="summary_empty",
            )
        self._summarizing = False
        asked = self._asked.text()
        text = text_of(draft) + (GO_ON + asked if asked else "") + await self._plan()
        summary = msgspec.structs.replace(draft, parts=(TextPart(text=text),), finished_at=now())
        self._draft = None
        mark = set_summary(self._session_id, summary.seq)
        self._outbox.tell(summary, Change.UPDATED, writes=[put_message(summary), mark])
        # What was sent will be on disk, whatever becomes of this turn, so memory follows at once.
        self._owner.summary_seq = summary.seq
        self._history.append(summary)
        self._counted = (0, 0)
        self._tool_calls.told.clear()
        self._summarized = True
        await self._outbox.flush()

    async def _plan(self) -> str:
        """The session's todos, which outlive a summary (A7)."""
        items = await self._services.store.reads.todos(self._session_id)
        return PLAN + "\n".join(f"- [{item.state}] {item.text}" for item in items) if items else ""

    def _drop_draft(self) -> None:
        """Withdraw an incomplete answer: one that overflowed the window, or half a summary."""
        if self._draft is not None:
            message = self._draft.message()
            write = delete_message(message.id)
            self._outbox.tell(message, Change.DELETED, writes=[write])
            self._draft = None
