"""The panel of waiting prompts: edit or delete them, or switch between steering and queueing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from longboat.tui.dialogs.confirm import TextDialog, Written
from longboat.tui.panels.looks import FAINT
from longboat.tui.textual_fixes import Listing
from longboat.wire.ids import person
from longboat.wire.models import Delivery, Run, RunState
from longboat.wire.plain import plain_line

_WAITING = (RunState.ACCEPTED, RunState.QUEUED)
SHOWN = 100
"""The most prompts listed of a long queue."""


class QueuePanel(Vertical):
    """Hidden while nothing is waiting. Posts what the person wants; `show` displays the result."""

    @dataclass
    class Edited(Message):
        run_id: str
        prompt: str

    @dataclass
    class Deleted(Message):
        run_id: str

    @dataclass
    class Delivered(Message):
        """The prompt should be delivered in this way."""

        run_id: str
        delivery: Delivery

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "edit", "Edit"),
        Binding("t", "delivery", "Steer or queue"),
        Binding("delete,backspace,d", "delete", "Delete"),
    ]
    DEFAULT_CSS = """
    QueuePanel {
        height: auto;
        max-height: 8;
        padding: 0 1;
        display: none;
        & > .heading { height: 1; color: $text-primary; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; }
        & > OptionList {
            height: auto; max-height: 6; border: none; padding: 0; background: $surface;
            text-wrap: nowrap; text-overflow: ellipsis;
            &:focus { border: none; }
        }
    }
    """

    def __init__(self, runs: Sequence[Run] = (), *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._runs: dict[str, Run] = {}
        self._first = runs

    def compose(self) -> ComposeResult:
        yield Static("", classes="heading", markup=False)
        yield Listing(markup=False)

    def on_mount(self) -> None:
        self.show(self._first)

    def show(self, runs: Sequence[Run]) -> None:
        """Show the waiting runs in the order in which they will run. The highlight stays on its prompt."""
        waiting = sorted((run for run in runs if run.state in _WAITING), key=_order)
        shown = self.query_one(OptionList)
        chosen, place = self._chosen, shown.highlighted or 0
        listed = waiting[:SHOWN]
        self._runs = {run.run_id: run for run in listed}
        shown.set_options([Option(_row(run), id=run.run_id) for run in listed])
        if shown.has_focus and not waiting:
            self.screen.focus_next()
        self.display = bool(waiting)
        if waiting:
            kept = chosen is not None and chosen.run_id in self._runs
            shown.highlighted = (
                shown.get_option_index(chosen.run_id) if kept and chosen else min(place, len(listed) - 1)
            )
        hidden = f", first {SHOWN} shown" if len(waiting) > SHOWN else ""
        self.query_one(".heading", Static).update(
            Content(f"Queue {len(waiting)}{hidden}  tab select, e edit, t steer/queue, del delete")
        )

    @property
    def _chosen(self) -> Run | None:
        option = self.query_one(OptionList).highlighted_option
        return self._runs.get(option.id or "") if option is not None else None

    @on(OptionList.OptionSelected)
    def action_edit(self) -> None:
        if (run := self._chosen) is not None:
            dialog = TextDialog("Edit the waiting prompt:", text=run.prompt, lines=True)
            self.app.push_screen(dialog, lambda written: self._edited(run, written))

    def _edited(self, run: Run, written: Written | None) -> None:
        if written is not None and written.text != run.prompt:
            self.post_message(self.Edited(run_id=run.run_id, prompt=written.text))

    def action_delete(self) -> None:
        if (run := self._chosen) is not None:
            self.post_message(self.Deleted(run_id=run.run_id))

    def action_delivery(self) -> None:
        if (run := self._chosen) is not None:
            other = Delivery.QUEUE if run.delivery is Delivery.STEER else Delivery.STEER
            self.post_message(self.Delivered(run_id=run.run_id, delivery=other))


def _order(run: Run) -> tuple[bool, int]:
    """As the server takes them (L10). Not by `position`, which is only as new as the run's last event."""
    return (run.delivery is not Delivery.STEER, run.seq)


def _row(run: Run) -> Content:
    who = f"  {plain_line(person(run.client_id))}" if run.client_id else ""
    plan = "plan first  " if run.plan else ""
    return Content.assemble((f"{run.delivery.value:<5} {plan}", "$text-accent"), plain_line(run.prompt), (who, FAINT))
