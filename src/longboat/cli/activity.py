"""What the agent does while it works, for a person at a terminal: a line for each tool call, live output, short diffs.

Takes typed events and writes to stderr. Must not know where the answer goes: whoever writes that is asked to end its
line first.
"""

import posixpath
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import click

from longboat.cli.console import one_line, safe
from longboat.cli.subject import subject_of
from longboat.wire.events import Event
from longboat.wire.models import FileChange, Message, MessageDelta, Role, ToolCallPart, ToolResultPart

QUICK = frozenset(
    {
        "definition",
        "diagnostics",
        "edit",
        "glob",
        "grep",
        "job_kill",
        "job_list",
        "longboat_info",
        "ls",
        "multiedit",
        "question",
        "references",
        "rename",
        "symbols",
        "todos",
        "view",
        "write",
    }
)
"""Told of when they are done, on one line. Whatever may take long is told of when it begins."""
MAX_LINES = 40
"""Of one call's live output."""
MAX_CHANGED = 10
"""Lines of a diff."""
NEWS = ("background", "processes running")
"""What is worth telling of a command that went well."""


@dataclass(slots=True, kw_only=True)
class _Call:
    name: str
    subject: str
    path: str = ""
    """The file that it is to change, if it says so."""
    told: bool = False
    done: bool = False
    shown: str = ""
    """The live output so far."""
    rest: str = ""
    """Its last line, which has no end yet."""
    lines: int = 0
    changes: list[FileChange] = field(default_factory=list)


class Activity:
    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._places: dict[tuple[str, int], _Call] = {}
        """Which part of which message is whose result."""
        self._talking: _Call | None = None
        """Whose output was shown last."""
        self._before: Callable[[], None] = lambda: None

    def show(self, event: Event, before: Callable[[], None] = lambda: None) -> None:
        """`before` is called ahead of each line."""
        self._before = before
        match event.payload:
            case Message(role=Role.ASSISTANT) as message:
                for part in message.parts:
                    if isinstance(part, ToolCallPart) and part.finished:
                        self._meet(part)
            case Message(role=Role.TOOL) as message:
                for place, part in enumerate(message.parts):
                    if isinstance(part, ToolResultPart):
                        self._result((message.id, place), part)
            case MessageDelta() as delta if call := self._places.get((delta.message_id, delta.part)):
                self._grow(call, delta.offset, delta.text)
            case FileChange() as change:
                self._changed(change)

    def _meet(self, part: ToolCallPart) -> None:
        if part.id not in self._calls:
            subject = subject_of(part.name, part.input)
            self._calls[part.id] = _Call(name=part.name, subject=subject.text, path=subject.path)

    def _result(self, place: tuple[str, int], part: ToolResultPart) -> None:
        # Who begins to watch in the middle of a call has not seen what it is.
        call = self._calls.setdefault(part.tool_call_id, _Call(name="tool call", subject=""))
        if call.done:
            return
        self._places[place] = call
        if not part.finished:
            if call.name not in QUICK and not call.told:
                self._tell(call)
            self._grow(call, 0, part.content)
            return
        call.done = True
        self._end(call, part)

    def _grow(self, call: _Call, offset: int, text: str) -> None:
        """Show what is new. A gap is filled by the whole message, or by the result."""
        if call.done or offset > len(call.shown):
            return
        fresh = text[len(call.shown) - offset :]
        if fresh:
            call.shown += fresh
            *lines, call.rest = (call.rest + fresh).split("\n")
            self._output(call, lines)

    def _output(self, call: _Call, lines: list[str]) -> None:
        if not lines or call.lines > MAX_LINES:
            return
        if self._talking is not call:
            self._tell(call)
        for line in lines[: MAX_LINES - call.lines]:
            self._line(f"    {one_line_of(line)}", dim=True)
        call.lines += len(lines)
        if call.lines > MAX_LINES:
            self._line("    … (there is more)", dim=True)

    def _end(self, call: _Call, part: ToolResultPart) -> None:
        output, said = _parted(call, part)
        fresh = output[len(call.shown) :] if output.startswith(call.shown.rstrip("\n")) else ""
        if left := (call.rest + fresh).rstrip("\n"):
            self._output(call, left.split("\n"))
        if not call.told:
            self._tell(call, _suffix(call, part))
            for line in _changed_lines(part.content) if call.changes else ():
                self._line(f"    {one_line_of(line)}", fg="green" if line.startswith("+") else "red")
        if part.is_error or (call.name == "bash" and any(each in said for each in NEWS)):
            self._line(f"  └ {one_line(said, _width() - 4)}", fg="red" if part.is_error else None)
        self._talking = None

    def _changed(self, change: FileChange) -> None:
        for call in self._calls.values():
            if not call.done and not call.told and posixpath.normpath(call.path).endswith(change.path):
                call.changes.append(change)
                return
        self._line(f"  {safe(change.path)} {_counts(change)}", dim=True)  # a sub-agent's, or one of several files

    def _tell(self, call: _Call, suffix: str = "") -> None:
        room = _width() - len(click.unstyle(suffix)) - 1
        self._line(f"{one_line(f'● {call.name} {call.subject}', max(20, room))} {suffix}".rstrip())
        call.told = True
        self._talking = call

    def _line(self, text: str, *, fg: str | None = None, dim: bool = False) -> None:
        self._before()
        click.secho(text, err=True, fg=fg, dim=dim or None)


def one_line_of(line: str) -> str:
    """A line of output, its indentation kept, as wide as the terminal."""
    line = safe(line.expandtabs(4)).rstrip()
    room = max(20, _width() - 4)
    return line if len(line) <= room else line[: room - 1] + "…"


def _width() -> int:
    return shutil.get_terminal_size().columns


def _parted(call: _Call, part: ToolResultPart) -> tuple[str, str]:
    """The output of a command, and what is said of how it ended; of other tools, nothing and the first line."""
    content = part.content.rstrip()
    if call.name == "bash" and not content.endswith("]"):
        return "", content.rpartition("\n")[2]  # broken off: what it had printed, then why
    if call.name != "bash":
        return "", content.split("\n", 1)[0]
    output, _, said = content.rpartition("\n[")
    return output, said.removeprefix("[").removesuffix("]").removeprefix("no output; ")


def _suffix(call: _Call, part: ToolResultPart) -> str:
    if call.name == "question" and not part.is_error:
        return f"→ {one_line(part.content, _width() // 2)}"
    return " ".join(_counts(change) for change in call.changes)


def _counts(change: FileChange) -> str:
    return f"{click.style(f'+{change.additions}', fg='green')} {click.style(f'-{change.deletions}', fg='red')}"


def _changed_lines(content: str) -> Iterator[str]:
    """The first lines that a diff adds or removes."""
    _, _, diff = content.partition("\n@@")
    lines = [line for line in diff.split("\n") if line.startswith(("+", "-"))]
    yield from lines[:MAX_CHANGED]
    if len(lines) > MAX_CHANGED:
        yield f"… {len(lines) - MAX_CHANGED} more"
