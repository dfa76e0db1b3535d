"""The core's decisions: facts that the runtime records in one transaction and acts upon after the commit."""

from dataclasses import dataclass

from longboat.wire.models import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAccepted:
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQueued:
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed:
    """An active run continues after a crash: its user message is already in the transcript."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolded:
    run_id: str
    into: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptWithdrawn:
    """A folded prompt is removed from the transcript before its step is sent."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    """The ledger records the cancel; if the run is active, its turn is asked to stop."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCovered:
    """Every queued run of the session with a seq from `first` to `last` is canceled; their ends follow in batches."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverSettled:
    """The last run covered by a cancel has finished: the record of the cancel can be deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryChanged:
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """How the run ended. `transcript`: the prompt never started on an idle session and leaves its two messages (T2)."""

    run_id: str
    outcome: Outcome
    folded_into: str | None = None
    transcript: bool = False


RunEffect = (
    RunAccepted
    | RunQueued
    | RunStarted
    | RunResumed
    | RunFolded
    | PromptWithdrawn
    | CancelRequested
    | DeliveryChanged
    | RunFinished
)
"""What happens to one run."""

Effect = RunEffect | QueueCovered | CoverSettled
