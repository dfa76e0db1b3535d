"""What a session and its turns need of the workspace they live in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

from longboat.config.settings import Config
from longboat.models.seam import Model
from longboat.runtime.tasks import Tasks
from longboat.store.protocol import Store
from longboat.tools.seam import Tool
from longboat.wire.models import Run

ModelRole = Literal["large", "small"]


class Home(Protocol):
    id: str
    directory: Path
    store: Store
    tasks: Tasks
    tools: Mapping[str, Tool]

    def config(self) -> Config:
        """The configuration as it is now; raises ConfigInvalid."""
        ...

    async def model(self, name: str | None, role: ModelRole) -> Model:
        """The model of that name, or of that role; raises ModelError or ConfigInvalid."""
        ...

    def run_accepted(self, run_id: str, session_id: str) -> None: ...

    def run_finished(self, run: Run) -> None: ...

    def session_deleted(self, session_id: str) -> None: ...

    def settled(self) -> None:
        """A session has nothing to decide at the moment."""
        ...
