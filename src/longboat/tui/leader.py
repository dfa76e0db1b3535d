"""The leader key: the line of keys that can follow it, which takes exactly the next key. Must not know the actions."""

from textual import events
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from longboat.tui.keys import LEADER, LeaderKey

KEY = "bold $text-accent"


class LeaderLine(Static, can_focus=True):
    """Hidden until `open`. Has the focus while it is open, so that even a key pressed at the same time reaches it."""

    DEFAULT_CSS = """
    LeaderLine { display: none; height: auto; max-height: 8; padding: 0 1; background: $panel; }
    """

    def __init__(self, keys: dict[str, LeaderKey]) -> None:
        super().__init__("", id="leader", markup=False)
        self._keys = keys
        self._before: Widget | None = None

    def on_resize(self, event: events.Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        """The keys in columns, as many as fit."""
        entries = [(LEADER, "", "bold $text-warning"), *((each.key, each.label, KEY) for each in self._keys.values())]
        entries.append(("esc", "cancel", KEY))
        cell = max(len(key) + len(label) for key, label, _ in entries) + 2
        across = max(1, self.content_size.width // cell)
        rows = [
            Content("").join(
                Content.assemble((key, look), f" {label}".ljust(cell - len(key)))
                for key, label, look in entries[start : start + across]
            )
            for start in range(0, len(entries), across)
        ]
        self.update(Content("\n").join(rows))

    @property
    def is_open(self) -> bool:
        return bool(self.display)

    def open(self) -> None:
        self._before = self.screen.focused
        self.display = True
        self._draw()
        self.screen.set_focus(self)

    def close(self) -> None:
        if self.is_open:
            if self.screen.focused is self:
                self.screen.set_focus(self._before)
            self.display = False

    def on_blur(self) -> None:
        self.close()

    def on_key(self, event: events.Key) -> None:
        if not self.is_open:
            return  # pressed together with the key before it: it belongs to the prompt
        event.stop()
        event.prevent_default()
        self.close()
        name = event.character if event.is_printable and event.character else event.key
        if name in self._keys:
            self.app.call_later(self.app.run_action, self._keys[name].action)
        elif name != "escape":
            self.notify(f"{LEADER} {name} does nothing.", markup=False)
