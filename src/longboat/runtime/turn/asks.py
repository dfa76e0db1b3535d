"""Permissions and questions: durable, shown to every client; the first answer counts.

Owns the pending asks of a workspace. An ask is committed before anyone sees it; an answer is committed before the turn
gets it; asks that are pending when a run ends are withdrawn in the transaction that ends the run (A2). Must not know
rules.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

import msgspec

from longboat.errors import AlreadyAnswered, BadInput, NotFound, PermissionNotFound, QuestionNotFound, StoreUnavailable
from longboat.runtime.clock import now, seconds_between
from longboat.runtime.session.unit_builder import Ending
from longboat.runtime.store_retry import retry_store
from longboat.runtime.turn.traces import Traces
from longboat.store.changes import add_grant, put_ask
from longboat.store.protocol import Entry, Store, Unit, Write, WriteMissed
from longboat.wire.asks import (
    AskState,
    Permission,
    PermissionAnswer,
    PermissionNotification,
    Question,
    QuestionNotification,
)
from longboat.wire.events import Change
from longboat.wire.ids import check_own_id, person
from longboat.wire.requests import AnswerPermission, AnswerQuestion

Ask = TypeVar("Ask", Permission, Question)


@dataclass(slots=True)
class Closing:
    """Events that withdraw a run's pending asks, for the unit that ends it."""

    entries: list[Entry] = field(default_factory=list)
    again: list[Callable[[], object]] = field(default_factory=list)
    """Call this if the unit is not written: the ask is then still pending, and the end of the run withdraws it."""
    waited_s: float = 0.0
    """How long the run waited for people."""

    def joined(self, ending: Ending) -> Ending:
        """Add this to the unit that ends a run."""
        return replace(ending, withdrawn=self.entries, waited_s=self.waited_s)


class _Waits:
    """How long runs waited for people. Overlapping waits, such as those of parallel sub-agents, count once."""

    def __init__(self) -> None:
        self._spans: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)

    def add(self, ask: Permission | Question, until: str) -> None:
        """Count an ask that is over. The run that started a sub-agent waited with it."""
        for run_id in filter(None, (ask.run_id, ask.parent_run_id)):
            self._spans[run_id].append((ask.asked_at, until))

    def take(self, run_id: str) -> float:
        """Remove and return the seconds of a run that ends."""
        waited_s = self.so_far(run_id)
        self._spans.pop(run_id, None)
        return waited_s

    def so_far(self, run_id: str) -> float:
        """Return the seconds of a run, without its current wait."""
        total, end = 0.0, ""
        for since, until in sorted(self._spans.get(run_id, [])):
            if until > end:
                total += seconds_between(max(since, end), until)
                end = until
        return round(total, 3)


