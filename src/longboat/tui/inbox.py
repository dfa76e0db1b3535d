"""The inbox over all workspaces: follows it, shows its dialog, sends answers, and remembers what was seen.

Must not know how the dialogs look.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from longboat.client.inbox import InboxMirror
from longboat.errors import LongboatError
from longboat.tui.dialogs.asks import Gone
from longboat.tui.dialogs.inbox import AnswerItem, InboxDialog, OpenItem, SeeAll
from longboat.tui.dialogs.permission import PermissionDecision, PermissionDialog
from longboat.tui.dialogs.question import QuestionAnswered, QuestionDialog
from longboat.wire.inbox import InboxItem, InboxKind

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp

PAGE = 500
"""The most items that one request reads or marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingElsewhere:
    """What waits in other workspaces, and which runs ended unseen in other sessions."""

    asks: int = 0
    questions: int = 0
    ended: int = 0
    """Runs that ended in other sessions, of any workspace, and that the person has not seen."""
    failed: int = 0
    """How many of those failed."""


class InboxActions:
    def __init__(self, app: "LongboatApp") -> None:
        self._app = app
        self.mirror = InboxMirror()
        self._list: InboxDialog | None = None
        self._answering: tuple[InboxItem, PermissionDialog | QuestionDialog] | None = None
        self._marked: set[str] = set()
        """What this terminal has marked as seen: the server need not be told twice."""

    @property
    def elsewhere(self) -> WaitingElsewhere:
        here = self._app.connection.workspace_id
        asks = [item for item in self.mirror.items if item.kind.waits and item.workspace_id != here]
        ended = [item for item in self.mirror.items if self._is_news(item)]
        return WaitingElsewhere(
            asks=len(asks),
            questions=sum(item.kind is InboxKind.QUESTION for item in asks),
            ended=len(ended),
            failed=sum(item.kind is InboxKind.FAILED for item in ended),
        )

    def _is_news(self, item: InboxItem) -> bool:
        """Whether a run ended elsewhere, as far as this person knows: this terminal may have marked it just now."""
        elsewhere = item.session_id != self._app.current.session_id
        return elsewhere and not (item.kind.waits or item.seen or item.id in self._marked)

    async def follow(self) -> None:
        """Keep the copy of the inbox up to date forever. A server without an inbox is left alone."""
        client, here = self._app.connection.client, self._app.connection.workspace_id
        try:
            async for event in client.inbox_events():
                new = self.mirror.apply(event)
                await self._load_waiting()
                self.refresh()
                if any(item.kind.waits and item.workspace_id != here for item in new):
                    self._app.call_attention("Another workspace needs your answer.")
        except LongboatError as error:
            self._app.log.warning(f"Cannot load the inbox: {error.message}")

    async def _load_waiting(self) -> None:
        """Load older pages until everything that waits is there. The stream waits meanwhile: what it says next is newer
        than the pages."""
        try:
            while self.mirror.lacks_waiting:
                self.mirror.take(await self._app.connection.client.inbox(limit=PAGE, before=self.mirror.next))
        except LongboatError as error:  # the next event tries again
            self._app.log.warning(f"Cannot load older items of the inbox: {error.message}")

    @property
    def _listed(self) -> list[InboxItem]:
        """What waits for an answer, then the runs that have ended; newest first within each."""
        return sorted(self.mirror.items, key=lambda item: not item.kind.waits)

    def refresh(self) -> None:
        """Update what is shown: the inbox changed, or another session is current."""
        items = self.mirror.items
        self._app.show_state()
        if self._list is not None:
            self._list.show(self._listed)
        if self._answering is not None and not self.mirror.lacks_waiting:
            answered, dialog = self._answering
            if answered.id not in {item.id for item in items}:
                dialog.withdrawn(None, None)
        if self._app.app_focus:
            self._see([item for item in items if item.session_id == self._app.current.session_id])

    def open(self) -> None:
        self._list = InboxDialog(self._listed)
        self._app.push_screen(self._list, self._chosen)

    def _chosen(self, choice: AnswerItem | OpenItem | SeeAll | None) -> None:
        self._list = None
        match choice:
            case AnswerItem(item=item):
                self._show(item)
                return
            case OpenItem(item=item):
                self._go(item)
            case SeeAll(up_to=newest):
                self._app.run_worker(self._mark(up_to=newest), name="seen")
        self._app.call_later(self._app.asking.refresh)

    def _show(self, item: InboxItem) -> None:
        self._see([item])
        if item.permission is not None:
            permission = PermissionDialog(item.permission, asked_by=item.client_id or "", grace_s=0)
            self._answering = (item, permission)
            self._app.push_screen(permission, lambda result: self._ended(item, result))
        elif item.question is not None:
            question = QuestionDialog(item.question, grace_s=0)
            self._answering = (item, question)
            self._app.push_screen(question, lambda result: self._ended(item, result))

    def _ended(self, item: InboxItem, result: PermissionDecision | QuestionAnswered | Gone | None) -> None:
        self._answering = None
        if isinstance(result, PermissionDecision | QuestionAnswered):
            self._app.attempt(partial(self._answer, item, result))
        self._app.call_later(self.open)  # the next one may wait

    async def _answer(self, item: InboxItem, result: PermissionDecision | QuestionAnswered) -> None:
        client = self._app.connection.client
        if isinstance(result, PermissionDecision) and item.permission is not None:
            await client.answer_permission(
                item.workspace_id, item.permission.id, result.answer, wide=result.wide, reason=result.reason
            )
        elif isinstance(result, QuestionAnswered) and item.question is not None:
            await client.answer_question(item.workspace_id, item.question.id, *result.answer)

    def _go(self, item: InboxItem) -> None:
        self._see([item])
        if item.workspace_id == self._app.connection.workspace_id:
            self._app.open_session(item.session_id)
        else:
            self._app.tell_where(item.session_id, item.workspace_path)

    def _see(self, items: list[InboxItem]) -> None:
        unseen = [item.id for item in items if not item.seen and item.id not in self._marked]
        if unseen:
            self._marked |= set(unseen)
            for start in range(0, len(unseen), PAGE):
                self._app.run_worker(self._mark(*unseen[start : start + PAGE]), name="seen")

    async def _mark(self, *ids: str, up_to: str | None = None) -> None:
        try:
            await self._app.connection.client.mark_seen(*ids, up_to=up_to)
        except LongboatError as error:
            self._marked -= set(ids)
            self._app.log.warning(f"Cannot mark as seen: {error.message}")
