"""The keys of the main screen: one table for the bindings, the help, the leader key and docs/terminal.md.

The keys of the commands are in `commands`, those of each dialog and panel in `dialogs.help`. Must not know what the
actions do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from textual.binding import Binding, BindingType

from longboat.tui.commands import COMMANDS
from longboat.tui.dialogs.help import HelpSection

LEADER = "ctrl+x"


class Group(StrEnum):
    """The sections of the help."""

    PROMPT = "Prompt"
    CONVERSATION = "Conversation"
    APP = "App"


class Owner(StrEnum):
    """The part that acts on a key."""

    APP = "app"
    PROMPT = "prompt"
    WIDGET = "widget"
    """A list or a field, which needs no binding of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    names: str
    """The names that Textual gives them, separated by commas."""
    description: str
    group: Group
    action: str = ""
    owner: Owner = Owner.APP
    leader: str = ""
    """The key that does the same after the leader key."""
    label: str = ""
    """A short text for the line of keys that can follow the leader key."""
    also: str = ""
    """More names that are bound, but not listed: few terminals can send them."""
    priority: bool = False
    """Whether it works wherever the focus is, before any widget sees it. Never while a dialog is open."""


KEYS = (
    Key(
        names="enter",
        description="Send; while the agent is working, steer it",
        group=Group.PROMPT,
        owner=Owner.WIDGET,
    ),
    Key(
        names="ctrl+q",
        description="Queue: run after the current turn",
        group=Group.PROMPT,
        action="queue",
        owner=Owner.PROMPT,
    ),
    Key(
        names="alt+enter",
        description="Queue; while a request is pending, send as a prompt instead of an answer",
        group=Group.PROMPT,
        action="as_prompt",
        owner=Owner.PROMPT,
    ),
    Key(
        names="ctrl+j",
        also="shift+enter",
        description="New line (shift+enter if your terminal supports it)",
        group=Group.PROMPT,
        action="newline",
        owner=Owner.PROMPT,
    ),
    Key(names="up,down", description="Recall earlier prompts", group=Group.PROMPT, owner=Owner.WIDGET),
    Key(
        names="tab",
        description="Complete; otherwise move to the recent sessions, the queue or the jobs",
        group=Group.PROMPT,
        action="complete",
        owner=Owner.PROMPT,
    ),
    Key(
        names="shift+tab",
        description="Plan first: the agent changes nothing until you approve its plan; again to turn it off",
        group=Group.PROMPT,
        action="app.command('plan')",
        owner=Owner.PROMPT,
    ),
    Key(names="ctrl+v", description="Attach the image on the clipboard", group=Group.PROMPT, owner=Owner.WIDGET),
    Key(
        names="backspace",
        description="In an empty prompt: remove the last attachment",
        group=Group.PROMPT,
        owner=Owner.WIDGET,
    ),
    Key(names="ctrl+c", description="Clear the prompt; press twice to quit", group=Group.PROMPT, action="leave"),
    Key(
        names="ctrl+d",
        description="Quit, if the prompt is empty",
        group=Group.PROMPT,
        action="leave",
        owner=Owner.PROMPT,
    ),
    Key(
        names="escape",
        description="Stop the run; press again to cancel all runs in this session",
        group=Group.CONVERSATION,
        action="interrupt",
    ),
    Key(
        names="ctrl+g",
        description="Show pending requests",
        group=Group.CONVERSATION,
        action="asks",
        leader="g",
        label="requests",
    ),
    Key(
        names="ctrl+up,ctrl+down",
        description="Select a message to copy, fork, undo or edit (or click it)",
        group=Group.CONVERSATION,
        action="select_message",
        leader="v",
        label="messages",
    ),
    Key(
        names="ctrl+b",
        description="Expand or collapse the last tool call (or click any)",
        group=Group.CONVERSATION,
        action="last_card",
    ),
    Key(names="pageup,pagedown", description="Scroll", group=Group.CONVERSATION, owner=Owner.WIDGET),
    Key(
        names="ctrl+end",
        description="Jump to the latest message",
        group=Group.CONVERSATION,
        action="newest",
        priority=True,
    ),
    Key(
        names="ctrl+p",
        description="Open the command palette",
        group=Group.APP,
        action="palette",
        leader="p",
        label="palette",
        priority=True,
    ),
    Key(
        names=LEADER,
        description="Leader key: lists the keys that can follow; press twice to cut the selected text",
        group=Group.APP,
        action="leader",
        priority=True,
    ),
)
TYPED = ("@ / !", "Mention a file, run a command, run a shell command")
"""What the first character of a word or of the prompt does."""
_SHOWN = {
    "escape": "esc",
    "up": "↑",
    "down": "↓",
    "pageup": "PgUp",
    "pagedown": "PgDn",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderKey:
    """A key that can follow the leader key."""

    key: str
    action: str
    label: str
    description: str


def app_bindings() -> list[BindingType]:
    """The bindings of the app: its own keys and those of the commands."""
    ours = [key for key in KEYS if key.owner is Owner.APP]
    commands = [command for command in COMMANDS if command.key]
    return [
        *(Binding(key.names, key.action, key.description, show=False, priority=key.priority) for key in ours),
        *(Binding(each.key, f"command('{each.name}')", each.description, show=False) for each in commands),
        # Textual would quit where the prompt does not have the focus.
        Binding("ctrl+q", "queue", "Queue", show=False),
    ]


def prompt_bindings() -> list[BindingType]:
    return [
        Binding(",".join(filter(None, (key.names, key.also))), key.action, key.description, show=False)
        for key in KEYS
        if key.owner is Owner.PROMPT
    ]


PRIORITY = frozenset(key.action for key in KEYS if key.priority)
"""The actions that a dialog in front must be protected from."""


def leader_keys() -> dict[str, LeaderKey]:
    """The keys that can follow the leader key, in the order of their labels."""
    found = [
        *(
            LeaderKey(key=each.leader, action=f"command('{each.name}')", label=each.name, description=each.description)
            for each in COMMANDS
        ),
        *(
            LeaderKey(key=each.leader, action=each.action, label=each.label, description=each.description)
            for each in KEYS
        ),
    ]
    return {each.key: each for each in sorted(found, key=lambda each: each.label) if each.key}


def format_keys(names: str) -> str:
    """Key names as people know them."""
    return " ".join(_SHOWN.get(name, name) for name in names.split(","))


def sections() -> tuple[HelpSection, ...]:
    """The help of the main screen."""
    return (
        *(HelpSection(title=group.value, rows=tuple(_rows(group))) for group in Group),
        HelpSection(
            title=f"After {LEADER}",
            rows=tuple((each.key, each.description) for each in leader_keys().values()),
        ),
    )


def _rows(group: Group) -> Iterator[tuple[str, str]]:
    yield from ((format_keys(key.names), key.description) for key in KEYS if key.group is group)
    if group is Group.PROMPT:
        yield TYPED


def command_rows() -> tuple[tuple[str, str], ...]:
    """The help of the commands: each with its argument and its keys."""
    return tuple(
        (f"/{each.name} {each.argument}".strip(), each.description + f" ({each.key})" * bool(each.key))
        for each in COMMANDS
    )
