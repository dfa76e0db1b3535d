"""Fills the palette: the built-in commands, the other keys, the project's commands; and the list of themes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from longboat.tui.commands import BY_NAME, COMMANDS
from longboat.tui.dialogs.palette import Entry, Palette, Picked
from longboat.tui.keys import KEYS, LEADER, format_keys

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp

SCREENSHOT = "screenshot"


def open_palette(app: "LongboatApp") -> None:
    app.push_screen(Palette(list(_entries(app))), lambda picked: _run(app, picked))


def open_themes(app: "LongboatApp") -> None:
    entries = [Entry(id=name, title=name) for name in sorted(app.available_themes)]
    dialog = Palette(entries, heading="Themes", current=app.theme)
    app.push_screen(dialog, lambda picked: _wear(app, picked))


def _entries(app: "LongboatApp") -> Iterator[Entry]:
    for command in COMMANDS:
        keys = "  ".join(filter(None, (command.key, f"{LEADER} {command.leader}" * bool(command.leader))))
        yield Entry(
            id=f"command:{command.name}", title=command.name.capitalize(), description=command.description, keys=keys
        )
    for key in KEYS:
        if key.label and key.action != "palette":
            keys = f"{format_keys(key.names)}  {LEADER} {key.leader}"
            yield Entry(id=f"action:{key.action}", title=key.label.capitalize(), description=key.description, keys=keys)
    yield Entry(id=f"action:{SCREENSHOT}", title="Screenshot", description="Save a screenshot as SVG")
    for theirs in app.project_commands:
        if theirs.name not in BY_NAME:
            yield Entry(id=f"project:{theirs.name}", title=f"/{theirs.name}", description=theirs.description)


def _run(app: "LongboatApp", picked: Picked | None) -> None:
    kind, _, name = (picked.id if picked is not None else "").partition(":")
    match kind:
        case "command":
            app.command_actions.do(name)
        case "project":  # it may take arguments
            app.composer.put(f"/{name} ")
        case "action" if name == SCREENSHOT:
            app.deliver_screenshot()
        case "action":
            app.call_later(app.run_action, name)
    app.call_later(app.asking.refresh)


def _wear(app: "LongboatApp", picked: Picked | None) -> None:
    if picked is not None:
        app.theming.choose(picked.id)
    app.asking.refresh()
