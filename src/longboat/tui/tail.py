"""Shown below the newest message: prompts that the server has not accepted yet, and temporary notices.

Must not know how prompts are sent: a click posts a message.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from longboat.tui.content import content, line
from longboat.tui.prompt_outbox import Kind, Outgoing, Progress
from longboat.wire.plain import plain

PROMPT_LINES = 6


class OutgoingView(Static):
    """A prompt that is being sent; a click on a rejected one resends it."""

    DEFAULT_CSS = """
    OutgoingView {
        height: auto; margin: 0 0 1 0; padding: 0 1; border-left: outer $primary-muted; color: $text-muted;
        &.-refused { border-left: outer $error; }
    }
    """

    @dataclass
    class Retried(Message):
        prompt: Outgoing

    def __init__(self, prompt: Outgoing) -> None:
        super().__init__(markup=False)
        self.prompt = prompt

    def show(self, *, away: bool) -> None:
        prompt = self.prompt
        rows = plain(f"! {prompt.text}" if prompt.kind is Kind.SHELL else prompt.text).splitlines()
        shown = [Content("\n".join(rows[:PROMPT_LINES]))]
        refused = prompt.progress is Progress.REFUSED
        if refused:
            shown.append(line(f"✗ Not sent: {prompt.problem}", "$text-error"))
            shown.append(Content.styled("ctrl+r or click to resend, esc to take it back", "italic"))
        else:
            shown.append(
                Content.styled(
                    ("waiting for the server" if away else "sending…") + ", plan first" * prompt.plan, "italic"
                )
            )
        self.set_class(refused, "-refused")
        self.update(Content("\n").join(shown))

    def on_click(self) -> None:
        if self.prompt.progress is Progress.REFUSED:
            self.post_message(self.Retried(self.prompt))


def show_outgoing(tail: Widget, waiting: Sequence[Outgoing], *, away: bool) -> None:
    """Show the prompts of the outbox, each by its widget."""
    shown = {view.prompt.run_id: view for view in tail.query(OutgoingView)}
    prompts = {prompt.run_id: prompt for prompt in waiting}
    for run_id in shown.keys() - prompts.keys():
        shown[run_id].remove()
    added = [OutgoingView(prompt) for run_id, prompt in prompts.items() if run_id not in shown]
    for view in [*shown.values(), *added]:
        view.show(away=away)
    if added:
        tail.mount_all(added)


class Notices(Static):
    """The agent's last notices, removed when its work continues; in a new session, advice about the model."""

    DEFAULT_CSS = """
    Notices { height: auto; margin: 0 0 1 2; color: $text-warning; display: none; }
    """

    def __init__(self) -> None:
        super().__init__(markup=False, id="notices")

    def show(self, notices: Sequence[str]) -> None:
        self.display = bool(notices)
        self.update(Content("\n").join(content(f"◌ {notice}") for notice in notices))
