"""Waiting for a run with the SDK: what Ctrl-C does, and how the end becomes an exit code (R1, R3, R4).

The only part of the command line that needs httpx2 and an event loop.
"""

import asyncio
import os
import signal
from contextlib import aclosing

from longboat.cli.console import notice
from longboat.cli.display import Display
from longboat.cli.main import Failure
from longboat.client import Client
from longboat.errors import LongboatError
from longboat.wire.models import Outcome, RunComplete
from longboat.wire.requests import Submit

STOP_S = 10.0
CANCELED = 130


def watch(workspace_id: str, submit: Submit, display: Display, *, give_up_after_s: float) -> int:
    """Submit, show the run, and return the exit code."""
    return asyncio.run(_watch(workspace_id, submit, display, give_up_after_s))


async def _watch(workspace_id: str, submit: Submit, display: Display, give_up_after_s: float) -> int:
    async with Client() as client:
        interrupt = _Interrupt(client, workspace_id, submit.run_id or "")
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, interrupt)
        complete: RunComplete | None = None
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
            async with interrupt.deadline, aclosing(events):
                async for event in events:
                    interrupt.accepted.set()
                    display.show(event)
                    if isinstance(event.payload, RunComplete):
                        complete = event.payload
        except TimeoutError:
            notice(f"It has not stopped within {STOP_S:g} s. See: longboat runs; longboat cancel {submit.run_id}")
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            await interrupt.settled()
    return CANCELED if interrupt.asked else _exit_code(complete)


def _exit_code(complete: RunComplete | None) -> int:
    if complete is None:
        raise AssertionError("client.run ends with run_complete or raises")
    match complete.outcome:
        case Outcome.END_TURN:
            return 0
        case Outcome.CANCELED:
            notice("canceled")
            return CANCELED
        case Outcome.ERROR | Outcome.INTERRUPTED:
            raise Failure(
                complete.error or "The run was interrupted.",
                f'The session keeps what was said: longboat run -s {complete.session_id} "…" goes on.',
            )


class _Interrupt:
    """The SIGINT handler: cancels the run, once it is accepted, and bounds the wait; a second one leaves at once."""

    def __init__(self, client: Client, workspace_id: str, run_id: str) -> None:
        self._client = client
        self._workspace_id = workspace_id
        self._run_id = run_id
        self._task: asyncio.Task[None] | None = None
        self.accepted = asyncio.Event()
        self.deadline = asyncio.timeout(None)

    @property
    def asked(self) -> bool:
        return self._task is not None

    def __call__(self) -> None:
        if self._task is not None:
            os._exit(CANCELED)  # every display flushes what it writes
        notice("Canceling … (Ctrl-C again leaves at once)")
        self._task = asyncio.create_task(self._cancel())
        self.deadline.reschedule(asyncio.get_running_loop().time() + STOP_S)

    async def _cancel(self) -> None:
        await self.accepted.wait()
        try:
            await self._client.cancel_run(self._workspace_id, self._run_id)
        except LongboatError as error:
            notice(error.message)

    async def settled(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
