"""Shows what the agent is doing at a terminal: a line for each tool call, live output, short diffs.

Takes typed events and writes to stderr. Must not know where the answer goes: a callback ends the answer's line first.
"""

import os
import posixpath
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import click

from longboat.cli.console import columns, one_line, safe, terminal_line
from longboat.cli.sub_agents import SubAgents
from longboat.client.subject import subject_of
from longboat.tools.process.live_output import NOT_SHOWN
from longboat.wire.events import Event
from longboat.wire.models import Message, MessageDelta, Role, ToolCallPart, ToolResultPart
from longboat.wire.tools import Draw, ToolTraits
from longboat.wire.workspace_state import FileChange

MAX_LINES = 40
"""Lines of live output shown per call, from its start."""
LAST_LINES = 5
"""Lines shown from the end of longer output: they say how a command ended."""
MAX_CHANGED = 10
"""Lines of a diff that are shown."""
USUAL_WIDTH = 80
NEWS = ("background", "processes running")
"""Parts of a successful command's status that are worth showing."""


@dataclass(slots=True, kw_only=True)
class _Call:
    name: str
    subject: str
    traits: ToolTraits | None = None
    """None if the call was not seen, or no one knew the tool."""
    path: str = ""
    """The file that the call will change, if it names one."""
    told: bool = False
    done: bool = False
    shown: str = ""
    """The live output so far."""
    rest: str = ""
    """The last line, still incomplete."""
    lines: int = 0
    """Lines that were shown."""
    hidden: int = 0
    """Lines that were not shown."""
    gaps: bool = False
    """Whether the server omitted lines."""
    last: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    """The last hidden lines."""
    changes: list[FileChange] = field(default_factory=list)


