"""What sessions find in the workspace they live in (longboat.runtime.home.Home), apart from the sessions themselves.

Owns the workspace's configuration, models, rules, tools, asks and books. Must not know actors, streams or clients.
"""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from longboat.config.rules import remember
from longboat.config.settings import Config, Settings
from longboat.context.commands import Command
from longboat.core.permissions import RuleInvalid, Rules
from longboat.errors import ConfigInvalid, ModelError
from longboat.models.seam import Model, ModelRole
from longboat.runtime.archive import Archive
from longboat.runtime.asks import Asks
from longboat.runtime.files import FileBook
from longboat.runtime.ledger import Ledger
from longboat.runtime.lookout import Lookout
from longboat.runtime.mcp_prompts import call_in
from longboat.runtime.models import ModelDesk
from longboat.runtime.outfit import Outfit, wished
from longboat.runtime.place import private_rules, scratches
from longboat.runtime.sights import Sights
from longboat.runtime.undo import UndoBook
from longboat.runtime.workbench import Workbench
from longboat.store.protocol import Entry, Store, Unit
from longboat.store.rows import RunRecord
from longboat.tasks import Tasks
from longboat.tools.mcp.logins import Logins
from longboat.tools.output_files import OutputFiles
from longboat.tools.sandbox import warning
from longboat.tools.seam import Tool
from longboat.wire.events import Change, encode_body
from longboat.wire.requests import Approve


class Household:
    def __init__(
        self,
        workspace_id: str,
        directory: Path,
        *,
        settings: Settings,
        store: Store,
        models: ModelDesk,
        tools: Iterable[Tool],
        logins: Logins,
        output_files: OutputFiles,
    ) -> None:
        self.id = workspace_id
        self.directory = directory
        self.store = store
        self.tasks = Tasks()
        self.asks = Asks(store, self.id)
        self.files = FileBook(store, self.id, directory)
        self.undo = UndoBook(store, self.id, self.files)
        self.archive = Archive(store, self.id, directory)
        self.ledger = Ledger(store, self.id)
        self.bench = Workbench(
            directory,
            data_dir=settings.data_dir,
            scratch=scratches(settings.data_dir) / self.id,
            config=self.config,
            logins=logins,
            output_files=output_files,
            extra=tools,
            tell=self._tell,
        )
        self.sights = Sights(self.id, directory, self.bench, store, self.files)
        self._models = models
        self.lookout = Lookout(directory, models, self.tasks, self._tell)
        self._private = private_rules(directory, settings)

    def config(self) -> Config:
        return self._models.config(self.directory)

    async def model(self, name: str | None, role: ModelRole) -> Model:
        if not self.directory.is_dir():
            raise ModelError(
                f"{self.directory} does not exist any more.", title="The directory is gone", code="directory_gone"
            )
        return await self._models.model(self.directory, name, role)

    async def model_of(self, command: Command) -> str | None:
        """The model that a command asks for, by its name."""
        if command.model != "small":
            return command.model if command.model != "large" else None
        model = await self.model(None, "small")
        return f"{model.provider}/{model.name}"

    def asks_a_server(self, prompt: str) -> bool:
        """Whether an MCP server is asked for the text of the prompt when its turn starts."""
        call = call_in(prompt)
        if call is None:
            return False
        try:
            return call.server in self.config().mcp
        except ConfigInvalid:
            return False

    def rules(self) -> Rules:
        section = self.config().permissions
        try:
            return Rules.parse(allow=section.allow, deny=(*section.deny, *self._private))
        except RuleInvalid as error:
            raise ConfigInvalid(f"permissions: {error}") from None

    async def remember(self, rules: tuple[str, ...]) -> None:
        await asyncio.to_thread(remember, self.directory, rules, environ=os.environ, user_dir=Path.home())

    async def outfit(self, record: RunRecord, model: Model) -> Outfit:
        outfit = await self.bench.outfit(
            model=model, agent=record.options.agent, child=record.run.parent_run_id is not None
        )
        return wished(await self._warned(outfit, record), record.options, model)

    async def _warned(self, outfit: Outfit, record: RunRecord) -> Outfit:
        """A permission names the box. Who allowed all beforehand sees none, and is told at the start if there is no box
        or only the lesser one."""
        if record.approve is not Approve.ALL or record.run.parent_run_id is not None or "bash" not in outfit.tools:
            return outfit
        told = await warning(self.bench.sandbox(self.config()))
        return replace(outfit, problems=(*outfit.problems, told)) if told else outfit

    def is_ready(self) -> bool:
        """Whether the directory is there and its configuration can be used."""
        try:
            self.config()
        except ConfigInvalid:
            return False
        return self.directory.is_dir()

    def _tell(self, event: msgspec.Struct) -> None:
        """Something happened that nobody waits for. A store that fails just now leaves it untold."""
        entry = Entry(bodies=(encode_body(Change.UPDATED, event),), session_id=None)
        future = self.store.submit(Unit(workspace_id=self.id, entries=[entry], durable=False))
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