class _AskTable(Generic[Ask]):
    """The asks of one kind, and the turns that are waiting for an answer."""

    def __init__(self, store: Store, workspace_id: str, shape: type[Ask], waits: _Waits, traces: Traces) -> None:
        self._store = store
        self._waits = waits
        self._traces = traces
        self._workspace_id = workspace_id
        self._shape: type[Ask] = shape
        self._waiting: dict[str, tuple[Ask, asyncio.Future[Ask]]] = {}

    async def ask(self, ask: Ask) -> Ask:
        """Ask the attached people and wait for the first answer. An ask from before a restart is not repeated: its
        answer counts for this call."""
        for known, future in self._waiting.values():
            if msgspec.structs.replace(known, id=ask.id, asked_at=ask.asked_at) == ask:
                return await self._wait_heard(known, future)
        future = self._wait_for(ask)  # before the commit: an answer may be as fast as the event
        await self._commit(ask, Change.CREATED, ask)
        return await self._wait_heard(ask, future)

    async def _wait_heard(self, ask: Ask, future: "asyncio.Future[Ask]") -> Ask:
        with self._traces.ask(ask) as report:
            answered = await asyncio.shield(future)
            report(answered)
        self._waiting.pop(ask.id, None)
        self._waits.add(ask, answered.answered_at or now())
        return answered

    def _wait_for(self, ask: Ask) -> "asyncio.Future[Ask]":
        future: asyncio.Future[Ask] = asyncio.get_running_loop().create_future()
        self._waiting[ask.id] = (ask, future)
        return future

    async def load(self) -> None:
        """After a restart: pending asks stay pending until their run continues or ends."""
        for ask in await self.pending():
            if ask.id not in self._waiting:
                self._wait_for(ask)

    def waiting(self) -> tuple[Ask, ...]:
        """The asks without an answer."""
        return tuple(ask for ask, future in self._waiting.values() if not future.done())

    def calls(self, run_id: str) -> set[str]:
        """The calls of a run that are waiting for an answer."""
        return {ask.tool_call_id for ask, _ in self._waiting.values() if ask.run_id == run_id and ask.tool_call_id}

    def asked_by(self, run_id: str, call_id: str) -> Ask | None:
        """Return what a call of a run has asked without receiving the answer, perhaps before a restart."""
        asks = (ask for ask, _ in self._waiting.values() if (ask.run_id, ask.tool_call_id) == (run_id, call_id))
        return next(asks, None)

    async def answer(self, ask: Ask, *more: Write) -> Ask:
        """Commit the answer, then let the turn continue. A second answer finds that the ask is no longer pending."""
        try:
            await self._commit(ask, Change.UPDATED, _notification(ask), *more)
        except WriteMissed:
            known = await self.find(ask.id)
            raise _already_answered(known) from None
        self._wake(ask)
        return ask

    async def pending(self) -> tuple[Ask, ...]:
        return await self._store.reads.pending_asks(self._workspace_id, self._shape)

    async def find(self, ask_id: str) -> Ask | None:
        return await self._store.reads.ask(self._workspace_id, ask_id, self._shape)

    def withdraw(self, about: Callable[[Ask], bool], closing: Closing) -> None:
        for ask, future in list(self._waiting.values()):
            if about(ask) and future.done():
                del self._waiting[ask.id]  # answered, and no one is waiting for it
            elif about(ask):
                gone = msgspec.structs.replace(ask, state=AskState.WITHDRAWN)
                # Someone may be answering at this moment: the row decides, and only one end is published.
                told = _entry(gone, Change.UPDATED, _notification(gone))
                closing.entries.append(replace(told, only_with=put_ask(self._workspace_id, gone)))
                closing.again.append(partial(self._wait_for, ask))
                self._waits.add(ask, now())
                del self._waiting[ask.id]
                future.cancel()

    def _wake(self, ask: Ask) -> None:
        # Kept until it is heard: after a restart the answer may be there before the call asks again.
        waiting = self._waiting.get(ask.id)
        if waiting is not None and not waiting[1].done():
            waiting[1].set_result(ask)

    async def _commit(self, ask: Ask, change: Change, payload: msgspec.Struct, *more: Write) -> None:
        writes = [put_ask(self._workspace_id, ask, rows=1), *more]
        unit = Unit(workspace_id=self._workspace_id, writes=writes, entries=[_entry(ask, change, payload)])
        await self._store.submit(unit)


class Asks:
    """Both kinds, for one workspace."""

    def __init__(self, store: Store, workspace_id: str, traces: Traces) -> None:
        self._store = store
        self._workspace_id = workspace_id
        self._waits = _Waits()
        self._permissions = _AskTable(store, workspace_id, Permission, self._waits, traces)
        self._questions = _AskTable(store, workspace_id, Question, self._waits, traces)

    async def permission(self, ask: Permission) -> Permission:
        return await self._permissions.ask(ask)

    async def question(self, ask: Question) -> Question:
        return await self._questions.ask(ask)

    def question_of(self, run_id: str, call_id: str) -> Question | None:
        """Return the question that a call asked before a restart. If the call asks again, it gets that answer."""
        return self._questions.asked_by(run_id, call_id)

    async def last_answered(self, run_id: str) -> Question | None:
        """Return the last answered question of a run, perhaps from before a restart."""
        return await self._store.reads.last_answered(self._workspace_id, run_id)

    def waited_s(self, run_id: str) -> float:
        """How long a run has waited for people so far."""
        return self._waits.so_far(run_id)

    async def permissions(self) -> tuple[Permission, ...]:
        return await self._permissions.pending()

    async def questions(self) -> tuple[Question, ...]:
        return await self._questions.pending()

    async def answer_permission(self, permission_id: str, request: AnswerPermission) -> Permission:
        _check(request)
        ask = _check_pending(await self._permissions.find(permission_id), PermissionNotFound(permission_id))
        granted = _granted(ask, request)
        answered = msgspec.structs.replace(
            ask,
            state=AskState.ANSWERED,
            answer=request.answer,
            granted=granted,
            reason=request.reason,
            answered_by=request.client_id,
            answered_at=now(),
        )
        grants = [add_grant(_grantee(ask), rule) for rule in granted]
        await self._permissions.answer(answered, *grants)
        await self._answer_covered(answered)
        return answered

    async def _answer_covered(self, answered: Permission) -> None:
        """Answer other calls of the session that wait for the very rules that were just granted: nobody is asked twice.
        The rules of the project may have changed while they waited, so each is judged again before it runs."""
        for ask in self._permissions.waiting():
            if _grantee(ask) == _grantee(answered) and _covers(answered.granted, ask):
                allowed = msgspec.structs.replace(
                    ask,
                    state=AskState.ANSWERED,
                    answer=PermissionAnswer.ONCE,
                    answered_by=answered.answered_by,
                    answered_at=now(),
                    automatic=True,
                )
                with suppress(AlreadyAnswered, StoreUnavailable):  # then it stays as it is
                    await self._permissions.answer(allowed)

    async def answer_question(self, question_id: str, request: AnswerQuestion) -> Question:
        _check(request)
        ask = _check_pending(await self._questions.find(question_id), QuestionNotFound(question_id))
        if not any(text.strip() for text in request.answer):
            raise BadInput("The answer is empty. Send at least one text.", code="empty_answer")
        if len(request.answer) > 1 and not ask.multiple:
            raise BadInput("This question accepts only one answer.", code="one_answer")
        answered = msgspec.structs.replace(
            ask,
            state=AskState.ANSWERED,
            answer=request.answer,
            answered_by=request.client_id,
            answered_at=now(),
        )
        return await self._questions.answer(answered)

    def withdraw(self, run_id: str) -> Closing:
        """Withdraw the pending asks of a run."""
        closing = self._withdraw(lambda ask: ask.run_id == run_id)
        closing.waited_s = self._waits.take(run_id)
        return closing

    async def drop(self, run_id: str, call_id: str) -> None:
        """Withdraw the pending asks of a call that is over: a tool may have stopped waiting. Needs the run too, because
        providers number calls as they like, and another run may have a call with the same id."""
        await retry_store(partial(self._drop, run_id, call_id))

    async def _drop(self, run_id: str, call_id: str) -> None:
        closing = self._withdraw(lambda ask: (ask.run_id, ask.tool_call_id) == (run_id, call_id))
        if not closing.entries:
            return
        try:
            await self._store.submit(Unit(workspace_id=self._workspace_id, entries=closing.entries))
        except StoreUnavailable:
            for wait in closing.again:
                wait()
            raise

    async def load(self) -> None:
        await self._permissions.load()
        await self._questions.load()

    def calls(self, run_id: str) -> set[str]:
        """Return the calls of a run that wait for an answer and so have done nothing yet."""
        return self._permissions.calls(run_id) | self._questions.calls(run_id)

    def _withdraw(self, about: Callable[[Permission | Question], bool]) -> Closing:
        closing = Closing()
        self._permissions.withdraw(about, closing)
        self._questions.withdraw(about, closing)
        return closing


