"""Waiting for a run with the SDK: what Ctrl-C does, what an outage looks like, and how the end becomes an exit code
(R1, R3, R4).

The only part of the command line that needs httpx2 and an event loop.
"""

import asyncio
import os
import shlex
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from longboat.cli.display import Display
from longboat.cli.main import Failure
from longboat.client import Client, Event
from longboat.errors import LongboatError, ServerUnreachable
from longboat.wire.models import Outcome, RunComplete
from longboat.wire.requests import Submit

STOP_S = 10.0
CANCELED = 130


def submit_and_wait(workspace_id: str, submit: Submit, display: Display, *, give_up_after_s: float) -> int:
    """Submit, show the run, and return the exit code."""
    return asyncio.run(_submit_and_wait(workspace_id, submit, display, give_up_after_s))


def wait(workspace_id: str, run_id: str, display: Display, *, give_up_after_s: float) -> int:
    """Show a run that was submitted before, and return the exit code."""
    return asyncio.run(_wait(workspace_id, run_id, display, give_up_after_s))


async def _submit_and_wait(workspace_id: str, submit: Submit, display: Display, give_up_after_s: float) -> int:
    complete = None
    async with Client(on_outage=_told_by(display)) as client:
        interrupt = _Interrupt(client, workspace_id, submit.run_id or "", display)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, interrupt)
        events = client.run(
            submit.prompt,
            session_id=submit.session_id,
            workspace_id=workspace_id,
            run_id=submit.run_id,
            delivery=submit.delivery,
            model=submit.model,
            give_up_after_s=give_up_after_s,
        )
        try:
            async with interrupt.deadline:
                complete = await _shown(events, submit.run_id or "", display, interrupt.accepted)
        except TimeoutError:
            display.say(f"It has not stopped within {STOP_S:g} s. See: longboat runs; longboat cancel {submit.run_id}")
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            await interrupt.settled()
    return CANCELED if interrupt.asked else _exit_code(complete, display)


async def _wait(workspace_id: str, run_id: str, display: Display, give_up_after_s: float) -> int:
    accepted = asyncio.Event()
    accepted.set()
    async with Client(on_outage=_told_by(display)) as client:
        events = client.watch(workspace_id, run_id, give_up_after_s=give_up_after_s)
        return _exit_code(await _shown(events, run_id, display, accepted), display)


async def _shown(
    events: AsyncGenerator[Event, None], run_id: str, display: Display, accepted: asyncio.Event
) -> RunComplete | None:
    """Show all events of the run. `accepted` is set by the first."""
    complete = None
    try:
        async with aclosing(events):
            async for event in events:
                accepted.set()
                display.show(event)
                if isinstance(event.payload, RunComplete):
                    complete = event.payload
    except ServerUnreachable as error:
        if not accepted.is_set():
            raise
        hint = f"The prompt was accepted and is kept: longboat watch {shlex.quote(run_id)} goes on watching."
        raise Failure(error.message, hint) from error
    return complete


def _told_by(display: Display) -> Callable[[LongboatError | None], None]:
    def tell(lost: LongboatError | None) -> None:
        display.say("The connection is back." if lost is None else "The connection is lost: trying again …")

    return tell


def _exit_code(complete: RunComplete | None, display: Display) -> int:
    if complete is None:
        raise AssertionError("the events of a run end with run_complete or raise")
    match complete.outcome:
        case Outcome.END_TURN:
            return 0
        case Outcome.CANCELED:
            display.say("canceled")
            return CANCELED
        case Outcome.ERROR | Outcome.INTERRUPTED:
            raise Failure(
                complete.error or "The run was interrupted.",
                f'The session keeps what was said: longboat run -s {complete.session_id} "…" goes on.',
            )


class _Interrupt:
    """The SIGINT handler: cancels the run, once it is accepted, and bounds the wait; a second one leaves at once."""

    def __init__(self, client: Client, workspace_id: str, run_id: str, display: Display) -> None:
        self._client = client
        self._workspace_id = workspace_id
        self._run_id = run_id
        self._display = display
        self._task: asyncio.Task[None] | None = None
        self.accepted = asyncio.Event()
        self.deadline = asyncio.timeout(None)

    @property
    def asked(self) -> bool:
        return self._task is not None

    def __call__(self) -> None:
        if self._task is not None:
            os._exit(CANCELED)  # every display flushes what it writes
        self._display.say("Canceling … (Ctrl-C again leaves at once)")
        self._task = asyncio.create_task(self._cancel())
        self.deadline.reschedule(asyncio.get_running_loop().time() + STOP_S)

    async def _cancel(self) -> None:
        await self.accepted.wait()
        try:
            await self._client.cancel_run(self._workspace_id, self._run_id)
        except LongboatError as error:
            self._display.say(error.message)

    async def settled(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
