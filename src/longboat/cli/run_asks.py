"""Handles permission requests and questions while a command waits for its run. The person at this terminal answers, or
someone else does; if no one can approve, it cancels the run and gives advice. It must not hang silently (A2).

Owns the terminal's input while it is asking. Must not know what an answer means: the server does.
"""

import asyncio
import os
import sys
import termios
from collections import deque
from contextlib import suppress
from typing import Protocol

import click

from longboat.cli import asks
from longboat.cli.asks import Ask
from longboat.cli.display import Display
from longboat.client import Client
from longboat.errors import AlreadyAnswered, LongboatError, NotFound
from longboat.tasks import Tasks
from longboat.wire.asks import Permission, PermissionNotification, Question, QuestionNotification
from longboat.wire.events import Event
from longboat.wire.models import Run, RunComplete, RunState
from longboat.wire.typed_answers import texts_in

CLEAR_LINE = "\r\x1b[K"
PROMPT = "> "
TICK_S = 1.0
RETRY_FOR_S = 60.0
"""How long to keep trying to cancel a run that no one can answer, while the server is unreachable."""


class Answering(Protocol):
    @property
    def unanswerable(self) -> Permission | None:
        """The request for which the run was canceled."""

    @property
    def asking(self) -> bool:
        """Whether a person is being asked right now."""

    async def hear(self, event: Event) -> None: ...

    def say(self, text: str) -> None:
        """Print a message, even while a person is being asked."""

    async def aclose(self) -> None: ...


def can_ask() -> bool:
    """Whether a person can answer here. A background job cannot ask: reading from the terminal would stop it."""
    if sys.stdin is None or sys.stderr is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # not our controlling terminal: there is no job control
        return True


class OthersAnswer:
    """Reports requests and who answered them, and waits."""

    asking = False

    @property
    def unanswerable(self) -> Permission | None:
        return None

    def __init__(self, display: Display) -> None:
        self._display = display
        self._told: set[str] = set()

    async def hear(self, event: Event) -> None:
        match event.payload:
            case Permission() | Question() as ask if ask.id not in self._told:
                self._told.add(ask.id)
                command = "permissions" if isinstance(ask, Permission) else "questions"
                self._display.say(f"Waiting for an answer: {asks.title_of(ask)}")
                self._display.say(f"  longboat {command} answer {ask.id} …")
            case PermissionNotification() | QuestionNotification() as told:
                self._display.say(asks.describe_end(told))

    def say(self, text: str) -> None:
        self._display.say(text)

    async def aclose(self) -> None:
        pass


class NobodyAnswers(OthersAnswer):
    """Cancels the run at its first request for approval. Requests of a turn that it was folded into belong to that
    turn's run. A question comes only if someone can answer it elsewhere, and waits for them."""

    def __init__(self, client: Client, workspace_id: str, run_id: str, display: Display) -> None:
        super().__init__(display)
        self._client = client
        self._workspace_id = workspace_id
        self._run_id = run_id
        self._unanswerable: Permission | None = None

    @property
    def unanswerable(self) -> Permission | None:
        return self._unanswerable

    async def hear(self, event: Event) -> None:
        ask = event.payload
        if not isinstance(ask, Permission) or self._run_id not in (ask.run_id, ask.parent_run_id):
            await super().hear(event)
        elif self._unanswerable is None:
            self._unanswerable = ask
            await self._client.cancel_run(self._workspace_id, self._run_id, give_up_after_s=RETRY_FOR_S)


