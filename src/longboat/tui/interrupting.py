"""Stopping and changing what runs: esc, the queue, jobs. Each in a worker; refusals are told."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from longboat.errors import LongboatError
from longboat.wire.models import Delivery

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp

INSIST_S = 30.0
"""How long a cancel is tried again while the server is away."""
SECOND_S = 1.5
"""How long a second esc means all, also when the run ended at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An esc, and the run that it was for."""

    session_id: str
    run_id: str
    at: float


class Interrupting:
    def __init__(self, app: "LongboatApp") -> None:
        self._app = app
        self.clock: Callable[[], float] = monotonic
        self._asked: Asked | None = None
        """What esc was pressed for last."""

    def interrupt(self) -> None:
        """esc: what is not sent comes back to be changed; then the active run; then everything in the session."""
        app = self._app
        if app.sender.unsent:
            prompt = app.sender.unsent[-1]
            app.sender.take_back(prompt)
            app.composer.put(prompt.text, prompt.attachments)
            return
        runs, session_id = app.desk.unfinished, app.desk.session_id
        if session_id is not None and runs and self._means_all(session_id):
            self._asked = None
            app.notify("Everything in this session is being canceled.")
            self._try(app.connection.client.cancel_session(app.connection.workspace_id, session_id))
        elif runs:
            run = app.desk.active or runs[0]
            self._asked = Asked(session_id=run.session_id, run_id=run.run_id, at=self.clock())
            if len(runs) > 1:
                app.notify(f"Interrupting. esc again cancels the {len(runs) - 1} behind it too.")
            self.cancel(run.run_id)
        else:
            app.composer.input.focus()

    def _means_all(self, session_id: str) -> bool:
        """Whether esc was pressed a moment ago, or for a run that is still there. By the clock: a timer of Textual that
        is lost would make a single esc cancel everything, for ever after."""
        asked = self._asked
        if asked is None or asked.session_id != session_id:
            return False
        still = any(run.run_id == asked.run_id for run in self._app.desk.unfinished)
        return still or self.clock() - asked.at < SECOND_S

    def cancel(self, run_id: str) -> None:
        connection = self._app.connection
        self._try(connection.client.cancel_run(connection.workspace_id, run_id, give_up_after_s=INSIST_S))

    def edit(self, run_id: str, *, prompt: str | None = None, delivery: Delivery | None = None) -> None:
        connection = self._app.connection
        self._try(connection.client.edit_run(connection.workspace_id, run_id, prompt=prompt, delivery=delivery))

    def kill(self, job_id: str) -> None:
        connection = self._app.connection
        self._try(connection.client.kill_job(connection.workspace_id, job_id))

    def _try(self, doing: Awaitable[object]) -> None:
        self._app.run_worker(self._tried(doing), name="interrupt")

    async def _tried(self, doing: Awaitable[object]) -> None:
        try:
            await doing
        except LongboatError as error:
            self._app.notify(error.message, severity="error", markup=False)
