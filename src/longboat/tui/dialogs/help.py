"""The help screen: all keys and commands, searchable."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from longboat.tui.dialogs.fields import Field
from longboat.tui.dialogs.frame import Dialog, keys_line
from longboat.tui.panels.looks import FAINT
from longboat.wire.plain import plain_line

COLUMN = 16
"""The width of the key column."""
BESIDE = 2 + COLUMN + 2
"""Where the descriptions start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpSection:
    title: str
    rows: tuple[tuple[str, str], ...]
    """A key or command and its description. Project commands may contain untrusted text."""


DIALOG_HELP = (
    HelpSection(
        title="Permissions",
        rows=(
            ("y", "Allow once"),
            ("s", "Allow for this session"),
            ("a", "Always allow (adds the rules to longboat.json)"),
            ("w", "Use the wider rules, or not"),
            ("d", "Deny, and say what to do instead"),
            ("PgUp PgDn", "Scroll"),
            ("esc", "Decide later, or leave it to someone else"),
        ),
    ),
    HelpSection(
        title="Questions",
        rows=(
            ("1–9", "Choose"),
            ("space", "Mark, if several answers are allowed"),
            ("t", "Type an answer"),
            ("enter", "Send"),
        ),
    ),
    HelpSection(
        title="Sessions",
        rows=(
            ("enter", "Open"),
            ("ctrl+n", "New"),
            ("ctrl+r", "Rename"),
            ("ctrl+f", "Fork"),
            ("ctrl+t", "Pin or unpin"),
            ("ctrl+o", "Archive or unarchive"),
            ("del", "Delete, after a confirmation"),
        ),
    ),
    HelpSection(
        title="Palette",
        rows=(("↑ ↓", "Move"), ("enter", "Run the command, or choose the theme"), ("esc ctrl+p", "Close")),
    ),
    HelpSection(title="Search", rows=(("↑ ↓", "Move"), ("enter", "Show the message"))),
    HelpSection(
        title="Messages",
        rows=(
            ("↑ ↓", "Select another message"),
            ("c", "Copy it"),
            ("f", "Fork: continue in a copy of the session up to it"),
            ("u", "Undo its turn and all later ones, after a confirmation"),
            ("e", "Edit and resend a prompt, in a copy of the session before it"),
            ("esc", "Close"),
        ),
    ),
    HelpSection(
        title="Inbox",
        rows=(("enter", "Answer, or open the session of a run"), ("o", "Open the session"), ("m", "Mark all as seen")),
    ),
    HelpSection(
        title="Models",
        rows=(("enter", "Select"), ("ctrl+t", "Next effort"), ("ctrl+n", "Connect a provider")),
    ),
    HelpSection(title="Setup", rows=(("enter", "Select, or test the key"), ("esc", "Cancel, or go back to the list"))),
    HelpSection(title="Export", rows=(("enter", "Save"), ("ctrl+t", "Markdown or JSON"))),
    HelpSection(
        title="Text fields",
        rows=(("enter", "Save; in a multi-line field, a new line"), ("ctrl+s", "Save"), ("ctrl+j", "New line")),
    ),
    HelpSection(title="Confirmations", rows=(("y", "Yes"), ("n", "No"), ("← →", "Move; enter selects"))),
    HelpSection(
        title="Queue",
        rows=(("e enter", "Edit a waiting prompt"), ("t", "Switch between steer and queue"), ("del", "Delete it")),
    ),
    HelpSection(title="Jobs", rows=(("k", "Kill, after a confirmation"),)),
    HelpSection(
        title="Changes",
        rows=(
            ("j k", "Next and previous file"),
            ("n p", "Next and previous hunk"),
            ("↑ ↓", "Move by line"),
            ("s", "Side by side or unified, with at least 100 columns"),
            ("u", "Undo the hunk, after a confirmation"),
            ("U", "Undo all changes to the file, after a confirmation"),
            ("r", "Redo what was undone last, after a confirmation"),
            ("o", "Open the file at the cursor in $EDITOR"),
            ("c", "Comment on the line (comments go into your prompt)"),
            ("del", "Remove the comment at the cursor"),
            ("q", "Close"),
        ),
    ),
)
"""The keys of the dialogs and panels."""


class HelpScreen(Dialog[None]):
    """Typing searches; the arrows scroll."""

    HEADING = "Help"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "look(1)", show=False),
        Binding("up", "look(-1)", show=False),
        Binding("pagedown", "look(10)", show=False),
        Binding("pageup", "look(-10)", show=False),
        Binding("f1", "later", show=False),
    ]
    DEFAULT_CSS = """
    HelpScreen {
        & > .box { height: 90%; }
        &.-narrow > .box { height: 100%; }
        #pages { height: 1fr; scrollbar-gutter: stable; }
    }
    """

    def __init__(self, sections: Sequence[HelpSection]) -> None:
        super().__init__()
        self._sections = sections

    def body(self) -> list[Widget]:
        return [
            Field(placeholder="Search keys and commands", id="find"),
            VerticalScroll(Static("", id="told", markup=False), id="pages", can_focus=False),
            keys_line(("↑↓ PgUp PgDn", "scroll"), ("esc", "close")),
        ]

    def on_mount(self) -> None:
        self.query_one("#find").focus()

    @on(Input.Changed)
    def _tell(self) -> None:
        self.query_one("#told", Static).update(self._render_sections(self.query_one("#find", Input).value))

    def on_resize(self, event: events.Resize) -> None:
        self.when_laid_out(self._tell)  # the width is known by then

    @on(Input.Submitted)
    def _close(self) -> None:
        self.end(None)

    def action_look(self, lines: int) -> None:
        self.query_one("#pages").scroll_relative(y=lines, animate=False)

    def _render_sections(self, text: str) -> Content:
        words, width = text.casefold().split(), self.query_one("#pages").scrollable_content_region.width
        parts: list[Content | tuple[str, str] | str] = []
        for section in self._sections:
            rows = [row for row in section.rows if _fits(words, section.title, row)]
            if rows:
                parts += ["\n" if parts else "", (f"{plain_line(section.title)}\n", "bold $text-primary")]
                parts += [piece for row in rows for piece in _row(*row, width)]
        return Content.assemble(*parts) if parts else Content.styled("Nothing found.", FAINT)


def _fits(words: list[str], title: str, row: tuple[str, str]) -> bool:
    said = f"{title} {row[0]} {row[1]}".casefold()
    return all(word in said for word in words)


def _row(key: str, what: str, width: int) -> list[Content | tuple[str, str] | str]:
    """The key with its description beside it. A key too long for its column gets its own line."""
    key = plain_line(key)
    lines = Content(plain_line(what)).wrap(max(10, width - BESIDE))
    first = f"  {key:<{COLUMN}}  " if cell_len(key) <= COLUMN else f"  {key}\n{' ' * BESIDE}"
    return [(first, "$text-accent"), Content(f"\n{' ' * BESIDE}").join(lines), "\n"]