class PersonAnswers:
    """Asks at the terminal, one request at a time, in order. Requests answered elsewhere are dropped."""

    unanswerable: Permission | None = None

    def __init__(self, client: Client, workspace_id: str, display: Display) -> None:
        self._client = client
        self._workspace_id = workspace_id
        self._display = display
        self._open: deque[Ask] = deque()
        self._ours: set[str] = set()
        """Ids of requests that we have answered or are answering."""
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._tasks = Tasks()
        self._reading = False
        self._unread = b""
        self._gone = False

    @property
    def asking(self) -> bool:
        return bool(self._open) and not self._gone

    async def hear(self, event: Event) -> None:
        match event.payload:
            case Permission() | Question() as ask if ask.id not in {each.id for each in self._open} | self._ours:
                self._open.append(ask)
                if len(self._open) == 1:
                    self._begin()
            case PermissionNotification() | QuestionNotification() as told:
                known = any(ask.id == told.id for ask in self._open)
                if known and told.id not in self._ours:
                    self._interject(asks.describe_end(told))
                self._drop(told.id)
            case RunComplete():
                self._open.clear()  # even if we missed an event, nothing is pending now

    async def aclose(self) -> None:
        if self._reading:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        await self._tasks.aclose()

    def say(self, text: str) -> None:
        """Print a message, then the input prompt again if a request is open."""
        asking = self.asking
        self._interject(text)
        if asking:
            _write(PROMPT)

    def _interject(self, text: str) -> None:
        if self.asking:
            _write(CLEAR_LINE)
        self._display.say(text)

    def _begin(self) -> None:
        """Ask the first request. Discard what was typed before it was shown."""
        if self._gone:
            self._display.say(f"Waiting for an answer: {asks.title_of(self._open[0])}")
            return
        with suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        self._unread = b""
        while not self._lines.empty():
            self._lines.get_nowait()
        if not self._reading:
            self._reading = True
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._read)
            self._tasks.spawn(self._converse(), name="converse")
        self._display.say("")
        self._put(self._open[0])

    def _put(self, ask: Ask, *, whole: bool = False) -> None:
        for line in asks.render_ask(ask, whole=whole, parts=whole):
            click.echo(line, err=True)
        click.echo(asks.choices_of(ask), err=True)
        _write(PROMPT)

    def _explain(self, ask: Ask) -> None:
        for line in asks.help_of(ask):
            click.echo(line, err=True)
        self._put(ask, whole=True)

    def _read(self) -> None:
        try:
            data = os.read(sys.stdin.fileno(), 4096)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self._lines.put_nowait(None)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._lines.put_nowait(line.decode(errors="replace"))

    async def _converse(self) -> None:
        while (line := await self._lines.get()) is not None:
            if self._open:
                await self._take(self._open[0], line)
        if self.asking:
            _write("\n")
        self._gone = True
        self._display.say("Input closed: answer with `longboat permissions` or `longboat questions`.")

    async def _take(self, ask: Ask, line: str) -> None:
        if ask.id in self._ours:
            return  # our answer is being sent
        if line.strip() == "?" or (isinstance(ask, Permission) and line.strip().lower() in ("v", "view")):
            self._explain(ask)
            return
        if not line.strip() or not asks.is_answer(ask, line):
            _write(f"  {asks.describe_misreading(ask, line)}\n{asks.choices_of(ask)}\n{PROMPT}")
            return
        self._ours.add(ask.id)
        try:
            await self._send(ask, line)
        except (AlreadyAnswered, NotFound) as late:
            self._display.say(late.message)
            self._drop(ask.id)
        except LongboatError as error:
            self._ours.discard(ask.id)
            self.say(f"Could not send the answer: {error.message}")

    async def _send(self, ask: Ask, line: str) -> None:
        if isinstance(ask, Question):
            await self._client.answer_question(self._workspace_id, ask.id, *texts_in(ask, line))
        elif word := asks.word_of(ask, line):
            await self._client.answer_permission(
                self._workspace_id, ask.id, word.answer, wide=word.wide, reason=word.reason
            )

    def _drop(self, ask_id: str) -> None:
        """Remove a settled request and ask the next one."""
        first = bool(self._open) and self._open[0].id == ask_id
        self._open = deque(ask for ask in self._open if ask.id != ask_id)
        if first and self._open:
            self._begin()


class RunDisplay:
    """The display of a run, paused while a person is being asked, so that output does not bury the prompt."""

    def __init__(self, display: Display, *, run_id: str | None = None, sub_agents: bool = True) -> None:
        """`run_id`: tells the run's requests from those of a run ahead of it. `sub_agents`: also show the run's
        sub-agents, if the display can."""
        self.display = display
        self.sub_agents = sub_agents and display.sub_agents
        self.asks_ahead = display.waits  # programs would take them for the run's
        self.doing = ""
        """What the command waits for, if not for the run."""
        self._run_id = run_id
        self._started = False
        self._held: deque[Event] = deque()
        self.answering: Answering = OthersAnswer(display)

    async def take(self, event: Event) -> None:
        """Handle requests for answers, and show everything else."""
        if self._is_ahead(event):
            self.display.show_ahead(event)
            return
        of_sub_agent = self._is_of_sub_agent(event)
        if not (of_sub_agent and isinstance(event.payload, RunComplete)):
            await self.answering.hear(event)  # a sub-agent's end does not settle the run's requests
        self._held.append(event)
        while self._held and not (self.display.waits and self.answering.asking):
            self._show(self._held.popleft())

    def _is_ahead(self, event: Event) -> bool:
        """Whether a run that has to end before this one starts asks, or was answered."""
        match event.payload:
            case Run() as run if run.run_id == self._run_id:
                self._started = run.state not in (RunState.ACCEPTED, RunState.QUEUED)
            case Permission() | PermissionNotification() | Question() | QuestionNotification() as ask:
                is_own = self._run_id in (None, ask.run_id, ask.parent_run_id)
                return not (is_own or self._started)
        return False

    async def tick(self) -> None:
        """Show each second that the run continues."""
        while True:
            await asyncio.sleep(TICK_S)
            self.display.tick(doing=self.doing, asking=self.answering.asking)

    def _show(self, event: Event) -> None:
        if self._is_of_sub_agent(event):
            self.display.show_sub_agent(event)
        else:
            self.display.show(event)

    def _is_of_sub_agent(self, event: Event) -> bool:
        return self.sub_agents and event.parent_session_id is not None

    def say(self, text: str) -> None:
        self.answering.say(text)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
