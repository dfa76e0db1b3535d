"""What a session and its turns need of the workspace they live in."""

from pathlib import Path
from typing import Protocol

from longboat.config.settings import Config
from longboat.core.permissions import Rules
from longboat.models.seam import Model, ModelRole
from longboat.runtime.asks import Asks
from longboat.runtime.files import FileBook
from longboat.runtime.outfit import Outfit
from longboat.runtime.undo import UndoBook
from longboat.runtime.workbench import Workbench
from longboat.store.protocol import Store
from longboat.store.rows import RunRecord
from longboat.tasks import Tasks
from longboat.wire.models import Run


class Home(Protocol):
    id: str
    directory: Path
    store: Store
    tasks: Tasks
    asks: Asks
    files: FileBook
    undo: UndoBook
    bench: Workbench

    def config(self) -> Config:
        """The configuration as it is now; raises ConfigInvalid."""
        ...

    def asks_a_server(self, prompt: str) -> bool:
        """Whether an MCP server is asked for the text of the prompt when its turn starts: no other turn takes it in."""
        ...

    def rules(self) -> Rules:
        """The permission rules as they are now; raises ConfigInvalid."""
        ...

    async def remember(self, rules: tuple[str, ...]) -> None:
        """Allow this from now on, in the project's own configuration."""
        ...

    async def model(self, name: str | None, role: ModelRole) -> Model:
        """The model of that name, or of that role; raises ModelError or ConfigInvalid."""
        ...

    async def outfit(self, record: RunRecord, model: Model) -> Outfit:
        """What the turn of this run works with."""
        ...

    async def delegate(self, parent: RunRecord, call_id: str, prompt: str, agent: str | None) -> str:
        """Let a sub-agent work on a child session; cancel it if the caller is canceled."""
        ...

    def run_accepted(self, run_id: str, session_id: str) -> None: ...

    def run_finished(self, run: Run) -> None: ...

    def session_deleted(self, session_id: str) -> None: ...

    def settled(self) -> None:
        """A session has nothing to decide at the moment."""
        ...
