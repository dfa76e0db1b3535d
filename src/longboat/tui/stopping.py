"""Cancels and edits runs and stops jobs: esc, the queue, jobs. Requests run in a worker; errors are shown."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from longboat.wire.models import Delivery

if TYPE_CHECKING:
    from longboat.tui.app import LongboatApp

RETRY_FOR_S = 30.0
"""How long to retry a cancel while the server is unreachable."""
SECOND_S = 1.5
"""The time within which a second esc cancels everything, even if the run has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An esc and the run it canceled."""

    session_id: str
    run_id: str
    at: float


class Stopping:
    def __init__(self, app: "LongboatApp") -> None:
        self._app = app
        self.clock: Callable[[], float] = monotonic
        self._asked: Asked | None = None
        """The last esc."""

    def interrupt(self) -> None:
        """Handle esc: take back an unsent prompt to edit it, else cancel the active run, else the whole session."""
        app = self._app
        if app.sender.unsent:
            prompt = app.sender.unsent[-1]
            app.sender.take_back(prompt)
            app.composer.put(prompt.text, prompt.attachments)
            return
        runs, session_id = app.current.unfinished, app.current.session_id
        if session_id is not None and runs and self._means_all(session_id):
            self._asked = None
            app.notify("Canceling all runs in this session.")
            self.cancel_all(session_id)
        elif runs:
            run = app.current.active or runs[0]
            self._asked = Asked(session_id=run.session_id, run_id=run.run_id, at=self.clock())
            if len(runs) > 1:
                app.notify("Stopping. Press esc again to cancel the waiting prompts too.")
            self.cancel(run.run_id)
        else:
            app.composer.input.focus()

    def _means_all(self, session_id: str) -> bool:
        """Whether esc was pressed a moment ago, or its run is still there. By the clock: if a Textual timer got lost,
        every later single esc would cancel everything."""
        asked = self._asked
        if asked is None or asked.session_id != session_id:
            return False
        still = any(run.run_id == asked.run_id for run in self._app.current.unfinished)
        return still or self.clock() - asked.at < SECOND_S

    def cancel(self, run_id: str) -> None:
        connection = self._app.connection
        self._app.attempt(
            partial(connection.client.cancel_run, connection.workspace_id, run_id, give_up_after_s=RETRY_FOR_S)
        )

    def cancel_all(self, session_id: str) -> None:
        connection = self._app.connection
        self._app.attempt(
            partial(connection.client.cancel_session, connection.workspace_id, session_id, give_up_after_s=RETRY_FOR_S)
        )

    def edit(self, run_id: str, *, prompt: str | None = None, delivery: Delivery | None = None) -> None:
        connection = self._app.connection
        self._app.attempt(
            partial(connection.client.edit_run, connection.workspace_id, run_id, prompt=prompt, delivery=delivery)
        )

    def kill(self, job_id: str) -> None:
        connection = self._app.connection
        self._app.attempt(partial(connection.client.kill_job, connection.workspace_id, job_id))
