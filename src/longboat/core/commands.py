"""The commands that a session accepts."""

from dataclasses import dataclass

from longboat.core.state import RunView
from longboat.wire.models import Delivery, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """Accept a prompt: it gets a seq and a reservation (L1)."""

    run_id: str
    seq: int
    delivery: Delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class Enter:
    """Turn a reservation into a queued, active or canceled run. Without a reservation it changes nothing (L1)."""

    run_id: str


CANCEL_BATCH = 100
"""How many queued runs a cancel finishes in one transaction: more would block everyone else (L9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelSession:
    """Cancel everything accepted so far. Of a long queue the first runs finish now; the others are covered."""

    at_once: int = CANCEL_BATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRun:
    """Cancel one run, whatever its state."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailRun:
    """End a waiting run that cannot be started because of a bug, instead of letting it wait forever (E1)."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearQueue:
    """Cancel the queued runs but not the active one. A long queue is finished in batches."""

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
    """A step of the active turn is about to be built: fold the steering prompts into it."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendStep:
    """The step is being sent to the model: folded prompts can no longer be withdrawn."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTurn:
    """The active turn has ended with this outcome."""

    run_id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """The workspace or the server is closing: no run starts any more."""


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
