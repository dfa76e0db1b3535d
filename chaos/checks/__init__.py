"""What must be true of the evidence, whatever was killed when. Pure: evidence in, violations out."""

from chaos.checks.asks import check_asks, check_commands, check_moves, check_owners
from chaos.checks.cancels import check_cancels, check_reasons, check_repeats
from chaos.checks.content import check_files, check_forks, check_transcripts
from chaos.checks.runs import (
    check_answers,
    check_calls,
    check_ledger,
    check_places,
    check_readers,
    check_refusals,
    check_seqs,
    check_terminal_events,
)
from chaos.evidence import Evidence, Violation

__all__ = ["violations"]

CHECKS = (
    check_answers,
    check_refusals,
    check_calls,
    check_terminal_events,
    check_ledger,
    check_seqs,
    check_readers,
    check_places,
    check_cancels,
    check_reasons,
    check_repeats,
    check_asks,
    check_commands,
    check_owners,
    check_moves,
    check_transcripts,
    check_forks,
    check_files,
)


def violations(evidence: Evidence) -> list[Violation]:
    """Everything that is wrong; empty if every promise held."""
    found = list(evidence.found)
    for workspace in evidence.workspaces:
        for check in CHECKS:
            found += check(evidence, workspace)
    return found
