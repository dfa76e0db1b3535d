"""What sessions and turns may ask of the workspace they belong to, and a turn of its session.

One place for these views, so that the rooms of the runtime need not import each other.
"""

from pathlib import Path
from typing import Protocol

from longboat.config.settings import Config
from longboat.models.failover import Lineup
from longboat.models.protocol import Model, ModelRole
from longboat.permissions.verdict import Rules
from longboat.runtime.session.file_history import FileHistory
from longboat.runtime.session.review import Review
from longboat.runtime.session.undo import UndoHistory
from longboat.runtime.turn.asks import Asks
from longboat.runtime.turn.setup import TurnSetup
from longboat.runtime.turn.traces import Traces
from longboat.runtime.workspace.private_files import PrivateFiles
from longboat.runtime.workspace.project_files import ProjectFiles
from longboat.runtime.workspace.tools import WorkspaceTools
from longboat.store.protocol import Store
from longboat.store.records import RunRecord
from longboat.tasks import Tasks
from longboat.wire.models import Accepted, Run, Session, ToolResultPart, Usage
from longboat.wire.requests import CreateSession


class SessionHost(Protocol):
    """What a workspace does for its sessions: it hears of their runs, and runs sub-agents for them."""

    async def create_session(self, request: CreateSession, *, sent_by: tuple[str, str]) -> Session: ...

    async def accept(self, record: RunRecord) -> Accepted: ...

    async def run(self, run_id: str, *, wait_s: float = 0) -> Run: ...

    async def cancel_run(self, run_id: str) -> Run: ...

    def run_accepted(self, run_id: str, session_id: str) -> None: ...

    def run_finished(self, run: Run) -> None: ...

    def session_deleted(self, session_id: str) -> None: ...

    async def can_answer(self) -> bool:
        """Whether someone can answer questions: at a client that is attached, or through the inbox."""
        ...

    def settled(self) -> None:
        """A session has nothing to decide at the moment."""
        ...


class WorkspaceServices(Protocol):
    """What a session and its turns use of their workspace."""

    id: str
    directory: Path
    store: Store
    tasks: Tasks
    asks: Asks
    traces: Traces
    files: FileHistory
    private_files: PrivateFiles
    undo: UndoHistory
    review: Review
    tools: WorkspaceTools
    host: SessionHost

    def config(self) -> Config:
        """The configuration as it is now; raises ConfigInvalid."""
        ...

    def uses_mcp_prompt(self, prompt: str) -> bool:
        """Whether an MCP server supplies the text of this prompt when its turn starts: it is never folded then."""
        ...

    def rules(self) -> Rules:
        """The permission rules as they are now; raises ConfigInvalid."""
        ...

    @property
    def rules_file(self) -> str:
        """The file that `remember` changes, as people write it."""
        ...

    async def remember(self, rules: tuple[str, ...]) -> None:
        """Add these rules to the project's configuration."""
        ...

    async def model(self, name: str | None, role: ModelRole) -> Model:
        """The model of that name, or the one that now answers in that role; raises ModelError or ConfigInvalid."""
        ...

    async def lineup(self, name: str | None, role: ModelRole) -> Lineup:
        """The model of that name, or those of that role in order; raises ModelError or ConfigInvalid."""
        ...

    async def turn_setup(self, record: RunRecord, model: Model, project: ProjectFiles) -> TurnSetup:
        """What the turn of this run works with."""
        ...


class TurnOwner(Protocol):
    """What a turn asks of the session that it works for."""

    summary_seq: int

    @property
    def session(self) -> Session: ...

    async def drain_step(self, run_id: str) -> None: ...

    async def send_step(self, run_id: str) -> None: ...

    def next_message_seq(self) -> int: ...

    def add_usage(self, run_id: str, model: str, usage: Usage, *, context: int | None = None) -> None: ...

    def add_call(self, run_id: str, result: ToolResultPart) -> None: ...

    async def rename(self, title: str, *, only_from: str | None = None) -> Session: ...

    async def settle_usage(self) -> None: ...
