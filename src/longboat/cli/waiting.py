"""Waits for a run with the SDK: handles Ctrl-C, SIGTERM, outages and requests for answers, and turns the outcome into
an exit code (R1, R3, R4, A2).

The only part of the command line that needs httpx2 and an event loop.
"""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

from longboat.cli.asks import title_of
from longboat.cli.background import revive
from longboat.cli.console import one_line, safe
from longboat.cli.display import Display
from longboat.cli.main import Failure
from longboat.cli.options import own_name
from longboat.cli.run_asks import NobodyAnswers, PersonAnswers, RunDisplay, can_ask
from longboat.cli.runs import OUTCOMES
from longboat.client import Client, Event
from longboat.client.reconnection import STOPPED
from longboat.errors import LongboatError, ServerUnreachable, SessionDamaged
from longboat.tasks import Tasks
from longboat.wire.asks import Permission
from longboat.wire.models import Outcome, RunComplete
from longboat.wire.requests import Submit

STOP_S = 10.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and what `timeout` and CI systems send: both cancel the run."""
CANCELED = 130


def submit_and_wait(workspace_id: str, submit: Submit, display: Display, *, give_up_after_s: float) -> int:
    """Submit, show the run, and return the exit code."""
    return asyncio.run(
        _submit_and_wait(workspace_id, submit, RunDisplay(display, run_id=submit.run_id), give_up_after_s)
    )


def wait(
    workspace_id: str, run_id: str, display: Display, *, give_up_after_s: float, is_sub_agent: bool = False
) -> int:
    """Show a run that was submitted before, and return the exit code. `is_sub_agent`: the run is a sub-agent's, so its
    events are shown in full."""
    run_display = RunDisplay(display, run_id=run_id, sub_agents=not is_sub_agent)
    return asyncio.run(_wait(workspace_id, run_id, run_display, give_up_after_s))


async def _submit_and_wait(workspace_id: str, submit: Submit, run_display: RunDisplay, give_up_after_s: float) -> int:
    complete, run_id = None, submit.run_id or ""
    async with Client(client_id=submit.client_id, answers=can_ask(), on_outage=_told_by(run_display)) as client:
        if can_ask():
            run_display.answering = PersonAnswers(client, workspace_id, run_display.display)
        elif not submit.wait_for_answers:
            run_display.answering = NobodyAnswers(client, workspace_id, run_id, run_display.display)
        interrupt = _Interrupt(client, workspace_id, run_id, run_display)
        loop = asyncio.get_running_loop()
        for each in STOP_SIGNALS:
            loop.add_signal_handler(each, interrupt)
        events = client.run(
            submit.prompt,
            session_id=submit.session_id or None,
            workspace_id=workspace_id,
            run_id=submit.run_id,
            delivery=submit.delivery,
            model=submit.model,
            attachments=submit.attachments,
            approve=submit.approve,
            effort=submit.effort,
            schema=submit.schema,
            plan=submit.plan,
            wait_for_answers=submit.wait_for_answers,
            sub_agents=run_display.sub_agents,
            asks_ahead=run_display.asks_ahead,
            give_up_after_s=give_up_after_s,
        )
        try:
            async with interrupt.deadline:
                complete = await _show_events(events, run_id, run_display, interrupt.accepted)
        except TimeoutError:
            run_display.say(interrupt.unheeded)
        finally:
            for each in STOP_SIGNALS:
                loop.remove_signal_handler(each)
            await interrupt.settled()
        await _mark_seen(client, complete)
    return _end(complete, interrupt, run_display)


def _end(complete: RunComplete | None, interrupt: "_Interrupt", run_display: RunDisplay) -> int:
    """Say what there is to say about the end of the run; the exit code."""
    if run_display.answering.unanswerable is not None and not interrupt.asked:
        raise _unanswered(run_display.answering.unanswerable)
    if interrupt.asked and (complete is None or complete.outcome is not Outcome.CANCELED):
        if complete is not None:
            run_display.say(f"The run had already ended: {OUTCOMES[complete.outcome]}")
        return CANCELED
    code = _exit_code(complete, run_display)
    if complete is not None and sys.stdout.isatty():
        run_display.say(f'session {complete.session_id}; continue with: longboat run -c "…"')
    return code


async def _wait(workspace_id: str, run_id: str, run_display: RunDisplay, give_up_after_s: float) -> int:
    accepted = asyncio.Event()
    accepted.set()
    async with Client(client_id=own_name(), answers=can_ask(), on_outage=_told_by(run_display)) as client:
        if can_ask():
            run_display.answering = PersonAnswers(client, workspace_id, run_display.display)
        events = client.watch(
            workspace_id,
            run_id,
            sub_agents=run_display.sub_agents,
            asks_ahead=run_display.asks_ahead,
            give_up_after_s=give_up_after_s,
        )
        complete = await _show_events(events, run_id, run_display, accepted)
        await _mark_seen(client, complete)
    return _exit_code(complete, run_display)


async def _mark_seen(client: Client, complete: RunComplete | None) -> None:
    """Mark the run as seen, because the person at this terminal has seen how it ended. Runs of scripts stay unseen: no
    one may have read them."""
    if complete is None or not (sys.stdout.isatty() or sys.stderr.isatty()):
        return
    with suppress(LongboatError):  # it stays unseen
        items = (await client.inbox()).items
        ended = [item.id for item in items if item.run_id == complete.run_id and not (item.kind.waits or item.seen)]
        if ended:
            await client.mark_seen(*ended)


async def _show_events(
    events: AsyncGenerator[Event, None], run_id: str, run_display: RunDisplay, accepted: asyncio.Event
) -> RunComplete | None:
    """Show all events of the run. `accepted` is set by the first."""
    complete = None
    try:
        async with Tasks() as tasks, aclosing(events):
            tasks.spawn(run_display.tick(), name="show that the run continues")
            async for event in events:
                accepted.set()
                await run_display.take(event)
                if isinstance(event.payload, RunComplete) and event.payload.run_id == run_id:
                    complete = event.payload
    except ServerUnreachable as error:
        if not accepted.is_set():
            raise
        hint = f"The server has the prompt. Follow the run with: longboat watch {shlex.quote(run_id)}"
        raise Failure(error.message, hint) from error
    finally:
        run_display.display.clear()
        await run_display.answering.aclose()
    return complete


def _unanswered(ask: Permission) -> Failure:
    """The failure of a run that needed approval when no one could give it."""
    message = f"The run was canceled: it needs an answer and there is no terminal here.\n  ? {title_of(ask)}"
    message += f"\n    why: {one_line(ask.why)}" if ask.why else ""
    allowing = ", ".join(ask.grant or ask.wide)
    rules = f", or add to permissions.allow in longboat.json: {allowing}" if allowing else ""
    return Failure(
        message,
        "Use --wait-for-answers to wait until someone answers with: longboat permissions\n"
        f"  Use --yolo to allow everything{safe(rules)}",
    )


def _told_by(run_display: RunDisplay) -> Callable[[LongboatError | None], None]:
    def tell(lost: LongboatError | None) -> None:
        run_display.doing = "" if lost is None else "Reconnecting"
        if lost is None:
            run_display.say("Reconnected.")
        elif lost.code == STOPPED:
            run_display.say(f"{lost.message} (Waiting for it to come back.)")
        else:
            run_display.say("Connection lost. Reconnecting…")
            revive()

    return tell


def _exit_code(complete: RunComplete | None, run_display: RunDisplay) -> int:
    if complete is None:
        raise AssertionError("the events of a run end with run_complete or raise")
    match complete.outcome:
        case Outcome.END_TURN:
            return 0
        case Outcome.CANCELED:
            run_display.say("canceled")
            return CANCELED
        case Outcome.ERROR | Outcome.INTERRUPTED:
            raise Failure(complete.error or "The run was interrupted.", _how_to_go_on(complete))


def _how_to_go_on(complete: RunComplete) -> str:
    if SessionDamaged.headline(complete.session_id) in complete.error:
        return ""  # the error itself says what to do
    return f'Continue with: longboat run -s {complete.session_id} "…"'


class _Interrupt:
    """The handler of stop signals: cancels the run once it is accepted, and limits the wait. A second signal exits at
    once."""

    def __init__(self, client: Client, workspace_id: str, run_id: str, run_display: RunDisplay) -> None:
        self._client = client
        self._workspace_id = workspace_id
        self._run_id = run_id
        self._run_display = run_display
        self._tasks = Tasks()
        self.asked = False
        self._delivered = False
        self.accepted = asyncio.Event()
        self.deadline = asyncio.timeout(None)

    @property
    def unheeded(self) -> str:
        """The message for a run that did not stop in time."""
        if self._delivered:
            return f"The run did not stop within {STOP_S:g} s. See: longboat runs; longboat cancel {self._run_id}"
        return (
            f"The server did not confirm within {STOP_S:g} s; the run may continue. Try: longboat cancel {self._run_id}"
        )

    def __call__(self) -> None:
        if self.asked:
            self._run_display.display.clear()
            os._exit(CANCELED)  # every display flushes what it writes
        self._run_display.say("Canceling… (press Ctrl-C again to exit now)")
        self._run_display.doing = "Canceling"
        self.asked = True
        self._tasks.spawn(self._cancel(), name="cancel the run")
        self.deadline.reschedule(asyncio.get_running_loop().time() + STOP_S)

    async def _cancel(self) -> None:
        await self.accepted.wait()
        try:
            # Longer than the wait itself: keep trying for as long as this command lives.
            await self._client.cancel_run(self._workspace_id, self._run_id, give_up_after_s=2 * STOP_S)
            self._delivered = True
        except LongboatError as error:
            self._run_display.say(error.message)

    async def settled(self) -> None:
        await self._tasks.aclose()