def _grantee(ask: Permission) -> str:
    """The session that gets what is granted: of a sub-agent its parent, the one that people know."""
    return ask.parent_session_id or ask.session_id


def _covers(granted: Sequence[str], ask: Permission) -> bool:
    """Whether these rules are what the ask offers to grant."""
    return any(offer and set(offer) <= set(granted) for offer in (ask.grant, ask.wide))


def _check(request: AnswerPermission | AnswerQuestion) -> None:
    if request.client_id is not None:
        check_own_id(request.client_id, field="client_id")


def _check_pending(ask: Ask | None, missing: NotFound) -> Ask:
    """Return the ask, if it exists and no one has answered it yet."""
    if ask is None:
        raise missing
    if ask.state is not AskState.PENDING:
        raise _already_answered(ask)
    return ask


def _already_answered(ask: Permission | Question | None) -> AlreadyAnswered:
    who = ask.answered_by if ask is not None else None
    return AlreadyAnswered(person(who) if who else None, _describe_end(ask))


def _granted(ask: Permission, request: AnswerPermission) -> tuple[str, ...]:
    """The rules that the answer adds."""
    if request.answer not in (PermissionAnswer.SESSION, PermissionAnswer.ALWAYS):
        return ()
    rules = ask.wide if request.wide and ask.wide else ask.grant
    if not rules:
        raise BadInput("This call can only be allowed once or denied.", code="no_grant")
    return rules


def _entry(ask: Permission | Question, change: Change, payload: msgspec.Struct) -> Entry:
    return Entry.of(change, payload, session_id=ask.session_id, parent=ask.parent_session_id)


def _notification(ask: Permission | Question) -> PermissionNotification | QuestionNotification:
    if isinstance(ask, Permission):
        return PermissionNotification(
            id=ask.id,
            session_id=ask.session_id,
            run_id=ask.run_id,
            state=ask.state,
            answer=ask.answer,
            reason=ask.reason,
            answered_by=ask.answered_by,
            parent_run_id=ask.parent_run_id,
            parent_session_id=ask.parent_session_id,
        )
    return QuestionNotification(
        id=ask.id,
        session_id=ask.session_id,
        run_id=ask.run_id,
        state=ask.state,
        answer=ask.answer,
        answered_by=ask.answered_by,
        parent_run_id=ask.parent_run_id,
        parent_session_id=ask.parent_session_id,
    )


def _describe_end(ask: Permission | Question | None) -> str:
    """Describe how an ask ended."""
    if ask is None or ask.state is AskState.WITHDRAWN:
        return "its run ended"
    if isinstance(ask, Permission):
        return f"the answer was {ask.answer}"
    return f"the answer was {', '.join(ask.answer)}"
