"""The states of a run as one table, and what the core remembers of a session."""

from dataclasses import dataclass, replace
from enum import StrEnum

from longboat.wire.models import Delivery, RunState


class Happening(StrEnum):
    """What can happen to one run."""

    ENTER_COVERED = "enter, covered by a cancel"
    ENTER_BUSY = "enter, session busy or leaving"
    ENTER_IDLE = "enter, session idle"
    START = "start"
    FOLD = "fold"
    CANCEL = "cancel"
    FAIL = "cannot start"
    END = "turn ended"


_A, _Q, _R, _F, _X = RunState.ACCEPTED, RunState.QUEUED, RunState.ACTIVE, RunState.FOLDED, RunState.FINISHED

TRANSITIONS: dict[RunState, dict[Happening, RunState]] = {
    _A: {
        Happening.ENTER_COVERED: _X,
        Happening.ENTER_BUSY: _Q,
        Happening.ENTER_IDLE: _R,
        Happening.CANCEL: _A,
        Happening.FAIL: _X,
    },
    _Q: {
        Happening.START: _R,
        Happening.FOLD: _F,
        Happening.CANCEL: _X,
        Happening.FAIL: _X,
    },
    _R: {
        Happening.CANCEL: _R,
        Happening.END: _X,
    },
    _F: {
        Happening.CANCEL: _X,
        Happening.END: _X,
    },
    _X: {},
}


class InvalidTransition(Exception):
    """A cell that is missing from the table: a defect of the shell. Nothing has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """What the core knows of one unfinished run."""

    run_id: str
    seq: int
    delivery: Delivery
    state: RunState = RunState.ACCEPTED
    cancel_requested: bool = False
    sent: bool = False
    """Folded runs: the step that carries the prompt has gone to the model."""
    tries: int = 0
    """How often the run was resumed after a crash."""

    def after(self, happening: Happening) -> "RunView":
        try:
            return replace(self, state=TRANSITIONS[self.state][happening])
        except KeyError:
            raise InvalidTransition(f"{self.run_id} is {self.state}: no cell for {happening}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """The unfinished runs of one session in order of seq, its cancel mark, and whether the house is closing."""

    runs: tuple[RunView, ...] = ()
    mark: int | None = None
    leaving: bool = False

    @property
    def active(self) -> RunView | None:
        return next((run for run in self.runs if run.state is RunState.ACTIVE), None)

    @property
    def busy(self) -> bool:
        return self.active is not None

    def in_state(self, state: RunState) -> tuple[RunView, ...]:
        return tuple(run for run in self.runs if run.state is state)

    def find(self, run_id: str) -> RunView | None:
        return next((run for run in self.runs if run.run_id == run_id), None)

    def position(self, run_id: str) -> int | None:
        """How many runs go before this one; None once it is folded or finished."""
        waiting = [run for run in self.runs if run.state is not RunState.FOLDED]
        waiting.sort(key=lambda run: (run.state is not RunState.ACTIVE, run.seq))
        return next((place for place, run in enumerate(waiting) if run.run_id == run_id), None)
