"""The app: its widgets, key bindings and workers.

`event_handling` handles events, `command_actions` runs commands, `ask_dialogs` shows permission requests and questions.
"""

import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import ClassVar

from textual import events, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.worker import Worker, WorkerError

from longboat.client import Client
from longboat.errors import LongboatError
from longboat.tui import app_exit, keys, suggestions, textual_fixes
from longboat.tui.answering import AnswerLine
from longboat.tui.ask_dialogs import AskDialogs
from longboat.tui.command_actions import CommandActions
from longboat.tui.commands import BY_NAME, command_in
from longboat.tui.composer import Completing, Composed, Composer, Drafted, PromptInput
from longboat.tui.connection import Connection
from longboat.tui.current_session import CurrentSession
from longboat.tui.dialogs.frame import Dialog
from longboat.tui.event_handling import EventHandling
from longboat.tui.inbox import InboxActions
from longboat.tui.leader import LeaderLine
from longboat.tui.message_actions import MessageBar
from longboat.tui.messages import MessageClicked
from longboat.tui.palette import open_palette
from longboat.tui.panels.queue import QueuePanel
from longboat.tui.prompt_outbox import Kind, Outgoing, Progress, Sender
from longboat.tui.prose import Prose
from longboat.tui.saved_state import SavedState
from longboat.tui.setup import Setup
from longboat.tui.sidebar import Sidebar
from longboat.tui.status import Header, HeaderContent, StatusBar, state_of
from longboat.tui.stopping import Stopping
from longboat.tui.tail import Notices, OutgoingView, show_outgoing
from longboat.tui.textual_fixes import on_canvas
from longboat.tui.theming import Theming
from longboat.tui.transcript import TranscriptView
from longboat.tui.turns import Turns
from longboat.tui.welcome import Welcome, WelcomeState
from longboat.wire.events import Event
from longboat.wire.ids import describe_people, new_id, person
from longboat.wire.listings import ModelPage, SessionOrder
from longboat.wire.models import Delivery, Workspace
from longboat.wire.requests import Approve, Effort
from longboat.wire.workspace_state import CommandInfo

HINT = "enter send · ctrl+j new line · ctrl+p commands · ctrl+x keys"
HINT_BUSY = "enter steer · ctrl+q queue · esc stop"
HINT_PLAN = "enter queue · esc stop"
HINT_ASKED = "enter answer · alt+enter steer · ctrl+q queue · esc stop"


