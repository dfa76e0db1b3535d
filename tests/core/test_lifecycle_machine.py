"""The five promises, held against the core by a state machine that plays anything in any order, crashes included.

The model is no second lifecycle: it is a journal of what was asked and what was answered, and each promise is a
question to the journal. A crash rebuilds the session from what a disk has, and a failed commit keeps the old state.

1. Nothing accepted is lost: every accepted run is there until it ends, and each can be brought to its end.
2. Every run ends exactly once, under its own id, with what happened.
3. A cancel reaches everything accepted before it, also across a crash.
4. A cancel never touches what was accepted after it.
5. One turn at a time, and the queue is served in order of accept.
"""

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from longboat.core.commands import (
    Accept,
    CancelRun,
    CancelSession,
    ChangeDelivery,
    ClearQueue,
    Command,
    DrainStep,
    EndTurn,
    Enter,
    FinishCovered,
    Leave,
    Restore,
    SendStep,
)
from longboat.core.effects import (
    CoverSettled,
    Effect,
    QueueCovered,
    RunFinished,
    RunFolded,
    RunQueued,
    RunResumed,
    RunStarted,
)
from longboat.core.lifecycle import decide
from longboat.core.state import InvalidTransition, RunView, SessionState
from longboat.errors import TooLate, WorkspaceClosing
from longboat.wire.models import Delivery, Outcome, RunState

ALL = "every run"
deliveries = st.sampled_from(Delivery)
outcomes = st.sampled_from(Outcome)


