"""What the core decides: facts that the shell records in one transaction, and after the commit acts upon."""

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
    """An active run goes on after a crash: its user message is already there."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolded:
    run_id: str
    into: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptWithdrawn:
    """A folded prompt leaves the transcript again before its step was sent."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    """The ledger remembers the cancel; if the run is active its turn is asked to stop."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCovered:
    """Every queued run of the session with a seq from `first` to `last` is canceled; their ends follow in batches."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverSettled:
    """The last run that a cancel covered is finished: what was recorded of the cover can go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryChanged:
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The run's one end. `transcript`: the prompt never started on an idle session and leaves its two messages (T2)."""

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
