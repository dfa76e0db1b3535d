"""Implements the built-in commands: one method each, named after its command. Requests run in a worker.

Must not know keys. Errors are shown; nothing is retried that could take effect twice.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from os.path import expanduser
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from longboat.client.transport import is_remote
from longboat.tui import keys
from longboat.tui.attachments import Unsuitable, from_name
from longboat.tui.dialogs.confirm import ConfirmDialog, Confirmed, TextDialog, Written
from longboat.tui.dialogs.diffs import Comments, DiffDialog
from longboat.tui.dialogs.export import ExportChoice, ExportDialog
from longboat.tui.dialogs.find import FindDialog, FoundMessage
from longboat.tui.dialogs.help import DIALOG_HELP, HelpScreen, HelpSection
from longboat.tui.dialogs.models import ConnectWanted, ModelChoice, ModelPicker
from longboat.tui.dialogs.sessions import ForkSession, NewSession, OpenSession, SessionList, ShowElsewhere, last_words
from longboat.tui.editor import NotEdited, edited, open_file
from longboat.tui.finding import find
from longboat.tui.prompt_outbox import Kind, Outgoing
from longboat.wire.models import Message, Role, Session, TextPart
from longboat.wire.plain import plain
from longboat.wire.requests import Approve, Effort
from longboat.wire.review import ChangedFile, ChangesPage, UndoneChange
from longboat.wire.search import SearchHit

if TYPE_CHECKING:
    from longboat.client import Client
    from longboat.tui.app import LongboatApp

EFFORTS: tuple[Effort, ...] = get_args(Effort)
_APPROVE_ALL = "“Approve all” is on: your prompts run commands and change files without asking."
SEARCHED = 100
"""Messages read at a time for a search."""
HITS = 30
"""The most messages found in this directory, and in the others."""


class CommandActions:
    def __init__(self, app: "LongboatApp") -> None:
        self._app = app

    def do(self, name: str, argument: str = "") -> None:
        deed: Callable[[str], None] = getattr(self, name)
        deed(argument)

    # -- the session

    def new(self, _: str) -> None:
        self._app.open_session(None)

    def sessions(self, _: str) -> None:
        client, workspace_id = self._client, self._workspace_id

        async def search(words: str) -> Sequence[Session]:
            return (await client.sessions(workspace_id, search=words, top=True)).items

        async def search_text(words: str) -> Sequence[SearchHit]:
            here = await client.search_sessions(words, workspace_id=workspace_id, limit=HITS)
            everywhere = await client.search_sessions(words, limit=HITS)
            return (*here.items, *(hit for hit in everywhere.items if hit.workspace_id != workspace_id))

        async def preview(session_id: str) -> str:
            return last_words((await client.messages(workspace_id, session_id, limit=10, before="")).items)

        dialog = SessionList(
            search,
            rename=lambda session_id, title: client.rename_session(workspace_id, session_id, title),
            delete=lambda session_id: client.delete_session(workspace_id, session_id),
            search_text=search_text,
            preview=preview,
            pin=lambda session: client.mark_session(workspace_id, session.id, pinned=not session.pinned),
            archive=lambda session: client.mark_session(workspace_id, session.id, archived=True),
            current=self._app.current.session_id,
            asking=self._app.asking.sessions,
            workspace_id=workspace_id,
        )
        self._app.push_screen(dialog, self._sessions_left)

    def _sessions_left(self, choice: OpenSession | ShowElsewhere | ForkSession | NewSession | None) -> None:
        match choice:
            case OpenSession(session_id=session_id, message_id=None):
                self._app.open_session(session_id)
            case OpenSession(session_id=session_id, message_id=str(message_id)):
                self._app.attempt(partial(self._open_at, session_id, message_id))
            case ShowElsewhere(session_id=session_id, workspace_path=path):
                self._app.tell_where(session_id, path)
            case ForkSession(session_id=session_id):
                self._app.attempt(partial(self._fork, session_id))
            case NewSession():
                self._app.open_session(None)
        self._app.call_later(self._app.asking.refresh)

    async def _open_at(self, session_id: str, message_id: str) -> None:
        """Open a session and show a message in it, however old it is."""
        if session_id != self._app.current.session_id:
            self._app.open_session(session_id)
        await self._app.wait_read()
        current = self._app.current
        while current.session_id == session_id and all(each.id != message_id for each in current.transcript.messages):
            if not await current.read_older(SEARCHED):
                break
        if current.session_id == session_id:
            await self._reveal(message_id)

    def fork(self, _: str) -> None:
        if session_id := self._session_id():
            self._app.attempt(partial(self._fork, session_id))

    async def _fork(self, session_id: str) -> None:
        session = await self._client.fork_session(self._workspace_id, session_id)
        self._app.open_session(session.id)

    def rename(self, title: str) -> None:
        session_id = self._session_id()
        if session_id is None:
            return
        if title:
            self._app.attempt(partial(self._client.rename_session, self._workspace_id, session_id, title))
            return
        session = self._app.current.session
        dialog = TextDialog("Title:", text=session.title if session is not None else "")
        self._app.push_screen(dialog, lambda written: self._renamed(session_id, written))

    def _renamed(self, session_id: str, written: Written | None) -> None:
        self._app.asking.refresh()
        if written is not None:
            self._app.attempt(partial(self._client.rename_session, self._workspace_id, session_id, written.text))

    def undo(self, _: str) -> None:
        if session_id := self._session_id():
            self._app.turns.undo(session_id)

    def redo(self, _: str) -> None:
        if session_id := self._session_id():
            self._app.turns.redo(session_id)

    def find(self, text: str) -> None:
        if self._session_id():
            current = self._app.current
            dialog = FindDialog(
                lambda words: find(current.transcript.messages, words), lambda: current.read_older(SEARCHED), text=text
            )
            self._app.push_screen(dialog, self._found)

    def _found(self, found: FoundMessage | None) -> None:
        self._app.asking.refresh()
        if found is not None:
            self._app.run_worker(self._reveal(found.message_id), name="reveal")

    async def _reveal(self, message_id: str) -> None:
        view = await self._app.view.reveal(message_id)
        if view is not None:
            self._app.message_bar.select(view)

    def expand(self, _: str) -> None:
        self._app.view.expand_all(expanded=not self._app.view.expanded)

    def summarize(self, _: str) -> None:
        if session_id := self._session_id():
            self._app.sender.post(Outgoing(text="Summarize", kind=Kind.SUMMARY, session_id=session_id))

    def export(self, path: str) -> None:
        session_id, session = self._session_id(), self._app.current.session
        if session_id is None:
            return
        if path:
            style = "json" if path.endswith(".json") else "markdown"
            self._app.attempt(partial(self._write, session_id, path, style))
            return
        title = session.title if session is not None else ""
        dialog = ExportDialog(title, path=f"longboat-{session_id[-8:]}.md")
        self._app.push_screen(dialog, lambda choice: self._exported(session_id, choice))

    def _exported(self, session_id: str, choice: ExportChoice | None) -> None:
        self._app.asking.refresh()
        if choice is not None:
            self._app.attempt(partial(self._write, session_id, choice.path, choice.format))

    async def _write(self, session_id: str, path: str, style: str) -> None:
        """Write the export on the machine of this terminal, which may not be the server's."""
        text = await self._client.export_text(self._workspace_id, session_id, style)
        try:
            written = await asyncio.to_thread(_write, path, text)
        except OSError as error:
            self._app.notify(f"Cannot write {path}: {error.strerror or error}", severity="error", markup=False)
        else:
            self._app.notify(f"Saved to {written}", markup=False)

    def diff(self, _: str) -> None:
        if session_id := self._session_id():
            self._app.attempt(partial(self._show_diff, session_id))

    async def _show_diff(self, session_id: str) -> None:
        client, workspace_id = self._client, self._workspace_id

        async def undo(file: ChangedFile, hunks: Sequence[int] | None) -> ChangesPage:
            await client.revert(workspace_id, session_id, file.path, digest=file.digest, hunks=hunks)
            return await client.changes(workspace_id, session_id=session_id)

        async def redo(undone: UndoneChange) -> ChangesPage:
            await client.redo_revert(workspace_id, session_id, undone.revert_id)
            return await client.changes(workspace_id, session_id=session_id)

        async def edit(file: ChangedFile, line: int) -> ChangesPage:
            if is_remote(client.address):
                raise NotEdited("The file is on the server’s machine, so your editor cannot open it.")
            open_file(self._app, Path(self._app.connection.path, file.path), line)
            return await client.changes(workspace_id, session_id=session_id)

        page = await client.changes(workspace_id, session_id=session_id)
        self._app.push_screen(DiffDialog(page, undo, redo, edit), self._reviewed)

    def _reviewed(self, comments: Comments | None) -> None:
        if comments is not None:
            self._app.composer.give_back((), comments.text)
        self._app.asking.refresh()

    def cancel(self, _: str) -> None:
        if session_id := self._session_id():
            self._app.interrupting.cancel_all(session_id)

    def inbox(self, _: str) -> None:
        self._app.inbox.open()

    # -- how the next prompts are answered

    def model(self, name: str) -> None:
        if name:
            self._app.model = name
            self._app.show_state()
            self._app.show_notices()
        else:
            self._app.attempt(self._pick_model)

    async def _pick_model(self) -> None:
        page = await self._client.offered_models(self._workspace_id)
        self._app.models = page
        picker = ModelPicker(page, current=self._app.model, effort=self._app.effort)
        self._app.push_screen(picker, self._picked)

    def _picked(self, choice: ModelChoice | ConnectWanted | None) -> None:
        if isinstance(choice, ConnectWanted):
            self._app.model_setup.open()
            return
        if choice is not None:
            self._app.model = choice.model
            self._app.effort = next((each for each in EFFORTS if each == choice.effort), None)
            self._app.show_state()
            self._app.show_notices()
        self._app.asking.refresh()

    def connect(self, _: str) -> None:
        self._app.model_setup.open()

    def effort(self, level: str) -> None:
        if level and level not in EFFORTS:
            self._app.notify(f"Unknown effort. Choose one of {', '.join(EFFORTS)}.", severity="error")
            return
        following = {None: "low", "low": "medium", "medium": "high", "high": None}
        wanted = level or following[self._app.effort]
        self._app.effort = next((each for each in EFFORTS if each == wanted), None)
        self._app.notify(f"Effort: {self._app.effort or 'default'}")
        self._app.show_state()

    def plan(self, _: str) -> None:
        self._app.plan = not self._app.plan
        self._app.show_state()

    def yolo(self, _: str) -> None:
        if self._app.approve is Approve.ALL:
            self._set_approval(Approve.ASK)
            return
        sentence = (
            "Turn on “Approve all”? Prompts that you send from this terminal run commands and change files without "
            "asking, until you turn this off or quit. Deny rules still apply. Other people's prompts still need "
            "approval."
        )
        dialog = ConfirmDialog(sentence, yes="Turn on", no="Keep asking")
        self._app.push_screen(dialog, self._yolo_confirmed)

    def _yolo_confirmed(self, answer: Confirmed | None) -> None:
        self._app.asking.refresh()
        if answer is not None:
            self._set_approval(Approve.ALL)

    def _set_approval(self, approve: Approve) -> None:
        self._app.approve = approve
        on = approve is Approve.ALL
        words = _APPROVE_ALL if on else "“Approve all” is off."
        self._app.notify(words, severity="warning" if on else "information")
        self._app.show_state()

    # -- this terminal

    def attach(self, name: str) -> None:
        try:
            self._app.composer.attach(from_name(name))
        except Unsuitable as why:
            self._app.notify(plain(str(why)), severity="error", markup=False)

    def copy(self, _: str) -> None:
        text = _last_answer(self._app.current.transcript.messages)
        if text:
            self._app.copy_to_clipboard(text)
        self._app.notify("Copied." if text else "No answer to copy yet.")

    def editor(self, _: str) -> None:
        prompt = self._app.composer.input
        try:
            prompt.put(edited(self._app, prompt.text))
        except NotEdited as why:
            self._app.notify(str(why), markup=False)

    def help(self, _: str) -> None:
        theirs = tuple((f"/{each.name} {each.argument_hint}", each.description) for each in self._app.project_commands)
        sections = [*keys.sections(), HelpSection(title="Commands", rows=keys.command_rows())]
        if theirs:
            sections.append(HelpSection(title="Project commands", rows=theirs))
        self._app.push_screen(HelpScreen([*sections, *DIALOG_HELP]), lambda _: self._app.asking.refresh())

    def quit(self, _: str) -> None:
        self._app.exit()

    def retry(self, _: str) -> None:
        self._app.turns.retry()

    def theme(self, name: str) -> None:
        self._app.theming.choose(name)

    def sidebar(self, _: str) -> None:
        self._app.action_side()

    # -- ways to work

    @property
    def _client(self) -> "Client":
        return self._app.connection.client

    @property
    def _workspace_id(self) -> str:
        return self._app.connection.workspace_id

    def _session_id(self) -> str | None:
        if self._app.current.session_id is None:
            self._app.notify("No session yet. Send a prompt first.", severity="warning")
        return self._app.current.session_id


def _write(path: str, text: bytes) -> Path:
    target = Path(expanduser(path)).absolute()
    target.write_bytes(text)
    return target


def _last_answer(messages: Sequence[Message]) -> str:
    for message in reversed(messages):
        text = "".join(part.text for part in message.parts if isinstance(part, TextPart))
        if message.role is Role.ASSISTANT and text.strip():
            return text
    return ""