class Journal:
    """What was asked and what was answered, in order; a place in it is a time."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, str]] = []
        self.seqs: dict[str, int] = {}
        self.deliveries: dict[str, Delivery] = {}
        self.ends: list[tuple[str, Outcome]] = []
        self.hosts: dict[str, str] = {}
        self.reports: dict[str, Outcome] = {}
        """What the turn of a run said of itself."""
        self.covers: list[range] = []
        """What a disk has of cancels whose runs are not all finished: the seqs of queued runs that they cover."""

    def note(self, what: str, run_id: str = ALL) -> None:
        self._entries.append((what, run_id))

    def times(self, *whats: str, run_id: str = ALL) -> list[int]:
        return [time for time, (what, whose) in enumerate(self._entries) if what in whats and whose == run_id]

    def outcomes(self, run_id: str) -> list[Outcome]:
        return [outcome for name, outcome in self.ends if name == run_id]

    def unfinished(self) -> set[str]:
        return set(self.seqs) - {name for name, _ in self.ends}

    def last(self, *whats: str, run_id: str = ALL) -> int:
        return max(self.times(*whats, run_id=run_id), default=-1)

    def first(self, *whats: str, run_id: str = ALL) -> int:
        """When it happened first; if it has not yet, later than anything that has."""
        return min(self.times(*whats, run_id=run_id), default=len(self._entries))

    def running(self) -> str | None:
        under_way = [run_id for run_id in self.unfinished() if self.times("started", run_id=run_id)]
        assert len(under_way) <= 1, "promise 5: one turn at a time"
        return next(iter(under_way), None)

    def in_line(self) -> list[str]:
        """The runs that were queued and have neither started nor been folded, canceled or ended, in the order in which
        they are to run: those that steer first (L10), then the oldest."""
        waiting = [
            run_id
            for run_id in self.unfinished()
            if self.times("queued", run_id=run_id)
            and not self.times("started", "folded", run_id=run_id)
            and not self.cancels_of(run_id)
        ]
        return sorted(waiting, key=self.rank)

    def rank(self, run_id: str) -> tuple[bool, int]:
        return self.deliveries[run_id] is Delivery.QUEUE, self.seqs[run_id]

    def cancels_of(self, run_id: str) -> list[int]:
        """When this run was canceled: by its id, with its session after its accept, or with the queue it was in."""
        (accepted,) = self.times("accepted", run_id=run_id)
        over = self.first("finished", run_id=run_id)
        out_of_line = self.first("started", "folded", "finished", run_id=run_id)
        by_id = [time for time in self.times("cancel run", run_id=run_id) if time < over]
        with_session = [time for time in self.times("cancel session") if accepted < time < over]
        in_line_since = self.first("queued", run_id=run_id)
        with_queue = [time for time in self.times("clear queue") if in_line_since < time < out_of_line]
        return sorted([*by_id, *with_session, *with_queue])

    def record(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, QueueCovered):
                self.covers.append(range(effect.first, effect.last + 1))
                continue
            if isinstance(effect, CoverSettled):
                self.covers.clear()
                continue
            assert effect.run_id in self.unfinished(), "promise 2: nothing happens to a run after its end"
            match effect:
                case RunQueued(run_id=run_id):
                    self.note("queued", run_id)
                case RunStarted(run_id=run_id):
                    line = self.in_line()
                    assert self.running() is None, "promise 5: one turn at a time"
                    assert not line or self.rank(run_id) <= self.rank(line[0]), "promise 5: in order of accept (L10)"
                    self.note("started", run_id)
                case RunResumed(run_id=run_id):
                    assert self.running() == run_id
                    self.note("resumed", run_id)
                case RunFolded(run_id=run_id, into=host):
                    assert self.running() == host
                    assert not self.cancels_of(host), "promise 4: a turn that is stopping takes nobody with it"
                    self.hosts[run_id] = host
                    self.note("folded", run_id)
                case RunFinished(run_id=run_id, outcome=outcome):
                    self.note("finished", run_id)
                    self.ends.append((run_id, outcome))


class Promises(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.session = SessionState()
        self.journal = Journal()
        self.newest_seq = 0

    def do(self, command: Command) -> None:
        leaving = self.session.leaving
        self.session, effects = decide(self.session, command)
        assert not (leaving and any(isinstance(effect, RunStarted | RunFolded) for effect in effects))
        self.journal.record(effects)

    def some_run(self, data: st.DataObject) -> str:
        """Any run, but mostly one that is not over, and a folded one where there is one."""
        unfinished = sorted(self.journal.unfinished())
        folded = [run_id for run_id in unfinished if run_id in self.journal.hosts]
        names = folded * 9 + unfinished * 3 + list(self.journal.seqs)
        return data.draw(st.sampled_from(names), label="run")

    def accept_command(self, delivery: Delivery, gap: int) -> Accept:
        seq = self.newest_seq + gap
        return Accept(run_id=f"r{seq}", seq=seq, delivery=delivery)

    # What clients ask.

    @rule(delivery=deliveries, gap=st.integers(1, 3))
    def accept(self, delivery: Delivery, gap: int) -> None:
        """Seqs are counted across the store: other sessions take some in between."""
        command = self.accept_command(delivery, gap)
        if self.session.leaving:
            self.refused(command, WorkspaceClosing)
            return
        self.newest_seq = command.seq
        self.journal.seqs[command.run_id] = command.seq
        self.journal.deliveries[command.run_id] = delivery
        self.journal.note("accepted", command.run_id)
        self.do(command)

    @precondition(lambda self: not self.session.leaving)
    @rule(several=st.lists(deliveries, min_size=1, max_size=3))
    def submit(self, several: list[Delivery]) -> None:
        """Most prompts enter at once, and some come in bunches."""
        for delivery in several:
            self.accept(delivery, 1)
            self.do(Enter(run_id=f"r{self.newest_seq}"))

    @precondition(lambda self: self.journal.seqs)
    @rule(data=st.data())
    def enter(self, data: st.DataObject) -> None:
        self.do(Enter(run_id=self.some_run(data)))

    @rule(whole=st.booleans(), at_once=st.integers(0, 3))
    def cancel_session_or_clear_queue(self, whole: bool, at_once: int) -> None:
        """`at_once`: so many of the queue are finished in the same transaction, the others in batches after it."""
        self.journal.note("cancel session" if whole else "clear queue")
        self.do(CancelSession(at_once=at_once) if whole else ClearQueue(at_once=at_once))

    @precondition(lambda self: self.session.covered)
    @rule(at_once=st.integers(1, 3))
    def finish_a_batch(self, at_once: int) -> None:
        """What the shell does after a large cancel; other commands, and a crash, may come in between."""
        expected = [run.run_id for run in self.session.covered[:at_once]]
        before = len(self.journal.ends)
        self.do(FinishCovered(at_once=at_once))
        assert self.journal.ends[before:] == [(run_id, Outcome.CANCELED) for run_id in expected]

    @precondition(lambda self: self.journal.seqs)
    @rule(data=st.data())
    def cancel_run(self, data: st.DataObject) -> None:
        run_id = self.some_run(data)
        if run_id in self.journal.unfinished() and self.too_late(run_id):
            self.refused(CancelRun(run_id=run_id), TooLate)
            return
        self.journal.note("cancel run", run_id)
        self.do(CancelRun(run_id=run_id))

    def too_late(self, run_id: str) -> bool:
        """The prompt rides in another turn, and its step was sent or the turn was resumed since."""
        folded = self.journal.times("folded", run_id=run_id)
        if not folded:
            return False
        return (
            max(self.journal.last("sent"), self.journal.last("resumed", run_id=self.journal.hosts[run_id])) > folded[0]
        )

    @precondition(lambda self: self.journal.seqs)
    @rule(data=st.data(), delivery=deliveries)
    def edit(self, data: st.DataObject, delivery: Delivery) -> None:
        run_id = self.some_run(data)
        command = ChangeDelivery(run_id=run_id, delivery=delivery)
        begun = run_id not in self.journal.unfinished() or self.journal.times("started", "folded", run_id=run_id)
        if begun or run_id in {run.run_id for run in self.session.covered}:
            self.refused(command, InvalidTransition)
        else:
            self.journal.deliveries[run_id] = delivery
            self.do(command)

    # What the active turn reports.

    @precondition(lambda self: self.session.busy)
    @rule(steering=st.booleans(), sent=st.booleans())
    def step(self, steering: bool, sent: bool) -> None:
        """A step boundary, perhaps with a prompt just before it; what is asked next may find the step sent or not."""
        if steering and not self.session.leaving:
            self.submit([Delivery.STEER])
        self.do(DrainStep(run_id=self.the_running_one()))
        if sent:
            self.journal.note("sent")
            self.do(SendStep(run_id=self.the_running_one()))

    @precondition(lambda self: self.session.busy)
    @rule(outcome=outcomes)
    def end(self, outcome: Outcome) -> None:
        running = self.the_running_one()
        self.journal.reports[running] = outcome
        self.do(EndTurn(run_id=running, outcome=outcome))

    def the_running_one(self) -> str:
        running = self.journal.running()
        assert running is not None
        return running

    # What befalls the server.

    @precondition(lambda self: len(self.journal.unfinished()) > 1)
    @rule()
    def leave(self) -> None:
        self.do(Leave())

    @rule(resume=st.booleans())
    def crash_and_start_again(self, resume: bool) -> None:
        """Only what the ledger has comes back; rows come in no particular order."""
        rows = [
            RunView(
                run_id=run.run_id,
                seq=run.seq,
                delivery=run.delivery,
                state=run.state,
                cancel_requested=self.covered_on_disk(run) if run.state is RunState.QUEUED else run.cancel_requested,
                tries=run.tries,
            )
            for run in reversed(self.session.runs)
        ]
        self.journal.note("crash")
        self.session = SessionState()
        self.do(Restore(runs=tuple(rows), resume=resume))

    def covered_on_disk(self, run: RunView) -> bool:
        return any(run.seq in cover for cover in self.journal.covers)

    @precondition(lambda self: self.session.runs)
    @rule(delivery=deliveries, data=st.data())
    def fail_to_commit(self, delivery: Delivery, data: st.DataObject) -> None:
        """L15: the decision is thrown away, and nothing of it may show later."""
        commands: list[Command] = [CancelSession(), CancelSession(at_once=0), ClearQueue(), FinishCovered(), Leave()]
        if not self.session.leaving:
            commands.append(self.accept_command(delivery, 1))
        commands += [Enter(run_id=run_id) for run_id in self.journal.seqs]
        if self.session.busy:
            running = self.the_running_one()
            commands += [DrainStep(run_id=running), EndTurn(run_id=running, outcome=Outcome.ERROR)]
        before = self.session
        decide(before, data.draw(st.sampled_from(commands), label="command"))
        assert self.session == before

    def refused(self, command: Command, error: type[Exception]) -> None:
        try:
            decide(self.session, command)
        except error:
            return
        raise AssertionError(f"{command} should have been refused with {error.__name__}")

    # The promises.

    @invariant()
    def nothing_accepted_is_lost(self) -> None:
        """Promise 1."""
        assert {run.run_id for run in self.session.runs} == self.journal.unfinished()
        if not self.session.leaving:
            assert self.session.busy or not self.journal.in_line(), "what is queued waits for a turn that is under way"

    @invariant()
    def every_run_ends_once_with_what_happened(self) -> None:
        """Promise 2."""
        for run_id in self.journal.seqs:
            ends = self.journal.outcomes(run_id)
            assert len(ends) <= 1
            if ends:
                assert ends[0] in self.causes(run_id), f"{run_id} ended {ends[0]} for no reason"

    def causes(self, run_id: str) -> set[Outcome]:
        """Every outcome this run may have: what its turn reported, else a cancel, else a crash."""
        turn = self.journal.hosts.get(run_id, run_id)
        over = self.journal.first("finished", run_id=run_id)
        withdrawn = run_id != turn and self.journal.first("cancel run", run_id=run_id) < over
        if turn in self.journal.reports and not withdrawn:
            return {self.journal.reports[turn]}
        if self.journal.cancels_of(run_id) or self.journal.cancels_of(turn):
            return {Outcome.CANCELED}
        return {Outcome.INTERRUPTED} if self.journal.times("crash") else set()

    @invariant()
    def a_cancel_reaches_what_came_before_it_and_nothing_later(self) -> None:
        """Promises 3 and 4: 4 because `cancels_of` counts no cancel older than the accept (see `causes`)."""
        for run_id in self.journal.seqs:
            began = self.journal.first("started", "folded", run_id=run_id)
            for cancel in self.journal.cancels_of(run_id):
                assert self.journal.last("resumed", run_id=run_id) < cancel, "asked to stop, then resumed"
                if cancel < began:
                    assert not self.journal.times("started", "folded", run_id=run_id), "canceled, then begun"
                    assert self.journal.outcomes(run_id) in ([], [Outcome.CANCELED])

    @invariant()
    def a_session_cancel_leaves_nothing_in_line(self) -> None:
        """Promise 3, seen at once: what is in line after a cancel was accepted after it."""
        cancel = self.journal.last("cancel session")
        for run_id in self.journal.in_line():
            (accepted,) = self.journal.times("accepted", run_id=run_id)
            assert accepted > cancel

    @invariant()
    def the_disk_knows_which_queued_runs_are_canceled(self) -> None:
        """Promise 3 across a crash between two batches: what is covered, and nothing else that waits."""
        covered = {
            run.run_id for run in self.session.runs if self.covered_on_disk(run) and run.state is RunState.QUEUED
        }
        assert covered == {run.run_id for run in self.session.covered}
        assert all(self.session.position(run_id) is None for run_id in covered)

    def teardown(self) -> None:
        """Promises 1 and 2 to the end: bring everything home and count."""
        if self.session.leaving:
            self.crash_and_start_again(resume=True)
        for run_id in self.journal.seqs:
            self.do(Enter(run_id=run_id))
        while self.session.busy:
            self.end(Outcome.END_TURN)
        while self.session.covered:
            self.finish_a_batch(at_once=2)
        assert self.session == SessionState()
        assert sorted(name for name, _ in self.journal.ends) == sorted(self.journal.seqs)
        self.every_run_ends_once_with_what_happened()


Promises.TestCase.settings = settings(max_examples=400, stateful_step_count=40, deadline=None)
TestPromises = Promises.TestCase
