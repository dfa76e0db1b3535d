"""Updates the screen for each event. The mirror has been updated already.

Keeps only what cannot be read from the server again: notices, activity of sub-agents, start times of runs.
"""

from time import monotonic
from typing import TYPE_CHECKING

from longboat.client.subject import subject_of
from longboat.tui import suggestions
from longboat.tui.content import one_line
from longboat.tui.messages import CardKey, Note
from longboat.tui.toolcard import ToolCard
from longboat.wire.asks import Permission, PermissionNotification, Question, QuestionNotification
from longboat.wire.events import Change, Event
from longboat.wire.models import (
    AgentEvent,
    AgentEventType,
    ClientInfo,
    Message,
    MessageDelta,
    Outcome,
    Role,
    Run,
    RunComplete,
    Session,
    Snapshot,
    TextPart,
    ToolCallPart,
    Workspace,
)
from longboat.wire.workspace_state import ConfigChanged, FileChange, Job, LspEvent, McpEvent, Todos

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp

NOTICES = 3
ENDED = {
    Outcome.END_TURN: "Done.",
    Outcome.CANCELED: "Canceled.",
    Outcome.ERROR: "Failed.",
    Outcome.INTERRUPTED: "Interrupted.",
}


class EventHandling:
    def __init__(self, app: "LongboatApp") -> None:
        self._app = app
        self.notices: list[str] = []
        self.began: dict[str, float] = {}
        """When each active run was first seen."""
        self._children: dict[str, CardKey] = {}
        """The tool calls that started sub-agents, by the sub-agent's session."""
        self._newest: dict[str, str] = {}
        """What sub-agents said last and no card shows yet."""

    def forget(self) -> None:
        """Forget notices and sub-agents, because another session is shown."""
        self.notices = []
        self._children.clear()
        self._newest.clear()

    def hear(self, event: Event) -> None:
        match event.payload:
            case Snapshot():
                self._begin_anew()
            case Message() | MessageDelta() as message:
                self._hear_message(message, event.parent_session_id)
            case Run() as run:
                self._hear_run(run)
            case RunComplete() as complete:
                self._hear_end(complete)
            case Session() as session:
                self._hear_session(session, gone=event.change is Change.DELETED)
            case ClientInfo():
                self._app.show_place()
            case Todos() | Job() | LspEvent() | McpEvent():
                self._app.sidebar.show()
            case FileChange():
                self._app.sidebar.read_changes()
            case _:
                self._hear_agent(event.payload)

    def _hear_agent(self, payload: object) -> None:
        match payload:
            case AgentEvent() as told:
                self._hear_notice(told)
            case Permission() | Question() as ask:
                self._hear_ask(ask)
            case PermissionNotification() | QuestionNotification() as answered:
                self._app.asking.settle(answered)
                self._app.asking.refresh()
                self._app.show_state()
            case Workspace() as workspace:
                self._app.show_workspace(workspace)
            case ConfigChanged() as told:
                suggestions.hear_config(self._app, told)
                self._look_again()

    def _begin_anew(self) -> None:
        app = self._app
        app.sender.caught_up()
        app.begin_anew()
        if app.models is not None:  # they may have changed meanwhile
            self._look_again()
        if app.workspace is not None and app.workspace.owner is not None:  # so may its owner
            app.run_worker(app.read_workspace(), name="workspace")

    def _look_again(self) -> None:
        self._app.run_worker(suggestions.look_around(self._app), name="models", group="models", exclusive=True)

    # -- one method per kind of event

    def _hear_message(self, message: Message | MessageDelta, parent: str | None) -> None:
        current = self._app.current
        if message.session_id == current.session_id:
            self._app.view.touch(message.id if isinstance(message, Message) else message.message_id)
            self.drop_notices()
            if current.transcript.stale:  # a gap: the missing part has to be read
                self._app.read_again()
        elif parent is not None and parent == current.session_id and isinstance(message, Message):
            self._hear_child(message)

    def _hear_child(self, message: Message) -> None:
        if message.role is Role.USER:  # the card already shows its prompt
            return
        for part in reversed(message.parts):
            if isinstance(part, ToolCallPart) and part.finished:
                line = f"{part.name} {one_line(subject_of(part.input, part.traits).text, 120)}"
            elif isinstance(part, TextPart) and part.text.strip():
                line = one_line(part.text.strip().splitlines()[-1], 160)
            else:
                continue
            self._newest[message.session_id] = line
            self.show_newest()
            return

    def show_newest(self) -> None:
        """Show what sub-agents said last, in the cards that there are by now."""
        for session_id in list(self._newest):
            if (card := self._card_of(session_id)) is not None:
                card.tell(self._newest.pop(session_id))

    def _card_of(self, session_id: str) -> ToolCard | None:
        """The card of the tool call that started a sub-agent."""
        if session_id not in self._children:
            mirror = self._app.connection.mirror
            session = mirror.sessions.get(session_id)
            run = next((run for run in mirror.runs.values() if run.session_id == session_id), None)
            if session is None or session.parent_call_id is None or run is None or run.parent_run_id is None:
                return None
            self._children[session_id] = (run.parent_run_id, session.parent_call_id)
        return self._app.view.card(*self._children[session_id])

    def _hear_run(self, run: Run) -> None:
        self._app.sender.heard(run.run_id)
        if run.session_id != self._app.current.session_id:
            return
        known = self._app.current.runs.get(run.run_id)
        self._app.current.hear_run(run)
        if known is None:
            self._app.turns.forget()  # a new prompt ends what could be restored
        if known is None or (known.folded_into, known.client_id) != (run.folded_into, run.client_id):
            self._app.view.redraw_prompt(run.run_id)
        self._app.show_runs_soon()

    def _hear_end(self, complete: RunComplete) -> None:
        if complete.session_id != self._app.current.session_id:
            return
        self.began.pop(complete.run_id, None)
        self._app.view.end_run(complete.run_id)
        if complete.message_id is None and (note := self._note(complete)) is not None:
            self._app.view.add_note(note)
        self.drop_notices()
        self._app.show_runs_soon()
        if complete.folded_into is None:
            self._app.call_attention(ENDED[complete.outcome], one_line(_why(complete), 200))

    def _note(self, complete: RunComplete) -> Note | None:
        """A note on how a run ended, for runs without a message that says it."""
        run = self._app.current.runs.get(complete.run_id)
        prompt = f"“{one_line(run.prompt, 60)}”" if run is not None else "A prompt"
        match complete.outcome:
            case Outcome.CANCELED:
                return Note(f"■ {prompt} was canceled{self._by(run)} before it started.", "warning")
            case Outcome.ERROR:
                return Note(f"✗ {prompt} failed: {_why(complete)}", "error")
            case Outcome.INTERRUPTED:
                return Note(f"✗ {prompt} was interrupted: {_why(complete)}", "error")
        return None

    def _by(self, run: Run | None) -> str:
        """Who canceled a run, if that is known."""
        if run is None or run.canceled_by is None:
            return ""
        return f" by {self._app.current.other(run.canceled_by) or 'you'}"

    def _hear_notice(self, told: AgentEvent) -> None:
        if told.session_id != self._app.current.session_id:
            return
        words = " ".join(text for text in (told.message, told.detail) if text)
        match told.type:
            case AgentEventType.RETRYING | AgentEventType.SUMMARIZING | AgentEventType.LOADING:
                self.notices = [*self.notices, words or told.type.value][-NOTICES:]
                self._app.show_notices()
            case AgentEventType.NOTICE:
                self._app.view.add_note(Note(f"◌ {words}", "warning"))

    def drop_notices(self) -> None:
        if self.notices:
            self.notices = []
            self._app.show_notices()

    def _hear_ask(self, ask: Permission | Question) -> None:
        ours = self._app.current.is_ours(ask.session_id, ask.parent_session_id)
        self._app.asking.refresh()
        self._app.show_state()
        self._app.call_attention("The agent needs your answer." if ours else "Another session needs your answer.")

    def _hear_session(self, session: Session, *, gone: bool) -> None:
        if session.id != self._app.current.session_id:
            return
        if gone:
            self._app.notify("This session was deleted.", severity="warning")
            self._app.open_session(None)
            return
        self._app.show_place()
        self._app.show_state()

    def since(self, run: Run | None) -> float | None:
        return None if run is None else self.began.setdefault(run.run_id, monotonic())


def _why(complete: RunComplete) -> str:
    """The server's error for a run, without the prefix that our note already has."""
    return complete.error.removeprefix("Interrupted: ") if complete.outcome is Outcome.INTERRUPTED else complete.error
