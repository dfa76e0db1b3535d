"""What runs report while they work, for traces of them.

Owns the reports that there are; `Traces` itself drops them all. Must not know OpenTelemetry: `longboat.runtime.otel`
does, and is imported only if it is switched on.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from longboat.config.settings import OtelSection
from longboat.errors import ModelError
from longboat.models.protocol import Finished, Model, ModelRequest
from longboat.store.records import RunRecord
from longboat.wire.asks import Permission, Question
from longboat.wire.models import Message, Outcome, ToolCallPart, ToolResultPart

logger = logging.getLogger(__name__)


def _drop(*_: object) -> None:
    pass


class Traces:
    """Traces nothing. What the context managers give is called with the result, unless there is none."""

    def begin_run(self, record: RunRecord, call_id: str | None) -> None:
        """A turn starts. `call_id`: the call of the parent's run that waits for this sub-agent."""

    def end_run(self, run_id: str, outcome: Outcome, code: str) -> None:
        """A turn has ended. `code`: of the error, if it was one."""

    def step(
        self, run_id: str, model: Model, request: ModelRequest
    ) -> AbstractContextManager[Callable[[Finished, Message], None]]:
        """One request to the model; a retry is another one."""
        return nullcontext(_drop)

    def retry(self, run_id: str, attempt: int, error: ModelError) -> AbstractContextManager[None]:
        """The wait before this attempt."""
        return nullcontext()

    def tool(self, run_id: str, call: ToolCallPart) -> AbstractContextManager[Callable[[ToolResultPart], None]]:
        """One tool call."""
        return nullcontext(_drop)

    def ask(self, ask: Permission | Question) -> AbstractContextManager[Callable[[Permission | Question], None]]:
        """The wait for someone's answer."""
        return nullcontext(_drop)

    def close(self) -> None:
        """Send what is left, if that does not take long."""


def load_traces(section: OtelSection) -> Traces:
    """Those of a section that is switched on; none if they cannot be exported, and the log says why."""
    try:
        from longboat.runtime.otel import export_traces
    except ImportError:
        from longboat.installation import install_command

        logger.error("no traces: server.otel is on, but its packages are missing. Run: %s", install_command("otel"))
        return Traces()
    try:
        return export_traces(section)
    except Exception:  # a variable OTEL_* that the SDK does not understand
        logger.exception("no traces: OpenTelemetry could not be started")
        return Traces()