class Activity:
    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._places: dict[tuple[str, int], _Call] = {}
        """The call whose result is at a message id and part index."""
        self._talking: _Call | None = None
        """The call whose output was shown last."""
        self._before: Callable[[], None] = lambda: None
        self._sub_agents = SubAgents(self._write_of_sub_agent)

    def show(self, event: Event, before: Callable[[], None] = lambda: None) -> None:
        """Show an event. `before` is called ahead of each line."""
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

    def show_sub_agent(self, event: Event, before: Callable[[], None] = lambda: None) -> None:
        """Show an event of a sub-agent."""
        self._before = before
        self._sub_agents.show(event)

    def _write_of_sub_agent(self, line: str, failed: bool) -> None:
        self._line(terminal_line(line, _width()), fg="red" if failed else None, dim=not failed)
        self._talking = None  # so that another call's next output repeats its heading

    def _meet(self, part: ToolCallPart) -> None:
        if part.id not in self._calls:
            subject = subject_of(part.input, part.traits)
            self._calls[part.id] = _Call(name=part.name, subject=subject.text, traits=part.traits, path=subject.path)

    def _result(self, place: tuple[str, int], part: ToolResultPart) -> None:
        # A client that joined in the middle of a call may not have seen its arguments.
        call = self._calls.setdefault(part.tool_call_id, _Call(name=part.name or "tool call", subject=""))
        if call.done:
            return
        self._places[place] = call
        if not part.finished:
            # A quick one gets one line, when it is done.
            if not call.told and not (call.traits and call.traits.quick):
                self._tell(call)
            self._grow(call, 0, part.content)
            return
        call.done = True
        self._end(call, part)

    def _grow(self, call: _Call, offset: int, text: str) -> None:
        """Show new output. The full message or the result will fill a gap."""
        if call.done or offset > len(call.shown):
            return
        fresh = text[len(call.shown) - offset :]
        if fresh:
            call.shown += fresh
            *lines, call.rest = (call.rest + fresh).split("\n")
            self._output(call, lines)

    def _output(self, call: _Call, lines: list[str]) -> None:
        if lines and call.lines < MAX_LINES and self._talking is not call:
            self._tell(call)
            call.lines += 1  # headings count too: parallel calls that alternate line by line must not double the output
        for line in lines:
            call.gaps = call.gaps or line.endswith(NOT_SHOWN)
            if not call.lines and not line.strip():
                continue
            if call.lines < MAX_LINES:
                self._line(f"    {one_line_of(line)}", dim=True)
                call.lines += 1
                continue
            if not call.hidden:
                self._line("    … (more)", dim=True)
            call.hidden += 1
            call.last.append(line)

    def _last_words(self, call: _Call) -> None:
        """For output that was too long: how much was hidden, and its last lines."""
        if not call.hidden:
            return
        if self._talking is not call:
            self._tell(call)
        if left_out := call.hidden - len(call.last):
            count = f"more than {left_out:,} lines" if call.gaps else f"{left_out:,} more lines"
            self._line(f"    … {count}, then:", dim=True)
        for line in call.last:
            self._line(f"    {one_line_of(line)}", dim=True)

    def _end(self, call: _Call, part: ToolResultPart) -> None:
        output, said = _parted(call, part)
        fresh = output[len(call.shown) :] if output.startswith(call.shown.rstrip("\n")) else ""
        if left := (call.rest + fresh).rstrip("\n"):
            self._output(call, left.split("\n"))
        self._last_words(call)
        if not call.told:
            # A plan that was rejected is not worth showing.
            call.subject = "failed" if part.is_error and _draws(call, Draw.PLAN) else call.subject
            self._tell(call, _suffix(call, part))
            for line in _changed_lines(part.content) if call.changes else ():
                self._line(f"    {one_line_of(line)}", fg="green" if line.startswith("+") else "red")
        if part.is_error or (_is_command(call, part) and any(each in said for each in NEWS)):
            self._line(f"  └ {one_line(said, _width() - 4)}", fg="red" if part.is_error else None)
        self._talking = None

    def _changed(self, change: FileChange) -> None:
        for call in self._calls.values():
            if not call.done and not call.told and posixpath.normpath(call.path).endswith(change.path):
                call.changes.append(change)
                return
        self._line(
            f"  {safe(change.path)} {_counts(change)}", dim=True
        )  # changed by a sub-agent, or one of several files

    def _tell(self, call: _Call, suffix: str = "") -> None:
        room = _width() - columns(click.unstyle(suffix)) - 1
        self._line(f"{one_line(f'● {call.name} {call.subject}', max(20, room))} {suffix}".rstrip())
        call.told = True
        self._talking = call

    def _line(self, text: str, *, fg: str | None = None, dim: bool = False) -> None:
        self._before()
        click.secho(text, err=True, fg=fg, dim=dim or None)


def one_line_of(line: str) -> str:
    """A line of output, indented as it was, cut to the terminal's width."""
    return terminal_line(line, max(20, _width() - 4))


def _width() -> int:
    """The width of stderr's terminal; stdout may not be a terminal."""
    with suppress(ValueError):
        if (given := int(os.environ.get("COLUMNS", ""))) > 0:
            return given
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or USUAL_WIDTH
    except (OSError, ValueError):
        return USUAL_WIDTH


def _parted(call: _Call, part: ToolResultPart) -> tuple[str, str]:
    """A command's output and its status; for other tools, nothing and the first line of the result."""
    content = part.content.rstrip()
    if not _is_command(call, part):
        return "", content.split("\n", 1)[0]
    if not content.endswith("]"):
        return "", content.rpartition("\n")[2]  # broken off: what it had printed, then why
    output, _, said = content.rpartition("\n[")
    return output, said.removeprefix("[").removesuffix("]").removeprefix("no output; ")


def _draws(call: _Call, draw: Draw) -> bool:
    return call.traits is not None and call.traits.draw is draw


def _is_command(call: _Call, part: ToolResultPart) -> bool:
    """Of a call that was not seen, its result tells: who attaches while a command runs learns how it ended, too."""
    if call.traits is None:
        return part.content.rstrip().rpartition("\n")[2].startswith("[") and part.content.rstrip().endswith("]")
    return call.traits.draw is Draw.COMMAND


def _suffix(call: _Call, part: ToolResultPart) -> str:
    if _draws(call, Draw.QUESTION) and not part.is_error:
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
