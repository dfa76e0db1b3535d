"""Shows the session's permission requests and questions, one dialog at a time; closes it if someone else answers. A
prompt sent while one is pending answers it. Must not know how the dialogs look."""

import time
from typing import TYPE_CHECKING

from longboat.errors import AlreadyAnswered, LongboatError
from longboat.tui.answering import AnswerLine, decide, is_answer
from longboat.tui.composer import Composed
from longboat.tui.dialogs.asks import Gone, told_permission, told_question
from longboat.tui.dialogs.frame import GRACE_S, Clock
from longboat.tui.dialogs.permission import PermissionDecision, PermissionDialog
from longboat.tui.dialogs.question import QuestionAnswered, QuestionDialog
from longboat.tui.toolcard import WAITING
from longboat.wire.asks import (
    AskState,
    CallAnswer,
    Permission,
    PermissionNotification,
    Question,
    QuestionNotification,
)

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp

Ask = Permission | Question


class AskDialogs:
    def __init__(self, app: "LongboatApp") -> None:
        self._app = app
        self._known: dict[str, Ask] = {}
        self._open: PermissionDialog | QuestionDialog | None = None
        self._later: set[str] = set()
        """The ids of postponed requests."""
        self._sending: set[str] = set()
        """The ids of requests whose answer is being sent."""
        self.grace_s = GRACE_S
        """How long what is typed does not count after a request came or went: it was meant for something else."""
        self.clock: Clock = time.monotonic
        self._changed_at = float("-inf")
        """When someone else answered what was being typed an answer to, by the clock."""

    @property
    def pending(self) -> list[Ask]:
        """The pending requests of this session and its sub-agents, oldest first."""
        ours = [ask for ask in self._all if self._is_ours(ask)]
        return sorted(ours, key=lambda ask: ask.asked_at)

    @property
    def elsewhere(self) -> list[Ask]:
        """The pending requests of other sessions."""
        return [ask for ask in self._all if not self._is_ours(ask)]

    @property
    def sessions(self) -> set[str]:
        """The sessions with a pending request, their own or a sub-agent's."""
        return {ask.parent_session_id or ask.session_id for ask in self._all}

    @property
    def _all(self) -> list[Ask]:
        mirror = self._app.connection.mirror
        return [*mirror.permissions.values(), *mirror.questions.values()]

    def _is_ours(self, ask: Ask) -> bool:
        return self._app.current.is_ours(ask.session_id, ask.parent_session_id)

    @property
    def _next(self) -> Ask | None:
        """The request that a typed text would answer."""
        return next((ask for ask in self.pending if ask.id not in self._sending), None)

    def show_line(self) -> None:
        """Say what enter will do, unless the keys go to a request's dialog."""
        ask = self._next
        self._app.composer.input.answers = ask is not None
        for shown in self._app.query(AnswerLine):
            shown.show(ask if self._open is None else None, self._app.composer.input.text)

    def take(self, sent: Composed) -> bool:
        """Take what was sent from the composer as the answer to the oldest request; False if it is not one."""
        if sent.as_prompt or sent.attachments or not is_answer(sent.text):
            return False
        if sent.place[0] != self._app.current.session_id:
            return False
        if self.clock() - self._changed_at < self.grace_s:  # it was meant for a request that is gone
            self._app.composer.give_back((), sent.text)
            return True
        ask = self._next
        if ask is not None:
            self._sending.add(ask.id)
            self._later.add(ask.id)
            self._app.run_worker(self._answer(ask, decide(ask, sent.text), typed=sent.text), name="answer")
            self.show_line()
        return ask is not None

    def recall(self) -> None:
        """Show postponed requests again."""
        if not self.pending:
            self._app.notify("No pending requests in this session.")
        self._later.clear()
        self.refresh()

    def refresh(self) -> None:
        """Update the dialog: something was asked or answered, or another session is shown."""
        pending = self.pending
        for ask in pending:
            if ask.id not in self._known:
                self._known[ask.id] = ask
                self._app.view.remark(ask.run_id, ask.tool_call_id, WAITING)
        ids = {ask.id for ask in pending}
        if self._open is not None and self._ask_of(self._open).id not in ids:
            self._open.withdrawn(None, None)
        waiting = [ask for ask in pending if ask.id not in self._later]
        if self._open is None and waiting and len(self._app.screen_stack) == 1:
            self._show(waiting[0], len(pending))

    def settle(self, told: PermissionNotification | QuestionNotification) -> None:
        """Handle a request that was answered or whose run ended. Called before `refresh`."""
        ask = self._known.pop(told.id, None)
        self._later.discard(told.id)
        answered = told.state is AskState.ANSWERED
        mine = told.answered_by is not None and not self._app.current.other(told.answered_by)
        if ask is not None and told.id not in self._sending and is_answer(self._app.composer.input.text):
            self._changed_at = self.clock()
        if ask is not None:
            self._app.view.remark(ask.run_id, ask.tool_call_id, self._app.view.describe_answers(*_answer_in(told)))
        match self._open, told:
            case PermissionDialog() as dialog, PermissionNotification() if dialog.permission.id == told.id:
                dialog.withdrawn(told.answered_by, told.answer if answered else None)
            case QuestionDialog() as dialog, QuestionNotification() if dialog.question.id == told.id:
                dialog.withdrawn(told.answered_by, told.answer if answered else None)
            case _ if ask is not None and answered and not mine:
                self._app.notify(_describe_end(ask, told), markup=False)

    def _show(self, ask: Ask, count: int) -> None:
        match ask:
            case Permission():
                run = self._app.current.runs.get(ask.parent_run_id or ask.run_id)
                asked_by = self._app.current.other(run.client_id) if run is not None and run.client_id else ""
                permission = PermissionDialog(ask, asked_by=asked_by, of=count, grace_s=self.grace_s, clock=self.clock)
                self._open = permission
                self._app.push_screen(permission, lambda result: self._ended(ask, result))
            case Question():
                question = QuestionDialog(ask, grace_s=self.grace_s, clock=self.clock)
                self._open = question
                self._app.push_screen(question, lambda result: self._ended(ask, result))
        self.show_line()

    def _ended(self, ask: Ask, result: PermissionDecision | QuestionAnswered | Gone | None) -> None:
        self._open = None
        match result:
            case None:
                self._later.add(ask.id)
                self._app.notify("Postponed. ctrl+g reopens it.")
            case PermissionDecision() | QuestionAnswered():
                self._later.add(ask.id)  # do not reopen it while the answer is being sent
                self._sending.add(ask.id)
                self._app.run_worker(self._answer(ask, result), name="answer")
        self.show_line()
        self._app.call_later(self.refresh)

    async def _answer(self, ask: Ask, result: PermissionDecision | QuestionAnswered, *, typed: str = "") -> None:
        """`typed`: the text that the answer was made from. It is not lost if the answer is refused."""
        client, workspace_id = self._app.connection.client, self._app.connection.workspace_id
        try:
            match result:
                case PermissionDecision():
                    await client.answer_permission(
                        workspace_id, ask.id, result.answer, wide=result.wide, reason=result.reason
                    )
                case QuestionAnswered():
                    await client.answer_question(workspace_id, ask.id, *result.answer)
        except AlreadyAnswered as first:
            self._changed_at = self.clock()
            self._app.composer.give_back((), typed)
            kept = " Your text is in the prompt again." if typed else ""
            self._app.notify(f"{first.message}{kept}", markup=False)
        except LongboatError as error:
            self._later.discard(ask.id)
            self._app.composer.give_back((), typed)
            self._app.notify(f"Could not send the answer: {error.message}", severity="error", markup=False)
            self.refresh()
        finally:
            self._sending.discard(ask.id)
            self.show_line()

    @staticmethod
    def _ask_of(dialog: PermissionDialog | QuestionDialog) -> Ask:
        return dialog.permission if isinstance(dialog, PermissionDialog) else dialog.question


def _answer_in(told: PermissionNotification | QuestionNotification) -> list[CallAnswer]:
    """The answer in the form that the call's result will have."""
    if told.state is not AskState.ANSWERED:
        return []
    answer = told.answer if isinstance(told, PermissionNotification) else None
    return [CallAnswer(answer=answer, answered_by=told.answered_by)]


def _describe_end(ask: Ask, told: PermissionNotification | QuestionNotification) -> str:
    if isinstance(ask, Permission) and isinstance(told, PermissionNotification):
        return told_permission(ask.title, told.answered_by, told.answer)
    if isinstance(ask, Question) and isinstance(told, QuestionNotification):
        return told_question(ask.text, told.answered_by, told.answer)
    return "Someone else answered."
