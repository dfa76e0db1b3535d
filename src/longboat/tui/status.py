"""The header and the status bar: session, directory and other clients; activity, model, usage and cost.

Each draws a frozen view of its state. Must not know where the state comes from.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING

from textual.app import RenderResult
from textual.content import Content
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from longboat.tui.content import format_count, line, one_line
from longboat.tui.inbox import WaitingElsewhere
from longboat.wire.amounts import cost_of
from longboat.wire.asks import Question
from longboat.wire.models import RunState, Usage, Workspace
from longboat.wire.requests import Approve

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp

NOTHING_USED = Usage()
NOTHING_WAITS = WaitingElsewhere()
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderContent:
    """The content of the header."""

    title: str = ""
    path: str = ""
    others: tuple[str, ...] = ()
    """The other people who are connected."""


class Header(Widget):
    DEFAULT_CSS = """
    Header { height: 1; background: $panel; color: $foreground; padding: 0 1; }
    """
    details: reactive[HeaderContent] = reactive(HeaderContent())

    def render(self) -> RenderResult:
        width = self.size.width
        others = (
            one_line(f"also connected: {', '.join(self.details.others)}", width // 3) if self.details.others else ""
        )
        title = one_line(self.details.title, max(10, width - len(others) - 4)) or "New session"
        room = width - len(title) - len(others) - 3
        path = one_line(self.details.path) if room > 12 else ""
        if len(path) > room:
            path = "…" + path[1 - room :]
        gap = " " * max(1, width - len(title) - len(path) - len(others) - 2)
        return Content.assemble((title, "bold"), "  ", (path, "$text-muted"), gap, (others, "$text-accent"))


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The content of the status bar."""

    away: str = ""
    """Why the server is unreachable; empty if it is reachable."""
    held: str = ""
    """Why no run can start now; empty if one can."""
    since: float | None = None
    """When the active run was first seen, on the monotonic clock; None when there is none."""
    doing: str = "working"
    queued: int = 0
    asks: int = 0
    """Pending requests: permissions and questions."""
    questions: int = 0
    """How many of those are questions."""
    elsewhere: int = 0
    """Pending requests of other sessions."""
    questions_elsewhere: int = 0
    """How many of those are questions."""
    others: int = 0
    """The number of other sessions with a pending request."""
    failed: bool = False
    """Whether the last run failed, so that it can be retried."""
    abroad: WaitingElsewhere = NOTHING_WAITS
    """What waits in other workspaces, and which runs ended unseen in other sessions."""
    model: str = ""
    effort: str = ""
    all_approved: bool = False
    plan: bool = False
    """Whether the next prompts plan first."""
    usage: Usage = NOTHING_USED
    context: int = 0
    """Tokens of the newest request to the model plus its answer."""
    window: int = 0


class StatusBar(Widget):
    DEFAULT_CSS = """
    StatusBar { height: 1; padding: 0 1; color: $text-muted; }
    """
    state: reactive[State] = reactive(State())
    _beat: Timer | None = None

    def on_mount(self) -> None:
        self._beat = self.set_interval(0.12, self.refresh, pause=True)

    def watch_state(self, state: State) -> None:
        if self._beat is not None:
            moves = bool(state.away) or state.since is not None
            self._beat.resume() if moves else self._beat.pause()

    def render(self) -> RenderResult:
        left, right = self._left(), self._right()
        width = self.size.width
        left = left + self._elsewhere(width - left.cell_length - 1, right)
        while right and left.cell_length + sum(part.cell_length + 3 for part in right) > width:
            right = right[1:]
        figures = Content(" · ").join(right)
        gap = " " * max(1, width - left.cell_length - figures.cell_length)
        return Content("").join([left, Content(gap), figures])

    def _left(self) -> Content:
        """What happens in this session."""
        state, turn = self.state, SPINNER[int(monotonic() * 8) % len(SPINNER)]
        if state.away:
            words = one_line(f"{turn} Reconnecting… {state.away}", max(20, self.size.width - 2))
            return Content.styled(words, "bold $text-error")
        if state.asks:
            return Content.styled(f"? {_needed(state.asks, state.questions)} (ctrl+g)", "bold $text-warning")
        queued = f", {state.queued} queued" if state.queued else ""
        if state.held:
            words = f"{state.held}; {f'{state.queued} queued' if state.queued else 'prompts are queued'}"
            return Content.styled(one_line(words, max(20, self.size.width - 2)), "$text-warning")
        if state.since is None:
            return Content.assemble(
                ("Failed  ctrl+r retry", "$text-error") if state.failed else (f"Idle{queued}", "dim")
            )
        seconds = int(monotonic() - state.since)
        return Content.assemble((f"{turn} {state.doing} {seconds}s{queued}", "$text-warning"), ("  esc stop", "dim"))

    def _elsewhere(self, room: int, figures: list[Content]) -> Content:
        """What happens elsewhere, in as many words as there is room for. Requests may take the place of figures but
        not of the marks that say how the next prompt is sent; runs that ended take only what is left."""
        state = self.state
        if state.away:
            return Content("")  # what was known may no longer be so
        needed = _needed_elsewhere(state)
        ended = _ended_elsewhere(state.abroad)
        marks = figures[len(figures) - state.all_approved - state.plan :]
        room_beside_marks = room - sum(part.cell_length + 3 for part in marks)
        told = next((words for words in needed if len(words) <= room_beside_marks), "")
        if told != needed[0] or len(told + ended) + sum(part.cell_length + 3 for part in figures) > room:
            ended = ""
        return Content.assemble((told, "$text-warning"), (ended, "dim"))

    def _right(self) -> list[Content]:
        """The parts on the right, least important first: those are dropped if there is no room."""
        state, usage = self.state, self.state.usage
        parts = []
        if usage.input_tokens or usage.output_tokens:
            parts.append(Content(f"↑{format_count(usage.input_tokens)} ↓{format_count(usage.output_tokens)}"))
        if state.context and state.window:
            parts.append(Content(f"{100 * state.context / state.window:.0f}% of {format_count(state.window)}"))
        if usage.cost is None:
            parts.append(Content("cost unknown"))
        elif usage.cost:
            parts.append(Content(cost_of(usage)))
        if state.model:
            name = state.model.rpartition("/")[2]
            parts.append(line(f"{name} {state.effort}".strip(), width=30))
        if state.all_approved:
            parts.append(Content.styled("approve all", "bold $text-error"))
        if state.plan:
            parts.append(Content.styled("plan first", "bold $text-accent"))
        return parts


