"""The line at a terminal that says what a run is waiting for while nothing new comes, and for how long.

Takes typed events to know what that is. Must not know what else is on the screen: callers clear
the line before they print.
"""

import os
import shutil
import time
from collections.abc import Callable, Mapping
from typing import TextIO

import click

from longboat.cli.console import one_line
from longboat.cli.markdown import is_dumb
from longboat.wire.asks import Permission, PermissionNotification, Question, QuestionNotification
from longboat.wire.events import Event
from longboat.wire.models import Message, Role, Run, RunState, ToolResultPart

QUIET_S = 3.0
"""How long nothing new has to come before the line appears."""
PLAIN_QUIET_S = 30.0
"""The same where it cannot be removed again."""


class WaitingLine:
    def __init__(
        self,
        out: TextIO | None,
        model: str = "",
        *,
        clock: Callable[[], float] = time.monotonic,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """`out`: the terminal; None shows nothing. `model`: the one that will answer, if it is known."""
        self._out = out
        self._clock = clock
        self._is_plain = is_dumb(environ) or bool(environ.get("NO_COLOR"))
        self._quiet_s = PLAIN_QUIET_S if self._is_plain else QUIET_S
        self._since = clock()
        self._drawn = False
        self._column = 0
        """Where the cursor was in the line above before this one was drawn; 0 if it was not in a line."""
        self._said: set[str] = set()
        """What a plain terminal was told: each text once."""
        self._model = model
        self._queued = False
        self._running: dict[str, str] = {}
        """The names of the tools that are running, by the id of the call."""
        self._asks: set[str] = set()

    def hear(self, event: Event) -> None:
        """Take an event of the run, to know what it waits for."""
        match event.payload:
            case Run() as run:
                self._queued = run.state is RunState.QUEUED
            case Message(role=Role.ASSISTANT, provider=str() as provider, model=str() as model):
                self._model = f"{provider}/{model}"
            case Message(role=Role.TOOL) as message:
                for part in message.parts:
                    if isinstance(part, ToolResultPart) and part.finished:
                        self._running.pop(part.tool_call_id, None)
                    elif isinstance(part, ToolResultPart):
                        self._running[part.tool_call_id] = part.name or "a tool"
            case Permission() | Question() as ask:
                self._asks.add(ask.id)
            case PermissionNotification() | QuestionNotification() as end:
                self._asks.discard(end.id)

    def tick(self, column: int = 0, *, doing: str = "", asking: bool = False) -> None:
        """Show the line, or its new time, if nothing was printed for a while. `column`: where the cursor is in a line
        that is still growing; `doing`: what to say instead; `asking`: someone is being asked here."""
        if asking:
            self._since = self._clock()
        waited = self._clock() - self._since
        if self._out is None or waited < self._quiet_s or not _is_in_front(self._out):
            return
        text = f"{one_line(doing or self._doing())}…"
        if self._is_plain:
            if column == 0 and text not in self._said:
                self._said.add(text)
                self._write(f"{text}\n")
            return
        if not self._drawn:
            self._column, self._drawn = column, True
            self._write("\n" if column else "")
        width = shutil.get_terminal_size().columns - 1  # a full line would wrap in some terminals
        self._write("\r\x1b[K" + click.style(one_line(f"{text} {_time(waited)}", width), dim=True))

    def clear(self) -> None:
        """Remove the line, because something else will be printed. The cursor is where it was before."""
        self._since = self._clock()
        if self._drawn:
            self._drawn = False
            self._write("\r\x1b[K" + (f"\x1b[A\x1b[{self._column}C" if self._column else ""))

    def _doing(self) -> str:
        if self._asks:
            return "Waiting for an answer"
        if self._queued:
            return "Queued"
        if self._running:
            return f"Running {', '.join(self._running.values())}"
        return f"Waiting for {self._model or 'the model'}"

    def _write(self, text: str) -> None:
        if self._out is not None:
            self._out.write(text)
            self._out.flush()


def _time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _is_in_front(out: TextIO) -> bool:
    """Whether the terminal is ours. A background job would draw over what the person types."""
    try:
        return os.tcgetpgrp(out.fileno()) == os.getpgrp()
    except OSError:  # not our controlling terminal: there is no job control
        return True
