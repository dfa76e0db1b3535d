"""Shows a run: live on a terminal, once at the end in a pipe, or as one JSON line per event (R2).

Takes typed events; must not know where they come from. Answers go to `out`, everything else to stderr. Tool calls are
shown only if stderr is a terminal.
"""

import sys
from collections.abc import Callable
from typing import Protocol, TextIO

import msgspec

from longboat.cli.activity import Activity
from longboat.cli.console import notice, safe
from longboat.cli.markdown import writer_for
from longboat.cli.waiting_line import WaitingLine
from longboat.wire.asks import Permission, PermissionNotification, Question, QuestionNotification
from longboat.wire.events import Event
from longboat.wire.models import (
    AgentEvent,
    AgentEventType,
    Delivery,
    Message,
    MessageDelta,
    Role,
    Run,
    RunComplete,
    RunState,
    TextPart,
)


class Display(Protocol):
    waits: bool
    """Whether events are held back while a person is being asked something."""

    @property
    def sub_agents(self) -> bool:
        """Whether it can show the events of sub-agents."""

    def show(self, event: Event) -> None:
        """Show one event of the run; the last is its run_complete."""

    def show_sub_agent(self, event: Event) -> None:
        """Show one event of a sub-agent of the run."""

    def show_ahead(self, event: Event) -> None:
        """Show a request for an answer, or its end, of a run that has to end before this one starts."""

    def say(self, text: str) -> None:
        """Print a message on its own line."""

    def tick(self, *, doing: str = "", asking: bool = False) -> None:
        """Called each second, to show that the run continues. `doing` is what the caller waits for, if not for the run;
        `asking`: a person is being asked, so nothing may be shown."""

    def clear(self) -> None:
        """Remove what `tick` has shown."""


def display_of(style: str, *, at_once: bool = False, model: str = "") -> Display:
    """The display for a format and for where stdout goes. `at_once`: show the answer only when it is complete. `model`:
    the one that will answer, as far as is known."""
    if style == "json":
        return JsonLines(sys.stdout)
    activity = Activity() if sys.stderr is not None and sys.stderr.isatty() else None
    # A pager that reads stdout would be drawn over.
    line = WaitingLine(sys.stderr if activity is not None and sys.stdout.isatty() else None, model)
    return (LiveText if sys.stdout.isatty() and not at_once else FinalText)(sys.stdout, activity, line)


class JsonLines:
    """Each event as it was on the wire. Omits sub-agents: programs would take their text for the answer."""

    waits = False
    sub_agents = False

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, event: Event) -> None:
        inner = {"type": event.change, "payload": event.payload}
        line = msgspec.json.encode({"type": event.type, "payload": inner}).decode()
        self._out.write(line + "\n")
        self._out.flush()

    def show_sub_agent(self, event: Event) -> None:
        pass

    def show_ahead(self, event: Event) -> None:
        pass

    def say(self, text: str) -> None:
        notice(text)

    def tick(self, *, doing: str = "", asking: bool = False) -> None:
        pass

    def clear(self) -> None:
        pass


class FinalText:
    """Only the answer, when it is complete."""

    waits = True

    def __init__(self, out: TextIO, activity: Activity | None = None, line: WaitingLine | None = None) -> None:
        self._out = out
        self._notices = Notices()
        self._activity = activity
        self._line = line or WaitingLine(None)

    def show(self, event: Event) -> None:
        self._line.hear(event)
        if not isinstance(event.payload, RunComplete):
            self._notices.show(event, self.clear)
            if self._activity is not None:
                self._activity.show(event, self.clear)
        elif event.payload.text:
            self.clear()
            self._out.write(event.payload.text.removesuffix("\n") + "\n")
            self._out.flush()

    @property
    def sub_agents(self) -> bool:
        return self._activity is not None

    def show_sub_agent(self, event: Event) -> None:
        if self._activity is not None:
            self._activity.show_sub_agent(event, self.clear)

    def show_ahead(self, event: Event) -> None:
        self._notices.show_ahead(event, self.clear)

    def say(self, text: str) -> None:
        self.clear()
        notice(text)

    def tick(self, *, doing: str = "", asking: bool = False) -> None:
        self._line.tick(doing=doing, asking=asking)

    def clear(self) -> None:
        self._line.clear()


