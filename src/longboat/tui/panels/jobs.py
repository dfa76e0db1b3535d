"""The panel of background jobs."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from longboat.tui.dialogs.confirm import ConfirmDialog, Confirmed
from longboat.tui.dialogs.formatting import format_duration
from longboat.tui.panels.looks import FAINT
from longboat.tui.textual_fixes import Listing
from longboat.wire.plain import plain_line
from longboat.wire.workspace_state import Job, JobState

_LOOKS = {
    JobState.RUNNING: ("●", "$text-success"),
    JobState.FINISHED: ("✓", FAINT),
    JobState.KILLED: ("✗", "$text-error"),
    JobState.TIMED_OUT: ("⌛", "$text-warning"),
}


class JobsPanel(Vertical):
    """Running jobs first. `kill` is called with a job's id, after a confirmation."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("k,delete", "kill", "Kill")]
    DEFAULT_CSS = """
    JobsPanel {
        height: auto;
        max-height: 8;
        padding: 0 1;
        display: none;
        & > .heading { height: 1; color: $text-primary; text-style: bold; }
        & > OptionList {
            height: auto; max-height: 6; border: none; padding: 0; background: $surface;
            text-wrap: nowrap; text-overflow: ellipsis;
            &:focus { border: none; }
        }
    }
    """

    def __init__(self, kill: Callable[[str], object], *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._kill = kill
        self._jobs: dict[str, Job] = {}

    def compose(self) -> ComposeResult:
        yield Static("", classes="heading", markup=False)
        yield Listing(markup=False)

    def show(self, jobs: Sequence[Job]) -> None:
        shown = self.query_one(OptionList)
        chosen = self._chosen
        ordered = sorted(jobs, key=lambda job: job.state is not JobState.RUNNING)
        self._jobs = {job.id: job for job in ordered}
        shown.set_options([Option(_row(job), id=job.id) for job in ordered])
        self.display = bool(ordered)
        if ordered:
            shown.highlighted = shown.get_option_index(chosen.id) if chosen and chosen.id in self._jobs else 0
        running = sum(job.state is JobState.RUNNING for job in ordered)
        self.query_one(".heading", Static).update(Content(f"Jobs {running}/{len(ordered)}  k kill"))

    @property
    def _chosen(self) -> Job | None:
        option = self.query_one(OptionList).highlighted_option
        return self._jobs.get(option.id or "") if option is not None else None

    def action_kill(self) -> None:
        job = self._chosen
        if job is not None and job.state is JobState.RUNNING:
            dialog = ConfirmDialog(f"Kill “{plain_line(job.command)}”?", yes="Kill")
            self.app.push_screen(dialog, lambda answer: self._confirmed(job.id, answer))

    def _confirmed(self, job_id: str, answer: Confirmed | None) -> None:
        if answer is not None:
            self._kill(job_id)


def _row(job: Job) -> Content:
    mark, look = _LOOKS[job.state]
    ended = f", exit {job.exit_code}" if job.exit_code is not None else ""
    by = f" by {plain_line(job.killed_by)}" if job.killed_by else ""
    state = "" if job.state is JobState.RUNNING else f" {job.state.value.replace('_', ' ')}{by}{ended}"
    return Content.assemble(
        (f"{mark} ", look), plain_line(job.command), (f"  {format_duration(job.seconds)}{state}", FAINT)
    )
