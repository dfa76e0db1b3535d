"""What a turn reads before its first step: the history of its session, and the project's files.

Must not know what the turn does with it.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longboat.runtime.workspace.project_files import ProjectFiles
from longboat.store.records import NO_HISTORY, SessionHistory
from longboat.wire.models import Message

if TYPE_CHECKING:
    from longboat.runtime.protocols import WorkspaceServices


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInputs:
    history: SessionHistory
    project: ProjectFiles


async def read_inputs(
    services: "WorkspaceServices", session_id: str, *, summary_seq: int, first_prompt: Message | None
) -> TurnInputs:
    """Read both at once. `summary_seq`: where the messages begin that the model sees. `first_prompt`: of a new session,
    which has no other message."""
    project = services.tools.read_project()
    if first_prompt is not None:
        history = replace(NO_HISTORY, messages=(first_prompt,))
    else:
        history = await services.store.reads.history(session_id, after=max(summary_seq - 1, 0))
    return TurnInputs(history=history, project=await project)
