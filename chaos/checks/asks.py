"""One ask, one end; and no command runs twice, or without the word that it needs."""

from collections import Counter
from collections.abc import Iterator

from chaos.checks.runs import accepted
from chaos.evidence import Evidence, Json, Violation, WorkspaceEvidence
from chaos.plan import decode

REQUESTS = ("permission_request", "question_request")
NOTIFICATIONS = ("permission_notification", "question_notification")
GRANTING = ("once", "session")


def check_asks(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    asked = Counter(ask["id"] for ask in workspace.of_type(*REQUESTS))
    ends: dict[str, list[Json]] = {}
    for end in workspace.of_type(*NOTIFICATIONS):
        ends.setdefault(end["id"], []).append(end)
    for ask_id in sorted(set(asked) | set(ends)):
        states = [end["state"] for end in ends.get(ask_id, ())]
        if asked[ask_id] != 1 or len(states) != 1:
            what = f"{workspace.name}: {ask_id} was asked {asked[ask_id]} times and ended {len(states)} times: {states}"
            yield Violation(promise="one ask, one end", what=what)
    for ask_id in workspace.pending:
        yield Violation(promise="no ask outlives its run", what=f"{workspace.name}: {ask_id}")
    yield from _check_answers(evidence, workspace, ends)


def _check_answers(
    evidence: Evidence, workspace: WorkspaceEvidence, ends: dict[str, list[Json]]
) -> Iterator[Violation]:
    """The first answer wins, and the log says the same as the winner was told."""
    promise = "the first answer wins"
    won = [each for each in evidence.of(workspace, "answer") if each.status == 200]
    for ask_id, count in Counter(each.ask_id for each in won).items():
        if count > 1:
            yield Violation(promise=promise, what=f"{workspace.name}: {ask_id} took {count} answers")
    for each in won:
        first = next(iter(ends.get(each.ask_id, ())), None)
        told = None if first is None else (first["state"], first["answer"], first["answered_by"])
        if told != ("answered", each.body["answer"], each.client):
            yield Violation(promise=promise, what=f"{workspace.name}: {each} but the log says {first}")


def check_commands(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """At most once, never for a run that did not start, and only with a yes if it had to be asked."""
    counts = Counter((effect.token, effect.what) for effect in workspace.effects)
    for (token, what), count in counts.items():
        if count > 1:
            yield Violation(promise="a command runs at most once", what=f"{workspace.name}: {count} × {what} {token}")
    begun = {token for token, what in counts if what == "begin"}
    for run in workspace.last_runs().values():
        tokens = begun & {step.token for step in decode(run["prompt"])}
        if tokens and run["started_at"] is None and run["folded_into"] is None:
            yield Violation(
                promise="a run that did not start does nothing", what=f"{workspace.name}: {tokens} of {run}"
            )
    yield from _check_allowed(evidence, workspace, begun)


def _check_allowed(evidence: Evidence, workspace: WorkspaceEvidence, begun: set[str]) -> Iterator[Violation]:
    promise = "no command runs without the answer that it needs"
    answers = {end["id"]: end["answer"] for end in reversed(list(workspace.of_type("permission_notification")))}
    allowed: set[str] = set()
    for ask in workspace.of_type("permission_request"):
        token, answer = ask["tool_call_id"].removeprefix("call-"), answers.get(ask["id"])
        if answer in GRANTING:
            allowed.add(token)
        elif token in begun:
            yield Violation(promise=promise, what=f"{workspace.name}: {token} ran, and the answer was {answer}")
    runs = workspace.last_runs()
    for run_id, exchange in accepted(evidence, workspace).items():
        run = runs.get(run_id)
        # A prompt that was folded into another run's turn is under what that run may do.
        if run is not None and run["folded_into"] is None and exchange.body.get("approve") == "ask":
            unasked = begun & {step.token for step in decode(run["prompt"])} - allowed
            if unasked:
                yield Violation(promise=promise, what=f"{workspace.name}: {unasked} of {run} ran unasked")
