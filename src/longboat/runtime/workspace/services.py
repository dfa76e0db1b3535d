"""The services of a workspace that its sessions and turns use: configuration, models, rules, tools, asks, file history.

Implements longboat.runtime.protocols.WorkspaceServices. Must not know actors, streams or clients.
"""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from longboat.config.rules import add_rules, follow_trust, rules_file
from longboat.config.settings import Config, Settings
from longboat.context.library import Command
from longboat.errors import ConfigInvalid, ModelError, TreeAway
from longboat.models.failover import Lineup
from longboat.models.protocol import Model, ModelRole
from longboat.permissions.verdict import RuleInvalid, Rules
from longboat.runtime.archive.archive import Archive
from longboat.runtime.ownership import SharedTrust
from longboat.runtime.protocols import SessionHost
from longboat.runtime.session.file_history import FileHistory
from longboat.runtime.session.review import Review
from longboat.runtime.session.undo import UndoHistory
from longboat.runtime.turn.asks import Asks
from longboat.runtime.turn.mcp_prompts import find_call
from longboat.runtime.turn.setup import TurnSetup, apply_options
from longboat.runtime.turn.traces import Traces
from longboat.runtime.workspace.browse import FileBrowser
from longboat.runtime.workspace.config_watcher import ConfigWatcher
from longboat.runtime.workspace.ledger import Ledger
from longboat.runtime.workspace.location import output_directory
from longboat.runtime.workspace.models import ModelPool
from longboat.runtime.workspace.private_files import PrivateFiles, private_rules
from longboat.runtime.workspace.project_files import ProjectFiles
from longboat.runtime.workspace.tools import WorkspaceTools
from longboat.store.protocol import Entry, Store, Unit
from longboat.store.records import RunRecord
from longboat.tasks import Tasks
from longboat.tools.mcp.logins import Logins
from longboat.tools.process.output_files import OutputFiles
from longboat.tools.protocol import Tool
from longboat.tools.sandbox.sandbox import sandbox_warning
from longboat.wire.events import Change
from longboat.wire.requests import Approve
from longboat.wire.tools import Effect

NOWHERE = "away"
"""In the data directory. Never made."""


class Services:
    def __init__(
        self,
        workspace_id: str,
        directory: Path,
        *,
        away: bool,
        shared_trust: SharedTrust | None,
        settings: Settings,
        store: Store,
        models: ModelPool,
        tools: Iterable[Tool],
        logins: Logins,
        output_files: OutputFiles,
        traces: Traces,
        host: SessionHost,
    ) -> None:
        """`away`: the directory is on another node. If this one has a directory of the same path, it is not the
        workspace's, so nothing of it is read. `shared_trust`: if other nodes have the directory, too."""
        self.host = host
        self.id = workspace_id
        self.directory = directory
        self._away = away
        self._shared_trust = shared_trust
        self.project = project = settings.data_dir / NOWHERE / workspace_id if away else directory
        """Where the project's own files are read, such as its configuration."""
        self.store = store
        self.tasks = Tasks()
        self.traces = traces
        self.asks = Asks(store, self.id, traces)
        self.archive = Archive(store, self.id, directory)
        self.ledger = Ledger(store, self.id)
        self.tools = WorkspaceTools(
            project,
            data_dir=settings.data_dir,
            scratch=output_directory(settings.data_dir) / self.id,
            config=self.config,
            logins=logins,
            output_files=output_files,
            extra=tools,
            tell=self.tell,
        )
        self.files = FileHistory(store, self.id, directory, may_change=self.tools.may_change)
        self.undo = UndoHistory(store, self.id, self.files)
        self.review = Review(store, self.id, self.files, self.undo)
        self.private_files = PrivateFiles(settings)
        self.browse = FileBrowser(
            self.id, directory, self.tools, store, self.files, rules=self.rules, private=self.private_files
        )
        self.models = models
        self.config_watcher = ConfigWatcher(project, models, self.tasks, self.tell)
        self._private = private_rules(project, settings)
        self._remembering = asyncio.Lock()

    def config(self) -> Config:
        return self.models.config(self.project)

    def check_tree(self) -> None:
        """Raise TreeAway if the directory is on another node."""
        if self._away:
            raise TreeAway(str(self.directory))

    async def model(self, name: str | None, role: ModelRole) -> Model:
        return (await self.lineup(name, role)).first()

    async def lineup(self, name: str | None, role: ModelRole) -> Lineup:
        self.check_tree()
        if not self.directory.is_dir():
            raise ModelError(f"{self.directory} no longer exists.", title="Directory not found", code="directory_gone")
        return await self.models.lineup(self.directory, name, role)

    async def model_of(self, command: Command) -> str | None:
        """Return the model that a command asks for, by its name."""
        if command.model != "small":
            return command.model if command.model != "large" else None
        model = await self.model(None, "small")
        return f"{model.provider}/{model.name}"

    def uses_mcp_prompt(self, prompt: str) -> bool:
        """Whether an MCP server is asked for the text of the prompt when its turn starts."""
        call = find_call(prompt)
        if call is None:
            return False
        try:
            return call.server in self.config().mcp
        except ConfigInvalid:
            return False

    def rules(self) -> Rules:
        section = self.config().permissions
        try:
            return Rules.parse(tools=self.tools.traits, allow=section.allow, deny=(*section.deny, *self._private))
        except RuleInvalid as error:
            raise ConfigInvalid(f"permissions: {error}") from None

    @property
    def rules_file(self) -> str:
        return rules_file(self.directory, user_dir=Path.home())

    async def remember(self, rules: tuple[str, ...]) -> None:
        async with self._remembering:  # calls that run side by side may be answered at once: no rule is lost
            added = await asyncio.to_thread(add_rules, self.directory, rules, environ=os.environ, user_dir=Path.home())
            if self._shared_trust is not None and added.trust_step is not None:
                await self._shared_trust.record_change(self.id, *added.trust_step)
            await asyncio.to_thread(added.write)

    async def follow_trust(self) -> None:
        """Trust what “always” on another node made of the project's file (G7)."""
        if self._shared_trust is not None and (steps := await self._shared_trust.changes(self.id)):
            await asyncio.to_thread(follow_trust, self.directory, steps, environ=os.environ, user_dir=Path.home())

    async def turn_setup(self, record: RunRecord, model: Model, project: ProjectFiles) -> TurnSetup:
        setup = await self.tools.turn_setup(
            project,
            model=model,
            agent=record.options.agent,
            child=record.run.parent_run_id is not None,
            plan=record.options.plan,
        )
        return apply_options(await self._warned(setup, record), record.options, model)

    async def _warned(self, setup: TurnSetup, record: RunRecord) -> TurnSetup:
        """A permission request names the sandbox. A run that was allowed everything beforehand has none: a notice
        at its start says if there is no sandbox, or only the weaker one."""
        runs_commands = any(tool.spec.traits.effect is Effect.RUNS for tool in setup.tools.values())
        if record.approve is not Approve.ALL or record.run.parent_run_id is not None or not runs_commands:
            return setup
        told = await sandbox_warning(self.tools.sandbox(self.config()))
        return replace(setup, problems=(*setup.problems, told)) if told else setup

    def is_ready(self) -> bool:
        """Whether the directory exists and its configuration can be used."""
        try:
            self.config()
        except ConfigInvalid:
            return False
        return self.project.is_dir()

    def tell(self, event: msgspec.Struct) -> None:
        """Announce something that no one waits for. If the store fails, the event is lost."""
        unit = Unit(workspace_id=self.id, entries=[Entry.of(Change.UPDATED, event)], durable=False)
        future = self.store.submit(unit)
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
