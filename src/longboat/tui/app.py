"""The app: what is on the screen, which key does what, and which worker runs.

Owns widgets and workers. What events mean is in `hearing`, what commands do in `deeds`, asks are in `asking`.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from textual import events, work
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import Screen

from longboat.client import Client
from longboat.errors import LongboatError
from longboat.tui import fit, leaving, offering, toasts
from longboat.tui.asking import Asking
from longboat.tui.canvas import on_canvas
from longboat.tui.commands import BY_NAME, CommandProvider, Palette, command_in
from longboat.tui.composer import Completing, Composed, Composer, PromptInput
from longboat.tui.connection import Connection
from longboat.tui.deeds import Deeds
from longboat.tui.desk import Desk
from longboat.tui.dialogs.frame import Dialog
from longboat.tui.editor import NotEdited, edited
from longboat.tui.hearing import Hearing
from longboat.tui.interrupting import Interrupting
from longboat.tui.keeping import Keeping
from longboat.tui.panels.jobs import JobsPanel
from longboat.tui.panels.queue import QueuePanel
from longboat.tui.panels.todos import ClientsPanel, TodosPanel
from longboat.tui.prose import Prose
from longboat.tui.sending import Kind, Outgoing, Progress, Sender
from longboat.tui.standing import state_of
from longboat.tui.status import Header, Place, StatusBar
from longboat.tui.tail import Notices, OutgoingView
from longboat.tui.theming import Theming
from longboat.tui.transcript import TranscriptView
from longboat.wire.events import Event
from longboat.wire.ids import new_id
from longboat.wire.listings import ModelPage
from longboat.wire.models import Delivery, Workspace
from longboat.wire.requests import Approve, Effort
from longboat.wire.workshop import CommandInfo

HINT = "enter send · ctrl+j new line · ctrl+p commands"
HINT_BUSY = "enter steers · ctrl+q queues · esc interrupts"


class LongboatApp(App[None]):
    TITLE = "Longboat"
    COMMANDS = App.COMMANDS | {CommandProvider}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 — Textual declares it so
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-high")]  # noqa: RUF012
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "interrupt", "Interrupt", show=False),
        Binding("ctrl+q", "queue", "Queue", show=False),  # not Textual's quit
        Binding("ctrl+l", "command('model')", "Model", show=False),
        Binding("ctrl+s", "command('sessions')", "Sessions", show=False),
        Binding("ctrl+n", "command('new')", "New session", show=False),
        Binding("ctrl+o", "editor", "Editor", show=False),
        Binding("ctrl+r", "command('retry')", "Send again", show=False),
        Binding("ctrl+g", "asks", "What waits for your word", show=False),
        Binding("ctrl+t", "side", "Plan", show=False),
        Binding("ctrl+b", "last_card", "Open the last tool call", show=False),
        Binding("ctrl+end", "newest", "To the end", show=False, priority=True),
        Binding("ctrl+c", "leave", "Leave", show=False),
        Binding("f1", "command('help')", "Help", show=False),
    ]
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
        keeping: Keeping | None = None,
    ) -> None:
        super().__init__()
        self.keeping = keeping or Keeping(None)
        self.theming = Theming(self, self.keeping)
        self.model, self.effort, self.approve = model, effort, approve
        self.models: ModelPage | None = None
        self.project_commands: tuple[CommandInfo, ...] = ()
        self.connection = Connection(client, path, self, env=env)
        self.desk = Desk(self.connection)
        self.sender = Sender(self.connection, session=self._session, on_change=lambda _: self.show_tail())
        self.hearing = Hearing(self)
        self.asking = Asking(self)
        self.deeds = Deeds(self)
        self.interrupting = Interrupting(self)
        self._runs_due = False
        self.leaving = leaving.Leaving(self)
        self.composer = Composer(lambda: (self.desk.session_id, self.desk.draft))
        self.view = TranscriptView(by=self.desk.by, other=self.desk.other, older=self.desk.read_older)
        self._resume = resume
        if session_id is not None:
            self.desk.turn_to(session_id)
        self.told_problem = False
        self._wanted: dict[int, str] = {}
        self._made: dict[int, str] = {}
        """The sessions that prompts want and have made, by their draft."""
        self._failure = ""

    # -- the screen

    def get_default_screen(self) -> Screen[object]:
        return on_canvas(super().get_default_screen())

    def compose(self) -> ComposeResult:
        yield Header()
        with Horizontal(id="middle"):
            yield self.view
            with VerticalScroll(id="side", can_focus=False):
                yield TodosPanel(id="todos")
                yield ClientsPanel(id="clients")
                yield JobsPanel(self._kill_job, id="jobs")
        with Vertical(id="bottom"):
            yield QueuePanel(id="queue")
            yield self.composer
            yield StatusBar()

    def on_mount(self) -> None:
        self.theming.start()
        fit.watch(self)
        toasts.watch(self)
        self.composer.history.remember(self.keeping.prompts(self.connection.path))
        self.view.tail.mount(Notices())
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
        self.run_worker(self._start(self._resume and self.desk.session_id is None), name="start")

    async def _start(self, resume: bool) -> None:
        if resume:
            page = await self.connection.insist(
                lambda: self.connection.client.sessions(self.connection.workspace_id, limit=1, top=True)
            )
            if page.items:
                self._made[self.desk.draft] = page.items[0].id  # what was typed meanwhile is for it
                self.open_session(page.items[0].id)
        self.run_worker(self.sender.send_all(), name="sender")
        await offering.look_around(self)

    def heard(self, event: Event) -> None:
        self.hearing.hear(event)

    def outage(self, error: LongboatError | None) -> None:
        self.show_state()
        self.show_tail()
        if error is None:
            self.asking.refresh()

    # -- the session

    def open_session(self, session_id: str | None) -> None:
        self.desk.turn_to(session_id)
        self.hearing.forget()
        self.begin_anew()

    def begin_anew(self) -> None:
        """Draw everything: another session, or a snapshot of which nobody knows what came before."""
        self._read()
        for show in (self.show_place, self.show_queue, self.show_tail, self.show_notices, self.show_state):
            show()
        self.asking.refresh()

    def read_again(self) -> None:
        """Something was missed, unless it is being read already."""
        if not any(worker.group == "read" and not worker.is_finished for worker in self.workers):
            self._read()

    @work(name="read", exclusive=True, group="read")
    async def _read(self) -> None:
        try:
            await self.desk.read_newest()
            await self.desk.read_runs()
            await self.desk.read_side()
        except LongboatError as error:
            self.notify(error.message, severity="error", markup=False)
            return
        self.composer.history.take(self.desk.prompts())
        await self.view.show(self.desk.transcript)
        self.show_side()
        self.show_state()

    async def _session(self, prompt: Outgoing) -> str:
        """The session for a prompt that has none, made if it is the first of its draft; shown if it still is."""
        if prompt.draft not in self._made:
            wanted = self._wanted.setdefault(prompt.draft, new_id())  # the same one if the answer is lost on the way
            session = await self.connection.client.create_session(self.connection.workspace_id, session_id=wanted)
            self._made[prompt.draft] = session.id
            if self.desk.session_id is None and self.desk.draft == prompt.draft:
                self.connection.mirror.sessions.setdefault(session.id, session)
                self.desk.turn_to(session.id)
                self.desk.transcript.stale = False  # it is new: nothing can have been missed
                await self.view.show(self.desk.transcript)
                self.show_place()
                self.show_notices()
        return self._made[prompt.draft]

    # -- prompts

    def on_composed(self, event: Composed) -> None:
        text = event.text
        if (name := command_in(text)) in BY_NAME:
            self.composer.give_back(event.attachments)  # they are for the prompt that comes
            self.deeds.do(name, text[1:].partition(" ")[2].strip())
            return
        if name and name not in {command.name for command in self.project_commands}:
            self.notify(f"There is no command /{name}. A space before it sends it as a prompt.", markup=False)
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
                delivery=Delivery.QUEUE if event.queue else Delivery.STEER,
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
        # In the queue of the input, behind what was typed before the dialog came.
        self.composer.input.call_later(self.composer.input.take, event.typed)

    def on_outgoing_view_retried(self, event: OutgoingView.Retried) -> None:
        self.sender.retry(event.prompt)

    @work(name="complete", exclusive=True, group="complete")
    async def on_completing(self, event: Completing) -> None:
        await offering.complete(self, event.wanted)

    # -- showing

    def show_place(self) -> None:
        session, own = self.desk.session, self.connection.client.client_id
        others = tuple(sorted(name for name in self.connection.mirror.clients if name != own))
        title = session.title if session is not None else ""
        self.query_one(Header).place = Place(title=title, path=self.connection.path, others=others)
        self.query_one(ClientsPanel).show(list(self.connection.mirror.clients.values()), own)

    def show_state(self) -> None:
        self.query_one(StatusBar).state = state_of(self)
        self.composer.hint(HINT if self.desk.active is None else HINT_BUSY)

    def show_runs_soon(self) -> None:
        """The queue and the state, once for all events that came together: a canceled queue sends thousands."""
        if not self._runs_due:
            self._runs_due = True
            self.call_later(self._show_runs)

    def _show_runs(self) -> None:
        self._runs_due = False
        self.show_queue()
        self.show_state()

    def show_queue(self) -> None:
        self.query_one(QueuePanel).show(self.desk.unfinished)

    def show_side(self) -> None:
        mirror = self.connection.mirror
        self.query_one(TodosPanel).show(mirror.todos.get(self.desk.session_id or "", ()))
        self.query_one(JobsPanel).show(list(mirror.jobs.values()))

    def show_tail(self) -> None:
        """Prompts that the server has not taken yet."""
        shown = {view.prompt.run_id: view for view in self.view.tail.query(OutgoingView)}
        waiting = {prompt.run_id: prompt for prompt in self.sender.waiting}
        for run_id in shown.keys() - waiting.keys():
            shown[run_id].remove()
        added = [OutgoingView(prompt) for run_id, prompt in waiting.items() if run_id not in shown]
        for view in [*shown.values(), *added]:
            view.show(away=self.connection.away is not None)
        if added:
            self.view.tail.mount_all(added)

    def show_notices(self) -> None:
        for notices in self.view.tail.query(Notices):
            notices.show((*offering.advice(self), *self.hearing.notices))

    def call_attention(self, words: str, detail: str = "") -> None:
        """Somebody may be looking elsewhere. `words` are ours; only they and the title go to the desktop."""
        if not self.app_focus:
            self.bell()
            if self._driver is not None:
                self._driver.write(leaving.notification(words, self.query_one(Header).place.title))
            self.notify(f"{words} {detail}".strip(), markup=False)

    # -- keys

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Ours come from `CommandProvider`; of Textual's only what ours do not do."""
        yield SystemCommand("Screenshot", "Save a picture of the screen as SVG", self.deliver_screenshot)

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, Palette):
            self.push_screen(on_canvas(Palette(id="--command-palette")))

    def action_command(self, name: str) -> None:
        self.deeds.do(name)

    def action_queue(self) -> None:
        self.composer.input.action_queue()

    def action_interrupt(self) -> None:
        self.interrupting.interrupt()

    def action_asks(self) -> None:
        self.asking.recall()

    def action_side(self) -> None:
        self.screen.toggle_class("-side-toggled")

    def action_last_card(self) -> None:
        cards = self.view.all_cards
        if cards:
            cards[-1].toggle()

    async def action_newest(self) -> None:
        await self.view.newest()

    def action_editor(self) -> None:
        try:
            self.composer.input.put(edited(self, self.composer.input.text))
        except NotEdited as why:
            self.notify(str(why), markup=False)

    def action_leave(self) -> None:
        self.leaving.ask(end=False)

    def on_prompt_input_leave_asked(self, event: PromptInput.LeaveAsked) -> None:
        self.leaving.ask(end=event.end)

    # -- the panels

    def on_queue_panel_edited(self, event: QueuePanel.Edited) -> None:
        self.interrupting.edit(event.run_id, prompt=event.prompt)

    def on_queue_panel_delivered(self, event: QueuePanel.Delivered) -> None:
        self.interrupting.edit(event.run_id, delivery=event.delivery)

    def on_queue_panel_deleted(self, event: QueuePanel.Deleted) -> None:
        self.interrupting.cancel(event.run_id)

    def _kill_job(self, job_id: str) -> None:
        self.interrupting.kill(job_id)

    def on_prose_link_clicked(self, event: Prose.LinkClicked) -> None:
        """A link can say something else than where it leads: say that first, and open nothing but pages."""
        event.stop()
        if event.href.startswith(("http://", "https://")):
            self.open_url(event.href)
        self.notify(f"Link: {event.href}", markup=False)

    def on_key(self, event: events.Key) -> None:
        """What is typed where it means nothing is meant for the prompt."""
        if event.is_printable and len(self.screen_stack) == 1 and event.key not in self.screen.active_bindings:
            self.composer.input.focus()
            self.composer.input.take(event)

    async def on_unmount(self, event: events.Unmount) -> None:
        await self.connection.leave()

    def farewell(self, come_back: str) -> str:
        """What to print after the app is gone."""
        unsent = [prompt.text for prompt in self.sender.waiting if prompt.progress is not Progress.SENT]
        return leaving.farewell_text(
            failure=self._failure,
            session_id=self.desk.session_id,
            runs=self.desk.unfinished,
            unsent=unsent,
            come_back=come_back,
        )
