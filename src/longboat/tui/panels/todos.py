"""The panels of a session's plan and of the workspace's connected people."""

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from longboat.tui.panels.looks import FAINT
from longboat.wire.ids import person, windows_of_people
from longboat.wire.models import ClientInfo
from longboat.wire.plain import plain_line
from longboat.wire.workspace_state import TodoItem, TodoState

_MARKS = {
    TodoState.PENDING: ("○", "", ""),
    TodoState.IN_PROGRESS: ("▸", "bold $text-warning", "bold"),
    TodoState.COMPLETED: ("✓", "$text-success", f"{FAINT} strike"),
}


class Panel(Static):
    """A few lines under a heading; hidden if there are none."""

    DEFAULT_CSS = """
    Panel { height: auto; padding: 0 1; margin: 0 0 1 0; color: $foreground; display: none; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__("", markup=False, id=id, classes=classes)

    def say(self, heading: str, lines: Sequence[Content]) -> None:
        """Show a heading of our own and lines that are safe to show."""
        self.display = bool(lines)
        self.update(Content("\n").join([Content.styled(heading, "bold $text-primary"), *lines]))


class TodosPanel(Panel):
    def show(self, items: Sequence[TodoItem]) -> None:
        done = sum(item.state is TodoState.COMPLETED for item in items)
        self.say(f"Plan {done}/{len(items)}", [_todo(item) for item in items])


def _todo(item: TodoItem) -> Content:
    mark, look, words = _MARKS[item.state]
    return Content.assemble((f"{mark} ", look), (plain_line(item.text), words))


class ClientsPanel(Panel):
    def show(self, clients: Sequence[ClientInfo], own_id: str) -> None:
        """People, the own name first: one with several windows is one person."""
        windows = windows_of_people(client.client_id for client in clients)
        mine = person(own_id)
        names = sorted(windows, key=lambda name: name != mine)
        self.say(f"Connected ({len(windows)})", [_person(name, windows[name], mine=name == mine) for name in names])


def _person(name: str, windows: int, *, mine: bool) -> Content:
    about = ["you"] * mine + [f"{windows} windows"] * (windows > 1)
    return Content.assemble(
        ("● ", "$text-success"), plain_line(name), (f" ({', '.join(about)})" if about else "", FAINT)
    )
