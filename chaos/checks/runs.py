"""Every accepted prompt is one run with one end, told to every reader in the same bytes."""

from collections import Counter
from collections.abc import Iterator

from chaos.evidence import NO_ANSWER, Evidence, Exchange, Json, Seen, Violation, WorkspaceEvidence, number_of

ACCEPTING = ("submit", "repeat", "summarize", "shell")


def accepted(evidence: Evidence, workspace: WorkspaceEvidence) -> dict[str, Exchange]:
    """The runs whose accept a client was told of, by the first answer that told it."""
    answers = [each for each in evidence.of(workspace, *ACCEPTING) if each.status == 202]
    return {each.answer["run_id"]: each for each in sorted(answers, key=lambda each: -each.ended_at)}


def first_sent(evidence: Evidence, workspace: WorkspaceEvidence) -> dict[str, float]:
    """When each run was asked for at the earliest: its first submit may have been heard and not answered."""
    sent: dict[str, float] = {}
    for each in evidence.of(workspace, *ACCEPTING):
        run_id = each.answer.get("run_id") or each.body.get("run_id")
        if run_id is not None:
            sent[run_id] = min(each.sent_at, sent.get(run_id, each.sent_at))
    return sent


def check_answers(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """The server answers, and only says 5xx while it leaves."""
    for each in (each for each in evidence.exchanges if each.workspace == workspace.name):
        told = f"{each.kind} of {each.client}: {each.status} {each.answer}"
        if each.status >= 500 and each.status != 503:
            yield Violation(promise="no request fails inside the server", what=told)
        if each.status == NO_ANSWER and each.answer.get("timeout"):
            yield Violation(promise="every request is answered", what=told)


def check_terminal_events(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """E1: exactly one for every run that a client or the log knows of."""
    known = set(accepted(evidence, workspace)) | set(workspace.last_runs())
    ends = Counter(end["run_id"] for end in workspace.of_type("run_complete"))
    for run_id in sorted(known | set(ends)):
        if ends[run_id] != 1 or run_id not in known:
            what = f"{workspace.name}: run {run_id} has {ends[run_id]}"
            yield Violation(promise="one terminal event for every accepted run", what=what)


def check_ledger(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """Ledger and log agree; a run is missing from the ledger only with its session."""
    promise = "ledger and log agree"
    ledger = {run["run_id"]: run for run in workspace.ledger}
    ends = {end["run_id"]: end for end in workspace.of_type("run_complete")}
    for run_id, run in ledger.items():
        if run["state"] != "finished":
            yield Violation(promise="every run ends", what=f"{workspace.name}: {run}")
        elif run_id not in ends:
            if run["session_id"] not in workspace.imported:
                yield Violation(promise=promise, what=f"{workspace.name}: only the ledger has {run}")
        elif (run["outcome"], run["folded_into"]) != (ends[run_id]["outcome"], ends[run_id]["folded_into"]):
            yield Violation(promise=promise, what=f"{workspace.name}: {run} but {ends[run_id]}")
    for run_id, exchange in accepted(evidence, workspace).items():
        if exchange.session_id in workspace.transcripts and run_id not in ledger:
            yield Violation(promise=promise, what=f"{workspace.name}: {run_id} was accepted and is not in the ledger")


def check_seqs(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """A run keeps its seq, also when its submit is repeated; no two runs have the same."""
    told: dict[str, set[int]] = {}
    answers = [each.answer for each in evidence.of(workspace, *ACCEPTING) if each.status == 202]
    runs: list[Json] = [*answers, *workspace.of_type("run")]
    for run in runs:
        told.setdefault(run["run_id"], set()).add(run["seq"])
    owners = Counter(seq for seqs in told.values() for seq in seqs)
    for run_id, seqs in told.items():
        if len(seqs) != 1 or any(owners[seq] != 1 for seq in seqs):
            yield Violation(promise="a run has one seq of its own", what=f"{workspace.name}: {run_id} has {seqs}")


def check_readers(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """Every reader got what a replay from the first cursor gets: the same bytes in the same order, up to the end."""
    promise = "all readers see the same events"
    numbers = [number_of(seen.cursor) for seen in workspace.replay]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers)) if numbers else ()):
        yield Violation(promise=promise, what=f"{workspace.name}: the numbers of the replay have a gap")
    for name, seen in workspace.readers.items():
        if difference := _difference(seen, workspace.replay):
            yield Violation(promise=promise, what=f"{workspace.name}, {name}: {difference}")
        if workspace.resyncs.get(name):
            what = f"{workspace.name}, {name}: {workspace.resyncs[name]} times"
            yield Violation(promise="a cursor stays good over a restart", what=what)


def _difference(seen: list[Seen], replay: list[Seen]) -> str:
    for place, (mine, log) in enumerate(zip(seen, replay, strict=False)):
        if mine != log:
            return f"event {place} is {mine.cursor} here and {log.cursor} in the replay"
    return f"{len(seen)} events, the replay has {len(replay)}" if len(seen) != len(replay) else ""
