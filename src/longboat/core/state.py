"""The states of a run as one table, and the state that the core keeps for a session."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any, assert_never

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
    """The table has no such transition: a bug in the runtime. Nothing has changed."""


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


Runs = tuple[RunView, ...]
"""Some runs of one session, in order of seq."""

_GROUPS = ("accepted", "steering", "queued", "folded")
_seq = attrgetter("seq")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """The unfinished runs of one session by state, its cancel mark, and whether the workspace is closing.

    Kept apart by state, so that no command has to look through a long queue: runs are found by bisection.
    """

    active: RunView | None = None
    accepted: Runs = ()
    steering: Runs = ()
    """Queued, to be folded into the active turn at its next step. Without one they run before the others (L10)."""
    queued: Runs = ()
    """Queued for later."""
    folded: Runs = ()
    covered: Runs = ()
    """Canceled while they were queued. Nothing starts or folds them; their ends are recorded in batches (L9)."""
    mark: int | None = None
    leaving: bool = False
    held: bool = False
    """Its directory is away: runs are accepted, queued and canceled, and none starts (L16)."""
    seqs: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """The seq of every run above, by run_id, in order of seq."""

    @classmethod
    def of(cls, *runs: RunView, mark: int | None = None, leaving: bool = False, held: bool = False) -> "SessionState":
        """A session with these unfinished runs, given in any order."""
        groups: dict[str, list[RunView]] = {name: [] for name in (*_GROUPS, "covered", "active")}
        for run in sorted(runs, key=_seq):
            groups["covered" if is_covered(run) else _group(run)].append(run)
        active = groups.pop("active")
        assert len(active) <= 1, "a session has at most one active run"
        return cls(
            active=active[0] if active else None,
            mark=mark,
            leaving=leaving,
            held=held,
            seqs={run.run_id: run.seq for run in sorted(runs, key=_seq)},
            **{name: tuple(group) for name, group in groups.items()},
        )

    @property
    def runs(self) -> Runs:
        """Every unfinished run, as the ledger has it. Costs as much as there are runs."""
        active = () if self.active is None else (self.active,)
        covered = (replace(run, cancel_requested=True) for run in self.covered)
        return tuple(sorted((*active, *self.accepted, *self.waiting, *self.folded, *covered), key=_seq))

    @property
    def waiting(self) -> Runs:
        """What is queued, in the order in which it would run."""
        return (*self.steering, *self.queued)

    @property
    def busy(self) -> bool:
        return self.active is not None

    @property
    def newest(self) -> int:
        """The highest seq among the unfinished runs; 0 if there are none."""
        groups = (self.accepted, self.steering, self.queued, self.folded, self.covered)
        last = [runs[-1].seq for runs in groups if runs]
        return max(last, default=0) if self.active is None else max(*last, self.active.seq, 0)

    def in_state(self, state: RunState) -> Runs:
        """The runs in a state, without those that a cancel has taken out of the queue."""
        match state:
            case RunState.ACCEPTED:
                return self.accepted
            case RunState.QUEUED:
                return tuple(sorted(self.waiting, key=_seq))
            case RunState.FOLDED:
                return self.folded
            case RunState.ACTIVE:
                return () if self.active is None else (self.active,)
            case RunState.FINISHED:
                return ()
            case _:
                assert_never(state)

    def find(self, run_id: str) -> RunView | None:
        seq = self.seqs.get(run_id)
        if seq is None:
            return None
        if self.active is not None and self.active.seq == seq:
            return self.active
        for runs in (self.accepted, self.steering, self.queued, self.folded):
            place = place_of(runs, seq)
            if place < len(runs) and runs[place].seq == seq:
                return runs[place]
        return replace(self.covered[place_of(self.covered, seq)], cancel_requested=True)

    def position(self, run_id: str) -> int | None:
        """How many runs go before this one; None once it is folded, canceled or finished."""
        run = self.find(run_id)
        if run is None or run.state is RunState.FOLDED or is_covered(run):
            return None
        if run is self.active:
            return 0
        before = self.busy + place_of(self.accepted, run.seq)
        if run.delivery is Delivery.STEER:
            return before + place_of(self.steering, run.seq)
        return before + len(self.steering) + place_of(self.queued, run.seq)

    def put(self, run: RunView) -> "SessionState":
        """The session with a new run, or with one of its runs as it is now."""
        known = run.run_id in self.seqs
        state = self._taken_out(run.seq) if known else replace(self, seqs={**self.seqs, run.run_id: run.seq})
        if run.state is RunState.ACTIVE:
            assert state.active is None, "a session has at most one active run"
            return replace(state, active=run)
        name = _group(run)
        runs: Runs = getattr(state, name)
        place = place_of(runs, run.seq)
        return state._with(name, (*runs[:place], run, *runs[place:]))

    def without(self, *run_ids: str) -> "SessionState":
        """The session without these runs."""
        state, seqs = self, dict(self.seqs)
        for run_id in run_ids:
            state = state._taken_out(seqs.pop(run_id))
        return replace(state, seqs=seqs)

    def _taken_out(self, seq: int) -> "SessionState":
        if self.active is not None and self.active.seq == seq:
            return replace(self, active=None)
        for name in _GROUPS:
            runs: Runs = getattr(self, name)
            place = place_of(runs, seq)
            if place < len(runs) and runs[place].seq == seq:
                return self._with(name, (*runs[:place], *runs[place + 1 :]))
        return self

    def _with(self, name: str, runs: Runs) -> "SessionState":
        changes: dict[str, Any] = {name: runs}
        return replace(self, **changes)


def _group(run: RunView) -> str:
    """Where an unfinished run belongs, if no cancel has taken it out of the queue."""
    if run.state is RunState.QUEUED:
        return "steering" if run.delivery is Delivery.STEER else "queued"
    return str(run.state)


def is_covered(run: RunView) -> bool:
    """Whether it is canceled and still in the queue: only its end is left to be recorded."""
    return run.state is RunState.QUEUED and run.cancel_requested


def place_of(runs: Runs, seq: int) -> int:
    """Where a run with this seq stands, or would stand."""
    if not runs or runs[-1].seq < seq:
        return len(runs)  # most prompts are the newest
    return bisect_left(runs, seq, key=_seq)
