"""What may be asked of a session."""

from dataclasses import dataclass

from longboat.core.state import RunView
from longboat.wire.models import Delivery, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """Take a prompt in: it has a seq and a reservation from now on (L1)."""

    run_id: str
    seq: int
    delivery: Delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class Enter:
    """Turn a reservation into a queued, active or canceled run. Without a reservation it changes nothing (L1)."""

    run_id: str


CANCEL_BATCH = 100
"""How many queued runs a cancel finishes in one transaction: more would hold everybody up (L9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelSession:
    """Cancel all that was accepted so far. Of a long queue the first runs are finished now, the others are covered."""

    at_once: int = CANCEL_BATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRun:
    """Cancel one run in whatever state it is."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailRun:
    """A run that waits cannot be started, for a defect of ours: it ends rather than wait for ever (E1)."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearQueue:
    """Cancel what is queued and leave the active run alone. A long queue is finished in batches, too."""

    at_once: int = CANCEL_BATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishCovered:
    """Finish the next runs that a cancel has covered."""

    at_once: int = CANCEL_BATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDelivery:
    """Change how a run that has not started is delivered."""

    run_id: str
    delivery: Delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainStep:
    """A step of the active turn is about to be built: fold what wants to steer it."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendStep:
    """The step goes to the model now: what is folded can no longer be withdrawn."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTurn:
    """The active turn has unwound; this is what happened."""

    run_id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """The workspace or the server is leaving: nothing starts any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """The unfinished runs as the store has them after a crash or a restart (B6)."""

    runs: tuple[RunView, ...]
    resume: bool


Command = (
    Accept
    | Enter
    | CancelSession
    | CancelRun
    | FailRun
    | ClearQueue
    | FinishCovered
    | ChangeDelivery
    | DrainStep
    | SendStep
    | EndTurn
    | Leave
    | Restore
)