class LiveText:
    """The answer as it streams, formatted. A terminal cannot unprint text: a replaced answer starts again below."""

    waits = True

    def __init__(self, out: TextIO, activity: Activity | None = None, line: WaitingLine | None = None) -> None:
        self._out = out
        self._line = line or WaitingLine(None)
        self._writer = writer_for(out)
        self._notices = Notices()
        self._activity = activity
        self._shown: dict[tuple[str, int], str] = {}
        """The text shown so far, by message id and part index."""
        self._last: tuple[str, int] | None = None

    def show(self, event: Event) -> None:
        self._line.hear(event)
        match event.payload:
            case Message(role=Role.ASSISTANT) as message:
                for index, part in enumerate(message.parts):
                    if isinstance(part, TextPart):
                        self._replace((message.id, index), part.text)
            case MessageDelta() as delta:
                self._add(delta)
            case RunComplete() as complete:
                self._end(complete)
            case _:
                self._notices.show(event, self._close_line)
        if self._activity is not None:
            self._activity.show(event, self._close_line)
        self._out.flush()

    @property
    def sub_agents(self) -> bool:
        return self._activity is not None

    def show_sub_agent(self, event: Event) -> None:
        if self._activity is not None:
            self._activity.show_sub_agent(event, self._close_line)

    def show_ahead(self, event: Event) -> None:
        self._notices.show_ahead(event, self._close_line)

    def say(self, text: str) -> None:
        self._close_line()
        notice(text)

    def tick(self, *, doing: str = "", asking: bool = False) -> None:
        self._line.tick(self._writer.column, doing=doing, asking=asking)

    def clear(self) -> None:
        self._line.clear()

    def _add(self, delta: MessageDelta) -> None:
        key = (delta.message_id, delta.part)
        shown = self._shown.get(key)
        if shown is None or delta.offset > len(shown):
            return  # not a text part, or a gap that the full message will fill
        fresh = delta.text[len(shown) - delta.offset :]
        self._shown[key] = shown + fresh
        self._write(key, fresh)

    def _replace(self, key: tuple[str, int], text: str) -> None:
        shown = self._shown.get(key, "")
        self._shown[key] = text
        if text.startswith(shown):
            self._write(key, text[len(shown) :])
            return
        self.say("(the answer starts over)")
        self._write(key, text)

    def _end(self, complete: RunComplete) -> None:
        seen = any(text for (message_id, _), text in self._shown.items() if message_id == complete.message_id)
        if complete.text and not seen:
            self._write((complete.message_id or "", 0), complete.text)
        self._close_line()

    def _write(self, key: tuple[str, int], text: str) -> None:
        if not text:
            return
        self.clear()
        if self._last not in (None, key):
            self._close_line()
            self._out.write("\n")
            self._writer = writer_for(self._out)
        self._last = key
        self._writer.write(text)

    def _close_line(self) -> None:
        self.clear()
        self._writer.close()


class Notices:
    """Messages for a person who is waiting. A run's error comes with its final event, not here."""

    def __init__(self) -> None:
        self._said = ""
        self._queued: Run | None = None
        """The run, while it is queued."""
        self._ahead: dict[str, str] = {}
        """What the active run is waiting for, by the id of the request."""

    def show(self, event: Event, before: Callable[[], None] = lambda: None) -> None:
        if isinstance(event.payload, Run):
            self._queued = event.payload if event.payload.state is RunState.QUEUED else None
        self._tell(self._place() if self._queued is event.payload else _notice_of(event), before)

    def show_ahead(self, event: Event, before: Callable[[], None] = lambda: None) -> None:
        """Show a request for an answer, or its end, of the active run while this one is queued."""
        match event.payload:
            case Permission() as ask:
                self._ahead[ask.id] = "The active run needs approval: longboat permissions"
            case Question() as ask:
                self._ahead[ask.id] = "The active run asks a question: longboat questions"
            case PermissionNotification() | QuestionNotification() as end:
                self._ahead.pop(end.id, None)
                self._said = ""  # the next request is news, even in the same words
                return
        if self._queued is not None:
            self._tell(self._place(), before)

    def _place(self) -> str:
        """Where the run is in the queue, and what keeps it there."""
        told = _waiting(self._queued) if self._queued is not None else ""
        return ". ".join(filter(None, (told, next(iter(self._ahead.values()), ""))))

    def _tell(self, text: str, before: Callable[[], None]) -> None:
        if text and text != self._said:
            before()
            notice(text)
            self._said = text


def _notice_of(event: Event) -> str:
    match event.payload:
        case Run(state=RunState.FOLDED):
            return "added to the running turn"
        case AgentEvent(type=AgentEventType.RETRYING | AgentEventType.LOADING | AgentEventType.NOTICE) as told:
            return safe(told.message or told.type.value)
        case AgentEvent(type=AgentEventType.SUMMARIZING) as told:
            return safe(told.message or "The context window is nearly full: summarizing…")
        case AgentEvent(type=AgentEventType.ERROR, run_id="") as told:
            return safe(told.message)
        case _:
            return ""


def _waiting(run: Run) -> str:
    if run.delivery is Delivery.STEER:
        return "queued: steers the running turn at its next step"
    if run.position is None:
        return ""
    return f"queued: {run.position} prompts ahead" if run.position > 1 else "queued: runs next"
