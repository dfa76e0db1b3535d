"""Writes the pages generated from the code: `protocol.md` from the wire types, `states.md` from the lifecycle's table,
`commands.md` from the command line's help, `reference.md` from the routes and the client, and the keys in
`configuration.md` from the schema, the rooms in `architecture.md` from the packages, the sizes in `tools.md` from
the tools and the system prompt, and the keys in `web.md` and `terminal.md` from the page and the terminal app.

python docs/generate.py            write them
python docs/generate.py --check    exit 1 and name each stale page; write nothing
"""

import enum
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any

import msgspec
from manual import commands, configuration
from markup import one_line, page, sentences, table
from reference import reference
from request_size import tools as tools_page
from rooms import architecture
from terminal_keys import terminal
from webkeys import web

from longboat import errors
from longboat.core import lifecycle
from longboat.core.state import TRANSITIONS, Happening
from longboat.server.errors import STATUS
from longboat.wire import (
    archive,
    asks,
    events,
    inbox,
    listings,
    model_requests,
    models,
    providers,
    requests,
    review,
    search,
    statistics,
    tools,
    workspace_state,
)
from longboat.wire.ids import Cursor
from longboat.wire.models import RunState

Kind = typing.TypeVar("Kind")

DOCS = Path(__file__).parent

HAPPENINGS = {
    Happening.ENTER_COVERED: "The prompt enters its session after a cancel that covers it: it never starts.",
    Happening.ENTER_BUSY: "The prompt enters its session while a turn is in progress, or while the server is stopping.",
    Happening.ENTER_IDLE: "The prompt enters its session, and no other prompt is ahead of it.",
    Happening.START: "The turn before it has ended, and this prompt is the oldest in the queue.",
    Happening.FOLD: "The active turn is about to make its next model request and includes the prompt.",
    Happening.CANCEL: "A client cancels the run, the queue or the session.",
    Happening.FAIL: "A defect in the server keeps it from starting: it ends with an error instead of waiting.",
    Happening.END: "The active turn has ended; runs that were folded into it end with it.",
}
"""What the diagram's labels mean. A happening without a sentence here fails the build of the page."""

NAMES: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
    dict[str, Any]: "object",
    dict[str, str]: "object of strings",
    models.Part: "[part](#parts)",
}


# Reading the code.


def link(shape: type) -> str:
    return f"[{shape.__name__}](#{shape.__name__.lower()})"


def members(module: ModuleType, kind: type[Kind]) -> Iterator[type[Kind]]:
    """The public classes of one kind that a module defines, in its order."""
    for value in vars(module).values():
        own = isinstance(value, type) and value.__module__ == module.__name__
        if own and issubclass(value, kind) and not value.__name__.startswith("_"):
            yield value


def spell(hint: Any) -> str:
    """A field's type in words."""
    if hint in NAMES:
        return NAMES[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, UnionType):
        return " or ".join(map(spell, arguments))
    if origin is tuple:
        return f"list of {spell(arguments[0])}"
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin is typing.Annotated:
        limits = [f"at most {meta.max_length} characters" for meta in arguments[1:] if meta.max_length is not None]
        return ", ".join([spell(arguments[0]), *limits])
    return link(hint)


def default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return f"`{msgspec.json.encode(value).decode()}`"


# The protocol page.


def fields_of(shape: type[msgspec.Struct]) -> str:
    said = sentences(shape)
    tag = shape.__struct_config__.tag
    rows = [["`type`", f"`{tag}`", "required", ""]] if tag else []
    for field in msgspec.structs.fields(shape):
        rows.append([f"`{field.encode_name}`", spell(field.type), default(field), said.get(field.name, "")])
    return table(["field", "type", "default", "meaning"], rows)


def values_of(kind: type[enum.Enum]) -> str:
    said = sentences(kind)
    if not said:
        return "One of " + ", ".join(f"`{member.value}`" for member in kind) + "."
    return table(["value", "meaning"], [[f"`{member.value}`", said.get(member.name, "")] for member in kind])


def sections(shapes: Iterable[type[msgspec.Struct] | type[enum.Enum]]) -> list[str]:
    blocks = []
    for shape in shapes:
        body = values_of(shape) if issubclass(shape, enum.Enum) else fields_of(shape)
        blocks += [f"### {shape.__name__}", *filter(None, [inspect.cleandoc(shape.__doc__ or "")]), body]
    return blocks


def example() -> str:
    """One frame as it is on the wire, made by the code that makes them all."""
    ended = models.RunComplete(
        run_id="fix-1", session_id="s1", message_id="m2", text="Done.", outcome=models.Outcome.END_TURN
    )
    body = events.encode_body(events.Change.CREATED, ended).decode()
    return f"```text\nid: {Cursor('w1', 1, 42)}\n{body.rstrip()}\n```"


def manifest() -> str:
    rows = [
        [f"`{name}`", ", ".join(f"`{change}`" for change in spec.changes), link(spec.payload), spec.meaning]
        for name, spec in events.EVENTS.items()
    ]
    return table(["type", "inner type", "payload", "meaning"], rows)


def unlogged() -> str:
    rows = [[f"`{name}`", link(shape), one_line(shape.__doc__)] for name, shape in events.UNLOGGED.items()]
    return table(["type", "payload", "meaning"], rows)


def drawn() -> dict[str, str]:
    """What the tree in the docstring of errors.py says of each class."""
    lines = re.findall(r"── (\w+) *(.*?)(?: +\d{3})?$", errors.__doc__ or "", flags=re.MULTILINE)
    return {name: text[:1].upper() + text[1:] + "." if text else "" for name, text in lines}