def _needed(asks: int, questions: int) -> str:
    """What the agent needs from the person, such as "1 approval needed"."""
    one, several = ("approval", "approvals") if not questions else ("answer", "answers")
    return f"{asks} {one if asks == 1 else several} needed"


def _needed_elsewhere(state: State) -> tuple[str, ...]:
    """What other sessions and workspaces need, such as "1 approval needed in another session", in fewer and fewer
    words."""
    abroad, session = state.abroad, "another session" if state.others == 1 else "other sessions"
    asks, questions = state.elsewhere + abroad.asks, state.questions_elsewhere + abroad.questions
    if not asks:
        return ("",)
    words = ""
    if state.elsewhere:
        words += f"  ? {_needed(state.elsewhere, state.questions_elsewhere)} in {session} (ctrl+s)"
    if abroad.asks:
        where = "another workspace" if abroad.asks == 1 else "other workspaces"
        words += f"  ? {_needed(abroad.asks, abroad.questions)} in {where} (/inbox)"
    return words, f"  ? {_needed(asks, questions)} elsewhere (/inbox)", f"  ? {asks} (/inbox)"


def _ended_elsewhere(abroad: WaitingElsewhere) -> str:
    """The runs that ended unseen, such as "3 runs ended elsewhere, 1 failed"."""
    if not abroad.ended:
        return ""
    if abroad.ended == 1:
        return f"  1 run {'failed' if abroad.failed else 'ended'} elsewhere (/inbox)"
    failed = f", {abroad.failed} failed" if abroad.failed else ""
    return f"  {abroad.ended} runs ended elsewhere{failed} (/inbox)"


def describe_absence(workspace: Workspace | None) -> str:
    """Such as "boat-1 has been down since 14:03" or "boat-1 is stopping"; empty if the directory is there."""
    if workspace is None or not workspace.away:
        return ""
    if workspace.home_stopping:
        return f"{workspace.home} is stopping"
    if workspace.away_since is None:
        return f"{workspace.home} is down"
    since = datetime.fromisoformat(workspace.away_since).astimezone()
    is_today = since.date() == datetime.now().astimezone().date()
    return f"{workspace.home} has been down since {since:{'%H:%M' if is_today else '%b %-d'}}"


def state_of(app: "LongboatApp") -> State:
    active, away, session = app.current.active, app.connection.away, app.current.session
    model = app.model or (app.models.large if app.models is not None else None) or ""
    infos = app.models.items if app.models is not None else ()
    windows = {info.name: info.context_window or 0 for info in infos}
    efforts = {info.name: info.default_effort for info in infos}
    state = State(
        away=away.message if away is not None else "",
        held=describe_absence(app.workspace),
        since=app.event_handling.since(active),
        doing="interrupting" if active is not None and active.cancel_requested else "working",
        queued=sum(run.state in (RunState.ACCEPTED, RunState.QUEUED) for run in app.current.unfinished),
        asks=len(app.asking.pending),
        questions=sum(isinstance(ask, Question) for ask in app.asking.pending),
        elsewhere=len(app.asking.elsewhere),
        questions_elsewhere=sum(isinstance(ask, Question) for ask in app.asking.elsewhere),
        others=len(app.asking.sessions - {app.current.session_id}),
        abroad=app.inbox.elsewhere,
        failed=app.turns.last_failed,
        model=model,
        effort=app.effort or efforts.get(model) or "",
        all_approved=app.approve is Approve.ALL,
        plan=app.plan,
        window=windows.get(model, 0),
    )
    return state if session is None else replace(state, usage=session.usage, context=session.context_tokens)
