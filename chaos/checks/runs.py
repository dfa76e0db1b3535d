"""Every accepted prompt is one run with one end, told to every reader in the same bytes."""

from collections import Counter
from collections.abc import Iterator

from chaos.evidence import NO_ANSWER, Evidence, Exchange, Json, Piece, Seen, Violation, WorkspaceEvidence, number_of
from chaos.plan import call_command, words_of

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
    """The server answers, and only says 5xx while it leaves, or misses its database or another server."""
    for each in (each for each in evidence.exchanges if each.workspace == workspace.name):
        told = f"{each.kind} of {each.client}: {each.status} {each.answer}"
        if each.status >= 500 and each.status != 503:
            yield Violation(promise="no request fails inside the server", what=told)
        if each.status == NO_ANSWER and each.answer.get("timeout"):
            yield Violation(promise="every request is answered", what=told)
    for refusal in workspace.refusals:
        yield Violation(promise="every reader gets its stream", what=f"{workspace.name}: {refusal}")


def check_refusals(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """B1, L15, G5: a prompt or a command that was refused, each time that it was sent, is no run."""
    sent: dict[str, list[Exchange]] = {}
    for each in evidence.of(workspace, "submit", "repeat", "shell"):
        sent.setdefault(_text_of(each), []).append(each)
    runs: dict[str, Json] = {words_of(run["prompt"]): run for run in (*workspace.of_type("run"), *workspace.ledger)}
    for text, exchanges in sent.items():
        if text in runs and all(each.is_refused for each in exchanges):
            what = f"{workspace.name}: {runs[text]} was refused: {exchanges}"
            yield Violation(promise="what is refused is not accepted", what=what)


def _text_of(exchange: Exchange) -> str:
    """No other prompt has the same."""
    return f"!{exchange.body['command']}" if exchange.kind == "shell" else words_of(exchange.body["prompt"])


def check_calls(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """A prompt that calls a custom command is the text of the command."""
    del evidence
    for run in workspace.last_runs().values():
        if run["prompt"].startswith(call_command("")):
            yield Violation(promise="a custom command is put in", what=f"{workspace.name}: {run}")


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
    for name, pieces in workspace.readers.items():
        for piece in pieces[:-1]:
            if complaint := _complaint_about_resync(evidence, workspace, piece):
                what = f"{workspace.name}, {name}: {complaint}"
                yield Violation(promise="a cursor stays good over a restart", what=what)
        for piece in pieces[-1:]:
            if difference := _difference(piece.seen, _rest(workspace, piece)):
                yield Violation(promise=promise, what=f"{workspace.name}, {name}: {difference}")


def _rest(workspace: WorkspaceEvidence, piece: Piece) -> list[Seen]:
    """The replay from where the piece began."""
    first = number_of(workspace.replay[0].cursor) if workspace.replay else 0
    return workspace.replay[max(number_of(piece.after) + 1 - first, 0) :]


def _complaint_about_resync(evidence: Evidence, workspace: WorkspaceEvidence, piece: Piece) -> str:
    """What is wrong with the end of a piece; empty if the database lost its last events in a crash, and only those."""
    there = {seen.cursor for seen in workspace.replay}
    if not evidence.crashes:
        return f"{piece.end} was refused"
    if piece.end in there:
        return f"{piece.end} was refused, and is in the replay"
    lost = next(place for place, seen in enumerate(piece.seen) if seen.cursor not in there)
    if difference := _difference(piece.seen[:lost], _rest(workspace, piece)[:lost]):
        return difference
    kept = [seen.cursor for seen in piece.seen[lost:] if seen.cursor in there]
    return f"{kept} came after what was lost" if kept else ""


def _difference(seen: list[Seen], replay: list[Seen]) -> str:
    for place, (mine, log) in enumerate(zip(seen, replay, strict=False)):
        if mine != log:
            return f"event {place} is {mine.cursor} here and {log.cursor} in the replay"
    return f"{len(seen)} events, the replay has {len(replay)}" if len(seen) != len(replay) else ""


def check_places(evidence: Evidence, workspace: WorkspaceEvidence) -> Iterator[Violation]:
    """G2: all servers show the same, and find what there is."""
    promise = "every server shows the same"
    for name in workspace.elsewhere:
        yield Violation(promise=promise, what=f"{workspace.name}: the {name}")
    for each in (each for each in evidence.exchanges if each.workspace == workspace.name):
        if each.status == 404 and each.session_id in workspace.transcripts:
            yield Violation(promise=promise, what=f"{workspace.name}: {each} although the session is there")