class LongboatApp(App[None]):
    TITLE = "Longboat"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 — Textual declares it so
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-high")]  # noqa: RUF012
    ENABLE_COMMAND_PALETTE = False  # ours is in the style of the other dialogs
    BINDINGS: ClassVar[list[BindingType]] = keys.app_bindings()
    CSS_PATH = "app.tcss"

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        session_id: str | None = None,
        resume: bool = False,
        model: str | None = None,
        effort: Effort | None = None,
        approve: Approve = Approve.ASK,
        env: Mapping[str, str] | None = None,
        keeping: SavedState | None = None,
    ) -> None:
        super().__init__()
        self.keeping = keeping or SavedState(None)
        self._workers = textual_fixes.Workers(self)
        self.theming = Theming(self, self.keeping)
        self.model, self.effort, self.approve = model, effort, approve
        self.plan = False
        """Whether the next prompts plan first."""
        self.models: ModelPage | None = None
        self.workspace: Workspace | None = None
        self.project_commands: tuple[CommandInfo, ...] = ()
        self.connection = Connection(client, path, self, env=env)
        self.current = CurrentSession(self.connection)
        self.sender = Sender(self.connection, session=self._session, on_change=lambda _: self.show_tail())
        self.event_handling = EventHandling(self)
        self.asking = AskDialogs(self)
        self.inbox = InboxActions(self)
        self.command_actions = CommandActions(self)
        self.model_setup = Setup(self)
        self.interrupting = Stopping(self)
        self.turns = Turns(self)
        self.sidebar = Sidebar(self)
        self._runs_due = False
        self._reading: Worker[None] | None = None
        self.leaving = app_exit.AppExit(self)
        self.composer = Composer(lambda: (self.current.session_id, self.current.draft))
        self.view = TranscriptView(
            by=self.current.by,
            other=self.current.other,
            older=self.current.read_older,
            drawn=self.event_handling.show_newest,
        )
        self.welcome = Welcome(open_session=self.open_session, put_prompt=self.composer.suggest)
        self.welcome_read = WelcomeState()
        self.message_bar = MessageBar(self.view, act=self.turns.do, leave=self.composer.input.focus)
        self._resume = resume
        if session_id is not None:
            self.current.turn_to(session_id)
        self.told_problem = False
        self._wanted: dict[int, str] = {}
        self._made: dict[int, str] = {}
        """The ids of sessions to be created and already created for prompts, by draft."""
        self._failure = ""

    # -- the screen

    def get_default_screen(self) -> Screen[object]:
        return on_canvas(super().get_default_screen())

    def compose(self) -> ComposeResult:
        yield Header()
        with Horizontal(id="middle"):
            yield self.view
            yield self.sidebar
        with Vertical(id="bottom"):
            yield QueuePanel(id="queue")
            yield self.message_bar
            yield AnswerLine()
            yield self.composer
            yield LeaderLine(keys.leader_keys())
            yield StatusBar()

    def on_mount(self) -> None:
        self.theming.start()
        textual_fixes.watch(self)
        self.composer.history.remember(self.keeping.prompts(self.connection.path))
        self.view.mount(self.welcome, before=self.view.tail)
        self.view.tail.mount(self.turns.line, Notices())
        self.composer.input.focus()
        self.show_place()
        self.show_state()
        self._follow()

    # -- the connection (its Listener)

    @work(name="stream", exclusive=True, group="stream")
    async def _follow(self) -> None:
        try:
            await self.connection.follow()
        except LongboatError as error:
            self._failure = error.message
            self.exit(return_code=1)

    def joined(self, workspace: Workspace) -> None:
        self.show_workspace(workspace)
        self.run_worker(self._start(self._resume and self.current.session_id is None), name="start")

    async def _start(self, resume: bool) -> None:
        if resume:
            page = await self.connection.send_with_retry(
                lambda: self.connection.client.sessions(
                    self.connection.workspace_id, limit=1, top=True, order=SessionOrder.NEWEST
                )
            )
            if page.items:
                self._made[self.current.draft] = page.items[0].id  # prompts typed meanwhile go to it
                self.open_session(page.items[0].id)
        self.run_worker(self.sender.send_all(), name="sender")
        self.sidebar.read_all()
        self.run_worker(self.inbox.follow(), name="inbox", group="inbox", exclusive=True)
        await suggestions.look_around(self)
        await suggestions.read_welcome(self)

    def show_workspace(self, workspace: Workspace) -> None:
        """Where several servers share a database: whether its directory is there."""
        self.workspace = workspace
        self.show_state()

    async def read_workspace(self) -> None:
        connection = self.connection
        self.show_workspace(
            await connection.send_with_retry(lambda: connection.client.workspace(connection.workspace_id))
        )

    def heard(self, event: Event) -> None:
        self.event_handling.hear(event)

    def outage(self, error: LongboatError | None) -> None:
        self.show_state()
        self.show_tail()
        if error is None:
            self.asking.refresh()

    def attempt(self, doing: Callable[[], Awaitable[object]]) -> None:
        """Do something in the background, and show the error if it fails."""
        self.run_worker(self._attempt(doing), name="attempt")

    async def _attempt(self, doing: Callable[[], Awaitable[object]]) -> None:
        try:
            await doing()
        except LongboatError as error:
            self.notify(error.message, severity="error", markup=False)

    # -- the session

    def open_session(self, session_id: str | None) -> None:
        self.current.turn_to(session_id)
        self.composer.input.focus()
        self.event_handling.forget()
        self.turns.forget()
        self.begin_anew()
        if session_id is None:
            self.run_worker(suggestions.read_welcome(self), name="welcome")

    def tell_where(self, session_id: str, path: str) -> None:
        """Say how to open a session of another directory: this app has only one."""
        command = f"longboat -s {session_id} --cwd {shlex.quote(path)}"
        self.notify(f"This session is in another directory. Open it with: {command}", timeout=15, markup=False)

    def begin_anew(self) -> None:
        """Redraw everything: for another session, or after a snapshot that replaces all that was known."""
        self.message_bar.select(None)
        self._reading = self._read()
        for show in (self.show_place, self.show_queue, self.show_tail, self.show_notices, self.show_state):
            show()
        self.asking.refresh()
        self.sidebar.read_all()
        self.inbox.refresh()

    def read_again(self) -> None:
        """Read the session again because something was missed, unless that is already under way."""
        if self._reading is None or self._reading.is_finished:
            self._reading = self._read()

    async def wait_read(self) -> None:
        """Until the current session is shown, or could not be read."""
        while (reading := self._reading) is not None and not reading.is_finished:
            with suppress(WorkerError):  # another session was opened meanwhile
                await reading.wait()

    @work(name="read", exclusive=True, group="read")
    async def _read(self) -> None:
        try:
            await self.current.read_newest()
            await self.current.read_runs()
            await self.current.read_side()
        except LongboatError as error:
            self.notify(error.message, severity="error", markup=False)
            return
        self.composer.history.take(self.current.prompts())
        await self.view.show(self.current.transcript)
        self.sidebar.show()
        self.show_state()

    async def _session(self, prompt: Outgoing) -> str:
        """The session for a prompt that has none. The first prompt of a draft creates it, and shows it in the draft."""
        if prompt.draft not in self._made:
            wanted = self._wanted.setdefault(prompt.draft, new_id())  # the same id again if the response is lost
            session = await self.connection.client.create_session(self.connection.workspace_id, session_id=wanted)
            self._made[prompt.draft] = session.id
            if self.current.session_id is None and self.current.draft == prompt.draft:
                self.connection.mirror.sessions.setdefault(session.id, session)
                self.current.turn_to(session.id)
                self.current.transcript.stale = False  # it is new, so nothing was missed
                await self.view.show(self.current.transcript)
                self.show_place()
                self.show_notices()
        return self._made[prompt.draft]

    # -- prompts

    def on_composed(self, event: Composed) -> None:
        if self.asking.take(event):
            return
        text = event.text
        if (name := command_in(text)) in BY_NAME:
            self.composer.give_back(event.attachments)  # they belong to the next prompt
            self.command_actions.do(name, text[1:].partition(" ")[2].strip())
            return
        if name and name not in {command.name for command in self.project_commands}:
            self.notify(f"Unknown command /{name}. To send it as a prompt, put a space before it.", markup=False)
            self.composer.give_back(event.attachments, text)
            return
        self.keeping.keep_prompt(self.connection.path, text)
        shell = text.startswith("!") and text[1:].strip()
        if shell:
            self.composer.give_back(event.attachments)
        session_id, draft = event.place
        self.sender.post(
            Outgoing(
                text=text[1:].strip() if shell else text,
                kind=Kind.SHELL if shell else Kind.PROMPT,
                delivery=Delivery.QUEUE if event.queue or self.plan else Delivery.STEER,
                plan=self.plan and not shell,
                attachments=() if shell else event.attachments,
                model=self.model,
                effort=self.effort,
                approve=self.approve,
                session_id=session_id,
                draft=draft,
            )
        )
        self.run_worker(self.view.newest(), name="newest")

    def on_dialog_strayed(self, event: Dialog.Strayed) -> None:
        # Queued on the input, after what was typed before the dialog opened.
        self.composer.input.call_later(self.composer.input.take, event.typed)

    def on_drafted(self, event: Drafted) -> None:
        self.asking.show_line()

    def on_answer_line_prompt_wanted(self, event: AnswerLine.PromptWanted) -> None:
        self.composer.input.action_as_prompt()
        self.composer.input.focus()

    def on_outgoing_view_retried(self, event: OutgoingView.Retried) -> None:
        self.sender.retry(event.prompt)

    @work(name="complete", exclusive=True, group="complete")
    async def on_completing(self, event: Completing) -> None:
        await suggestions.complete(self, event.wanted)

    # -- showing

    def show_place(self) -> None:
        session, own = self.current.session, self.connection.client.client_id
        clients = self.connection.mirror.clients
        others = tuple(describe_people(each for each in clients if person(each) != person(own)))
        title = session.title if session is not None else ""
        self.query_one(Header).details = HeaderContent(title=title, path=self.connection.path, others=others)
        self.sidebar.show_clients()
        suggestions.show_welcome(self)

    def show_state(self) -> None:
        state = state_of(self)
        self.query_one(StatusBar).state = state
        self.sidebar.show_model(state)
        self.asking.show_line()
        busy = HINT_PLAN if self.plan else HINT_BUSY
        busy = HINT_ASKED if self.composer.input.answers else busy
        self.composer.hint(HINT if self.current.active is None else busy)
        self.composer.show_plan(on=self.plan)

    def show_runs_soon(self) -> None:
        """Redraw queue and state once for all events that arrive together: canceling a queue sends thousands."""
        if not self._runs_due:
            self._runs_due = True
            self.call_later(self._show_runs)

    def _show_runs(self) -> None:
        self._runs_due = False
        self.show_queue()
        self.show_state()

    def show_queue(self) -> None:
        self.query_one(QueuePanel).show(self.current.unfinished)

    def show_tail(self) -> None:
        """Show prompts that the server has not accepted yet."""
        suggestions.show_welcome(self)
        show_outgoing(self.view.tail, self.sender.waiting, away=self.connection.away is not None)

    def show_notices(self) -> None:
        for notices in self.view.tail.query(Notices):
            notices.show((*suggestions.advice(self), *self.event_handling.notices))

    def call_attention(self, words: str, detail: str = "") -> None:
        """Notify a person who is looking elsewhere. The desktop sees only `words`, our own text, and the title."""
        if not self.app_focus:
            self.bell()
            if self._driver is not None:
                self._driver.write(app_exit.notification(words, self.query_one(Header).details.title))
            self.notify(f"{words} {detail}".strip(), markup=False)

    # -- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keep keys that work everywhere away from a dialog."""
        return not (action in keys.PRIORITY and len(self.screen_stack) > 1)

    def action_palette(self) -> None:
        open_palette(self)

    def action_leader(self) -> None:
        line = self.query_one(LeaderLine)
        if line.is_open:
            line.close()
            self.composer.input.action_cut()
        else:
            line.open()

    def action_select_message(self) -> None:
        self.message_bar.start()

    def on_message_clicked(self, event: MessageClicked) -> None:
        if not self.screen.get_selected_text():
            self.message_bar.select(event.view)

    def action_command(self, name: str) -> None:
        self.command_actions.do(name)

    def action_queue(self) -> None:
        self.composer.input.action_queue()

    def action_interrupt(self) -> None:
        if self.message_bar.selected is not None:
            self.message_bar.action_leave()
        else:
            self.interrupting.interrupt()

    def action_asks(self) -> None:
        self.asking.recall()

    def action_side(self) -> None:
        self.screen.toggle_class("-side-toggled")
        self.call_after_refresh(self.sidebar.read_all)

    def action_last_card(self) -> None:
        cards = self.view.all_cards
        if cards:
            cards[-1].toggle()

    async def action_newest(self) -> None:
        await self.view.newest()

    def action_leave(self) -> None:
        self.leaving.ask(end=False)

    def on_prompt_input_help_wanted(self) -> None:
        self.action_command("help")

    def on_prompt_input_leave_asked(self, event: PromptInput.LeaveAsked) -> None:
        self.leaving.ask(end=event.end)

    # -- the panels

    def on_queue_panel_edited(self, event: QueuePanel.Edited) -> None:
        self.interrupting.edit(event.run_id, prompt=event.prompt)

    def on_queue_panel_delivered(self, event: QueuePanel.Delivered) -> None:
        self.interrupting.edit(event.run_id, delivery=event.delivery)

    def on_queue_panel_deleted(self, event: QueuePanel.Deleted) -> None:
        self.interrupting.cancel(event.run_id)

    def on_prose_link_clicked(self, event: Prose.LinkClicked) -> None:
        """Show where the link leads, because its text may say something else. Open only web pages."""
        event.stop()
        if event.href.startswith(("http://", "https://")):
            self.open_url(event.href)
        self.notify(f"Link: {event.href}", markup=False)

    def on_key(self, event: events.Key) -> None:
        """Send keys that no widget uses to the prompt."""
        if event.is_printable and len(self.screen_stack) == 1 and event.key not in self.screen.active_bindings:
            self.composer.input.focus()
            self.composer.input.take(event)

    def on_resize(self) -> None:
        self.call_after_refresh(lambda: self.welcome.fit(self.view.size.height))

    async def on_unmount(self, event: events.Unmount) -> None:
        await self.connection.leave()

    def farewell(self, come_back: str) -> str:
        """The text to print after the app has closed."""
        unsent = [prompt.text for prompt in self.sender.waiting if prompt.progress is not Progress.SENT]
        return app_exit.farewell_text(
            failure=self._failure,
            session_id=self.current.session_id,
            runs=self.current.unfinished,
            unsent=unsent,
            come_back=come_back,
        )