def status(error: type[errors.LongboatError]) -> int | None:
    return next((STATUS[base] for base in error.__mro__ if base in STATUS), None)


def message(error: type[errors.LongboatError]) -> str:
    """The error's own words if it has fixed ones, with … for what it fills in; else what the tree says."""
    wanted = list(inspect.signature(error).parameters)
    if "message" in wanted:
        return drawn().get(error.__name__, "")
    return str(error(*["…"] * len(wanted)).message)


def error_rows(*, answered: bool) -> list[list[str]]:
    every = [error for error in members(errors, errors.LongboatError) if error is not errors.LongboatError]
    rows = [(status(error), error) for error in every if (status(error) is not None) is answered]
    rows.sort(key=lambda row: row[0] or 0)
    return [
        [*([str(code)] if answered else []), f"`{error.code}`", f"`{error.__name__}`", message(error)]
        for code, error in rows
    ]


def protocol() -> str:
    parts = typing.get_args(models.Part)
    of_sessions = (models, tools, asks, inbox, workspace_state, listings, review)
    pages = (*of_sessions, providers, archive, statistics, search, model_requests)
    shapes = [shape for module in pages for shape in members(module, msgspec.Struct) if shape not in parts]
    return page(
        "# Protocol",
        f"Protocol number {models.PROTOCOL}. The server describes its own routes: `GET /v1/openapi.json`, or "
        "`/v1/docs` in a browser. This page lists the events, types and errors.",
        "## Events",
        "`GET /v1/workspaces/{workspace_id}/events?client_id=…` answers with server-sent events: `id` is the cursor to "
        "resume from (send it back as `Last-Event-ID`), `event` is the type, `data` is one line of JSON.",
        example(),
        manifest(),
        "Two more concern only one connection. They have no `id` and no inner envelope: `data` is "
        '`{"type": …, "payload": {…}}`.',
        unlogged(),
        "Ignore types and fields that you do not know: later versions add more.",
        "## Shapes",
        "Times are RFC 3339 in UTC with microseconds; they never determine order. Ids are opaque.",
        *sections(shapes),
        "## Parts",
        "A message is a list of parts, distinguished by `type`.",
        *sections(parts),
        "## Words in shapes",
        *(section for module in (*pages, events) for section in sections(members(module, enum.Enum))),
        "## Requests",
        "Bodies are JSON objects. The server refuses a field that is not listed with 400 and names it.",
        *sections(members(requests, msgspec.Struct)),
        *sections(members(requests, enum.Enum)),
        "## Errors",
        'Every refusal is `{"code": …, "message": …}`. Codes are stable; messages are for people. Some refusals carry '
        "a more specific code than their row's (`bad_json`, `bad_run_id`): use the status if you do not know the code. "
        "If a path does not support a method, the answer is 405 `method_not_allowed`; for anything unexpected it is "
        "500 `internal_error`.",
        table(["status", "code", "class", "message"], error_rows(answered=True)),
        "These are never the answer to a request: they stop a command, end a run, or the client itself raises them.",
        table(["code", "class", "meaning"], error_rows(answered=False)),
    )


# The page of the states.


def diagram() -> str:
    lines = ["stateDiagram-v2", "    [*] --> accepted: accept"]
    for state, cells in TRANSITIONS.items():
        labels: dict[RunState, list[str]] = {}
        for happening, target in cells.items():
            labels.setdefault(target, []).append(happening.value)
        lines += [f"    {state} --> {target}: {' / '.join(words)}" for target, words in labels.items()]
    lines += [f"    {state} --> [*]" for state, cells in TRANSITIONS.items() if not cells]
    return "\n".join(["```mermaid", *lines, "```"])


def matrix() -> str:
    rows = [
        [happening.value, *(str(cells.get(happening, "–")) for cells in TRANSITIONS.values())]
        for happening in Happening
    ]
    return table(["", *map(str, TRANSITIONS)], rows)


def states() -> str:
    commands = [[f"`{command.__name__}`", one_line(command.__doc__)] for command in typing.get_args(lifecycle.Command)]
    return page(
        "# The states of a run",
        "Generated from `TRANSITIONS` in `src/longboat/core/state.py`, the one table that defines every transition.",
        diagram(),
        "There is no state for canceling: a canceled active run stays active, with `cancel_requested` set, until its "
        "turn has ended. In the same way, a canceled accepted run stays accepted until it enters its session.",
        "## States",
        values_of(RunState),
        "## What can happen",
        table(["label", "meaning"], [[happening.value, HAPPENINGS[happening]] for happening in Happening]),
        "## Every cell",
        "A dash is a missing cell: asking for that transition raises `InvalidTransition` and changes nothing.",
        matrix(),
        "## How a run ends",
        values_of(models.Outcome),
        "## Session commands",
        "What a session can be asked to do. `decide(state, command)` returns the next state and the effects, which are "
        "recorded in one transaction before anything acts on them.",
        table(["command", "meaning"], commands),
    )


PAGES: dict[str, Callable[[], str]] = {
    "protocol.md": protocol,
    "states.md": states,
    "commands.md": commands,
    "reference.md": reference,
    "configuration.md": configuration,
    "architecture.md": architecture,
    "terminal.md": terminal,
    "tools.md": tools_page,
    "web.md": web,
}


def stale(folder: Path) -> list[str]:
    """The pages in a folder that are not what the code would write."""
    return [
        name
        for name, write in PAGES.items()
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != write()
    ]


def main(arguments: Sequence[str], folder: Path = DOCS) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    old = stale(folder)
    if arguments:
        for name in old:
            print(f"{folder / name} is stale: run python docs/generate.py", file=sys.stderr)
        return 1 if old else 0
    for name in old:
        (folder / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"wrote {folder / name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
