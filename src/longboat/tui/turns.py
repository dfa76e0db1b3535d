"""Undoes, restores, retries and copies turns: `/undo`, `/redo`, ctrl+r, and the actions on a message.

Must not know keys. Requests run in a worker; errors are shown; nothing is retried that could take effect twice.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from longboat.tui.content import line
from longboat.tui.dialogs.confirm import ConfirmDialog, Confirmed
from longboat.tui.keys import LEADER
from longboat.tui.message_actions import Deed, name_of, text_of
from longboat.tui.prompt_outbox import Kind, Outgoing, Progress
from longboat.wire.models import Attachment, Delivery, FilePart, Message, Outcome, Role, Run
from longboat.wire.workspace_state import FileFate, Undone, UndoneFile

if TYPE_CHECKING:
    from longboat.client import Client
    from longboat.tui.app import LongboatApp

FAILED = (Outcome.ERROR, Outcome.INTERRUPTED, Outcome.CANCELED)
_FATES = {FileFate.RESTORED: "restored", FileFate.RECREATED: "created again", FileFate.REMOVED: "removed"}


class UndoneLine(Static):
    """Below the newest message: what was undone, and how to restore it. Hidden if nothing can be restored."""

    DEFAULT_CSS = """
    UndoneLine { height: auto; margin: 0 0 1 2; color: $text-warning; display: none; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.turns = 0

    def show(self, turns: int, prompt: str = "", files: Sequence[UndoneFile] = ()) -> None:
        self.turns, self.display = turns, turns > 0
        what = f"Undone: {prompt}." if turns == 1 and prompt else f"{turns} turns undone."
        rows = [
            line(f"↶ {what}", width=160),
            *(line(f"  {file.path} {_FATES[file.fate]}", width=160) for file in files),
        ]
        rows.append(Content.styled(f"  /redo or {LEADER} r redoes {'it' if turns == 1 else 'the last one'}.", "dim"))
        self.update(Content("\n").join(rows))


class Turns:
    def __init__(self, app: "LongboatApp") -> None:
        self._app = app
        self.line = UndoneLine()
        self._restored = ""
        """The prompt that was put back into the composer."""

    def forget(self) -> None:
        """Another session is shown, or a new prompt was accepted: nothing can be restored from here."""
        self.line.show(0)

    # -- undo and redo

    def undo(self, session_id: str) -> None:
        self._app.attempt(partial(self._undo, session_id, None))

    def redo(self, session_id: str) -> None:
        self._app.attempt(partial(self._redo, session_id))

    def _ask_undo(self, message: Message) -> None:
        sentence = f"Undo all turns from {name_of(message)} on? Files that they changed are restored."
        dialog = ConfirmDialog(sentence, yes="Undo", no="Keep")
        self._app.push_screen(dialog, lambda answer: self._confirmed(message, answer))

    def _confirmed(self, message: Message, answer: Confirmed | None) -> None:
        self._app.asking.refresh()
        if answer is not None:
            self._app.attempt(partial(self._undo, message.session_id, message))

    async def _undo(self, session_id: str, until: Message | None) -> None:
        """Undo the last turn, or all turns down to the one of a message."""
        fates: dict[str, UndoneFile] = {}
        turns, first = 0, None
        try:
            while turns == 0 or (until is not None and await self._is_there(until)):
                known = self._app.current.transcript.messages
                undone = await self._client.undo(self._workspace_id, session_id)
                turns += 1
                first = self._prompt_of(undone, known) or first
                fates |= {file.path: file for file in undone.fates}
        finally:
            if turns and session_id == self._app.current.session_id:
                self._undone(self.line.turns + turns, first, list(fates.values()))

    async def _is_there(self, message: Message) -> bool:
        """Whether a message is still part of its session."""
        page = await self._client.messages(self._workspace_id, message.session_id, limit=1, before="")
        return bool(page.items) and page.items[-1].seq >= message.seq

    def _undone(self, turns: int, prompt: Message | None, files: list[UndoneFile]) -> None:
        self.line.show(turns, name_of(prompt) if prompt is not None else "", files)
        if prompt is not None:
            self._put_back(text_of(prompt), attachments_of(prompt))

    async def _redo(self, session_id: str) -> None:
        undone = await self._client.redo(self._workspace_id, session_id)
        if session_id != self._app.current.session_id:
            return
        composer, left = self._app.composer, max(0, self.line.turns - 1)
        self.line.show(left)
        if self._restored and composer.input.text == self._restored:
            composer.put("")  # it is in the transcript again
        self._restored = ""
        files = f" Restored: {', '.join(undone.files)}" if undone.files else " No files were changed."
        self._app.notify(f"1 turn redone.{files}", markup=False)

    def _prompt_of(self, undone: Undone, messages: Sequence[Message]) -> Message | None:
        """The first prompt of an undone turn, as far as it was read."""
        of_turn = [each for each in messages if each.run_id == undone.run_id and each.role is Role.USER]
        return of_turn[0] if of_turn else None

    def _put_back(self, text: str, attachments: tuple[Attachment, ...]) -> None:
        """Put a prompt into the composer, unless something is being written there: then it stays in the history."""
        composer = self._app.composer
        if composer.input.text.strip() or composer.attachments:
            composer.history.add(text)
            self._app.notify("The prompt is in the history: ↑ recalls it.")
        else:
            composer.put(text, attachments)
            self._restored = composer.input.text
        composer.input.focus()

    # -- a message

    def do(self, deed: Deed, message: Message) -> None:
        match deed:
            case Deed.COPY:
                self._copy(text_of(message))
            case Deed.FORK:
                self._app.attempt(partial(self._fork, message))
            case Deed.UNDO:
                self._ask_undo(message)
            case Deed.EDIT:
                self._app.attempt(partial(self._edit, message))

    def _copy(self, text: str) -> None:
        if text.strip():
            self._app.copy_to_clipboard(text)
        self._app.notify("Copied." if text.strip() else "No text to copy.")

    async def _fork(self, message: Message) -> None:
        session = await self._client.fork_session(self._workspace_id, message.session_id, message.id)
        self._app.open_session(session.id)
        self._app.notify("Forked after this message. The original session is unchanged.")

    async def _edit(self, message: Message) -> None:
        """Continue in a copy of what was before a prompt, with the prompt in the composer. Nothing is lost."""
        before = [each for each in self._app.current.transcript.messages if each.seq < message.seq]
        if before:
            session = await self._client.fork_session(self._workspace_id, message.session_id, before[-1].id)
            self._app.open_session(session.id)
        else:
            self._app.open_session(None)
        self._put_back(text_of(message), attachments_of(message))
        self._app.notify("Forked before this prompt. The original session is unchanged.")

    # -- retry

    def retry(self) -> None:
        """Resend rejected prompts; if there are none, the last prompt if its run failed or was canceled."""
        app = self._app
        rejected = [prompt for prompt in app.sender.waiting if prompt.progress is Progress.REFUSED]
        for prompt in rejected:
            app.sender.retry(prompt)
        if rejected:
            return
        run = self.failed_run()
        if run is None:
            app.notify("Nothing to retry: the last run did not fail.")
            return
        sent = [
            each for each in app.current.transcript.messages if each.run_id == run.run_id and each.role is Role.USER
        ]
        shell = run.prompt.startswith("!")
        app.sender.post(
            Outgoing(
                text=run.prompt.removeprefix("!") if shell else run.prompt,
                kind=Kind.SHELL if shell else Kind.PROMPT,
                attachments=attachments_of(sent[0]) if sent else (),
                model=app.model,
                effort=app.effort,
                approve=app.approve,
                delivery=Delivery.QUEUE if run.plan else Delivery.STEER,
                plan=run.plan,
                session_id=run.session_id,
            )
        )

    def failed_run(self) -> Run | None:
        """The newest run, if it failed and nothing else is going on."""
        current = self._app.current
        own = [run for run in current.runs.values() if run.folded_into is None]
        newest = max(own, key=lambda run: run.seq, default=None)
        return newest if newest is not None and not current.unfinished and newest.outcome in FAILED else None

    @property
    def last_failed(self) -> bool:
        """Whether the newest run failed by itself."""
        run = self.failed_run()
        return run is not None and run.outcome is not Outcome.CANCELED

    # -- ways to work

    @property
    def _client(self) -> "Client":
        return self._app.connection.client

    @property
    def _workspace_id(self) -> str:
        return self._app.connection.workspace_id


def attachments_of(message: Message) -> tuple[Attachment, ...]:
    return tuple(
        Attachment(name=part.name, media_type=part.media_type, text=part.text, data=part.data)
        for part in message.parts
        if isinstance(part, FilePart)
    )
