"""What a turn reads before its first step: the history of its session, and the project's files.

Must not know what the turn does with it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longboat.runtime.workspace.project_files import ProjectFiles
from longboat.store.records import SessionHistory

if TYPE_CHECKING:
    from longboat.runtime.protocols import WorkspaceServices


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInputs:
    history: SessionHistory
    project: ProjectFiles


async def read_inputs(services: "WorkspaceServices", session_id: str, *, summary_seq: int) -> TurnInputs:
    """Read both, one after the other: most turns find both in memory. `summary_seq`: where the messages begin that the
    model sees."""
    history = await services.store.reads.history(session_id, after=max(summary_seq - 1, 0))
    return TurnInputs(history=history, project=await services.tools.read_project())
