"""One ask, one end; and no command runs twice, or without the word that it needs."""

from bisect import bisect
from collections import Counter
from collections.abc import Iterator

from chaos.checks.runs import accepted
from chaos.evidence import Evidence, Json, Violation, WorkspaceEvidence, name_of
from chaos.plan import decode, tokens_in

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
    counts = Counter((effect.token, effect.what) for effect in workspace.effects if effect.what != "beat")
    for (token, what), count in counts.items():
        if count > 1:
            yield Violation(promise="a command runs at most once", what=f"{workspace.name}: {count} × {what} {token}")
    begun = {token for token, what in counts if what == "begin"}
    for run in workspace.last_runs().values():
        tokens = begun & tokens_in(run["prompt"])
        if tokens and run["started_at"] is None and run["folded_into"] is None:
            yield Violation(
                promise="a run that did not start does nothing", what=f"{workspace.name}: {tokens} of {run}"
            )
    yield from _check_allowed(evidence, workspace, begun)


def check_owners(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """G3: no command runs at a server while another one is the owner. What a killed server leaves behind when it starts
    again at once is looked for among the processes."""
    del evidence
    for effect in workspace.effects:
        place = bisect(workspace.takeovers, effect.at, key=lambda takeover: takeover.at)
        owner = workspace.takeovers[place - 1].server if place else ""
        if name_of(owner) != name_of(effect.server):
            what = f"{workspace.name}: {effect}, and {owner} had taken over"
            yield Violation(promise="no command outlives a takeover", what=what)


def check_moves(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """G12: a move that is answered has left nothing running; the node that it names is the next to start a command."""
    for move in evidence.of(workspace, "move"):
        if move.status != 200:
            continue
        if move.answer["owner"] != move.body["node"]:
            yield Violation(promise="a move leads where it was told", what=f"{workspace.name}: {move}")
        for effect in workspace.effects:
            place = bisect(workspace.takeovers, effect.at, key=lambda takeover: takeover.at)
            is_taken_over = place > 0 and workspace.takeovers[place - 1].at > move.sent_at
            if effect.at > move.ended_at and not is_taken_over and name_of(effect.server) != move.body["node"]:
                what = f"{workspace.name}: {effect} after {move}"
                yield Violation(promise="no command outlives a move", what=what)


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
