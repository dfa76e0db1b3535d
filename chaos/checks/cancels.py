"""A cancel that was answered holds, over every crash; it covers what was accepted before it, and nothing else.

Only what the clients can know is used: a run was accepted before a cancel if its 202 was there before the cancel was
sent, and after it if it was sent when the cancel had been answered. Of what overlaps, either may be true.
"""

from bisect import bisect
from collections.abc import Iterable, Iterator
from dataclasses import replace

from chaos.checks.runs import accepted, first_sent
from chaos.evidence import Evidence, Exchange, Json, Violation, WorkspaceEvidence, instant
from chaos.plan import tokens_in

CANCELING = ("cancel_session", "cancel_run", "clear", "delete")
STOP_S = 5.0
"""How long after its cancel a run of the same server may still begin a command: it was already about to."""
LATE_S = 30.0
"""How long after a client gave up a cancel may still arrive: a server that passed it on is gone, and a link was cut."""
HOLDS = "a canceled run does not start, go on or come back"


def check_cancels(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    runs = workspace.last_runs()
    known, sent = accepted(evidence, workspace), first_sent(evidence, workspace)
    for cancel in _merged(evidence.of(workspace, *CANCELING)):
        if cancel.status not in (200, 204):
            continue
        yield from _check_list(workspace, cancel, runs, known)
        for run_id in _named(cancel) & set(sent):
            if sent[run_id] > cancel.ended_at:
                what = f"{workspace.name}: {run_id} is in {cancel}"
                yield Violation(promise="a cancel leaves a later run alone", what=what)
        for run in _covered(cancel, runs, known):
            yield from _check_covered(evidence, workspace, cancel, run)


def _covered(cancel: Exchange, runs: dict[str, Json], known: dict[str, Exchange]) -> list[Json]:
    """The runs that were accepted before the cancel and had not ended when it was answered: a client knew it, or they
    have a lower seq than one that the answer names."""
    if cancel.kind == "cancel_run":
        found = [runs[cancel.run_id]] if cancel.run_id in runs else []
    elif cancel.kind == "clear":
        found = [runs[run_id] for run_id in _named(cancel) if run_id in runs]
    else:
        mine = (run for run in runs.values() if run["session_id"] == cancel.session_id)
        mark = max((runs[run_id]["seq"] for run_id in _named(cancel) if run_id in runs), default=0)
        found = [run for run in mine if run["seq"] <= mark or _is_before(run, cancel, known)]
    return [run for run in found if run["finished_at"] is None or instant(run["finished_at"]) > cancel.ended_at]


def _named(cancel: Exchange) -> set[str]:
    return set(cancel.answer.get("canceled", ()))


def _is_before(run: Json, cancel: Exchange, known: dict[str, Exchange]) -> bool:
    return run["run_id"] in known and known[run["run_id"]].ended_at < cancel.sent_at


def _check_list(
    workspace: WorkspaceEvidence, cancel: Exchange, runs: dict[str, Json], known: dict[str, Exchange]
) -> Iterator[Violation]:
    """The answer names all that it covers."""
    if cancel.kind != "cancel_session":
        return
    named = _named(cancel)
    for run in _covered(cancel, runs, known):
        # What was folded into a turn is stopped with it.
        missed = run["run_id"] not in named and run["folded_into"] not in named
        if missed and _is_before(run, cancel, known):
            what = f"{workspace.name}: {run} is not in {cancel}"
            yield Violation(promise="a cancel covers all that was accepted before it", what=what)


def _check_covered(
    evidence: Evidence, workspace: WorkspaceEvidence, cancel: Exchange, run: Json
) -> Iterator[Violation]:
    if run["started_at"] is not None and instant(run["started_at"]) > cancel.ended_at:
        yield Violation(promise=HOLDS, what=f"{workspace.name}: started after {cancel}: {run}")
    if run["outcome"] == "interrupted":
        yield Violation(promise=HOLDS, what=f"{workspace.name}: interrupted and not canceled after {cancel}: {run}")
    tokens = tokens_in(run["prompt"])
    owner = _owner(workspace, cancel.ended_at)
    for effect in workspace.effects:
        if effect.token not in tokens or effect.what != "begin" or effect.at < cancel.ended_at:
            continue
        if effect.at > cancel.ended_at + STOP_S or _owner(workspace, effect.at) > owner:
            yield Violation(promise=HOLDS, what=f"{workspace.name}: {effect} after {cancel}")


def _owner(workspace: WorkspaceEvidence, instant: float) -> int:
    """How many owners there had been by then."""
    return bisect(workspace.takeovers, instant, key=lambda takeover: takeover.at)


def check_reasons(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """Nothing is canceled that no one canceled. A sub-agent's run is canceled with the one that sent it."""
    cancels = _merged(evidence.of(workspace, *CANCELING))
    sent = first_sent(evidence, workspace)
    for run in workspace.last_runs().values():
        if run["outcome"] == "canceled" and run["parent_run_id"] is None:
            sent_at = sent.get(run["run_id"], instant(run["accepted_at"]))
            if not any(_may_have_canceled(cancel, run, sent_at) for cancel in cancels):
                yield Violation(
                    promise="a cancel leaves a later run alone", what=f"{workspace.name}: no cancel for {run}"
                )


def _merged(cancels: Iterable[Exchange]) -> list[Exchange]:
    """Those with the same key are one, from the first time it was sent to the first answer."""
    found: list[Exchange] = []
    keyed: dict[str, list[Exchange]] = {}
    for cancel in cancels:
        if cancel.key:
            keyed.setdefault(cancel.key, []).append(cancel)
        else:
            found.append(cancel)
    for same in keyed.values():
        answered = [each for each in same if each.status == 200]
        first = min(answered, key=lambda each: each.ended_at) if answered else same[-1]
        found.append(replace(first, sent_at=min(each.sent_at for each in same)))
    return found


def check_repeats(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """G5: a cancel that is sent again gets the same answer."""
    answers: dict[str, set[str]] = {}
    for cancel in evidence.of(workspace, "cancel_session"):
        if cancel.key and cancel.status == 200:
            answers.setdefault(cancel.key, set()).add(str(cancel.answer))
    for key, different in answers.items():
        if len(different) > 1:
            what = f"{workspace.name}: {key} had the answers {different}"
            yield Violation(promise="a repeated cancel has the same answer", what=what)


def _may_have_canceled(cancel: Exchange, run: Json, sent_at: float) -> bool:
    """Whether it was under way during the run's life, and reached it: by its id, its host or its session."""
    if cancel.kind == "cancel_run" and cancel.run_id not in (run["run_id"], run["folded_into"]):
        return False
    if cancel.kind != "cancel_run" and cancel.session_id != run["session_id"]:
        return False
    arrived_by = cancel.ended_at if cancel.is_certain else cancel.ended_at + LATE_S
    return arrived_by >= sent_at and cancel.sent_at <= instant(run["finished_at"])
