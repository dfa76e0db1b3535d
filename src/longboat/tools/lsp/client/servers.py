"""The language servers of one workspace (B7): chosen by file, started when needed, ended with the workspace.

    servers = LanguageServers(directory, config.lsp, environ=environ, programs=jobs.programs)
    text = await servers.diagnostics_after(path, "new content")
    await servers.aclose()

`check.py` collects their diagnostics. Must not know tools or permissions.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from longboat.tasks import Tasks
from longboat.tools.context import ToolError
from longboat.tools.files.paths import display_path
from longboat.tools.lsp.client import check
from longboat.tools.lsp.client.file_text import MAX_CHARACTERS, read_text
from longboat.tools.lsp.client.server import Server, Timeouts
from longboat.tools.lsp.client.server_specs import ServerSpec, server_specs
from longboat.tools.lsp.client.settings import read
from longboat.tools.lsp.client.slot import ServerSlot, ServerStatus
from longboat.tools.lsp.client.snapshot import Snapshot
from longboat.tools.process.programs import Programs
from longboat.tools.search.tree import Tree

MAX_ROOTS = 4
"""Roots of one server; what more there are share the workspace's own."""
MAX_LOOKED_AT = 5_000
"""Files that are looked at before the workspace is taken to have some for its servers."""

_CAN = {
    "definition_provider": "find definitions",
    "references_provider": "find references",
    "document_symbol_provider": "list the symbols of a file",
    "workspace_symbol_provider": "find symbols by name",
    "rename_provider": "rename",
}


class LanguageServers:
    """`section` is the `lsp` section of longboat.json (raises ConfigInvalid); `on_change` is called whenever a server
    starts, is ready, crashes or stops."""

    def __init__(
        self,
        directory: Path,
        section: Mapping[str, Any] = MappingProxyType({}),
        *,
        environ: Mapping[str, str],
        programs: Programs,
        on_change: Callable[[ServerStatus], None] | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self.directory = directory
        self.timeouts = timeouts or Timeouts()
        self._environ = environ
        self._programs = programs
        self._on_change = on_change or (lambda _: None)
        self._specs = server_specs(read(section), environ)
        self._slots: dict[tuple[str, Path], ServerSlot] = {}
        self._warming = Tasks()
        self._closing = False
        self._found_files = False

    @property
    def statuses(self) -> tuple[ServerStatus, ...]:
        """The servers that were needed so far, and how they are."""
        return tuple(slot.status for slot in self._slots.values())

    def find_files(self, look_at: Callable[[str], None] = lambda _: None) -> bool:
        """Whether the workspace has a file for any of the servers. Reads the disk: call it off the event loop. Calls
        `look_at` with each directory before it is read."""
        if not self._found_files and self._specs:
            self._found_files = self._find_file(look_at)
        return self._found_files

    def warm(self, path: Path) -> None:
        """Start what the file will need, without waiting: for a file that was just read and may soon be edited."""
        if self._takes(path) and not self._closing:
            self._warming.spawn(self._warm(path), name=f"warm up for {path.name}")

    async def diagnostics_after(self, path: Path, text: str) -> str:
        """What the servers say of a file that was just changed to `text`, and of files that broke by it: a few lines
        for the model, or nothing. Bounded; never raises for what a server does."""
        if not self._takes(path) or len(text) > MAX_CHARACTERS:
            return ""
        try:
            slots = await self._slots_of(path)
        except ToolError:
            return ""
        findings = await asyncio.gather(*(check.after_change(each, path, text, self.timeouts) for each in slots))
        return check.describe_findings(findings, path, self.display_path)

    async def check_file(self, path: Path, text: str) -> check.Report:
        """What the servers say of one file. A ToolError if none of them works."""
        slots = await self._slots_of(path)
        self._require(slots, path)
        return await check.one_file(slots, path, text)

    async def check_files(self, below: Path) -> check.Report:
        """What the servers say of the files below a directory; of many files, of those that changed last."""
        found = await asyncio.to_thread(self._files, below)
        if not found:
            raise ToolError(f"No configured language server supports any file type in {self.display_path(below)}.")
        work: dict[ServerSlot, list[Path]] = {}
        for path in found[: check.MAX_SWEPT]:
            for slot in await self._slots_of(path):
                work.setdefault(slot, []).append(path)
        return await check.many_files(work, below, files=len(found))

    async def serving(self, path: Path, text: str, offer: str) -> Server:
        """A server that knows the file as `text`, everything else as it is on disk, and offers what is needed: the name
        of a capability. A ToolError if there is none."""
        slots = await self._slots_of(path)
        self._require(slots, path)
        server = (await self._offering(slots, offer))[0]
        await server.refresh()
        server.documents.put(path, text)
        return server

    async def serving_all(self, offer: str) -> list[Server]:
        """The servers for everything that is in the workspace."""
        found = await asyncio.to_thread(self._files, self.directory)
        kinds = {path.suffix.lower(): path for path in found}
        slots = {slot: None for path in kinds.values() for slot in await self._slots_of(path)}
        running = {slot: None for slot in self._slots.values() if slot.running is not None}
        if not slots | running:
            raise ToolError("No configured language server supports any file type in the workspace. Use grep instead.")
        servers = await self._offering(slots | running, offer)
        await asyncio.gather(*(server.refresh() for server in servers))
        return servers

    async def aclose(self) -> None:
        """End all servers of this workspace, and what they started."""
        self._closing = True
        await self._warming.aclose()
        await asyncio.gather(*(slot.aclose() for slot in self._slots.values()))

    def display_path(self, path: Path) -> str:
        return display_path(self.directory, path)

    def _takes(self, path: Path) -> bool:
        """Whether the file is one of the workspace that some server takes."""
        return path.is_relative_to(self.directory) and any(spec.takes(path) for spec in self._specs)

    def _require(self, slots: Iterable[ServerSlot], path: Path) -> None:
        if not slots:
            raise ToolError(
                f"No language server is set up for {path.suffix or 'such'} files. Use grep and view instead; "
                "the user can install one, or add it to the lsp section of longboat.json."
            )

    async def _offering(self, slots: Iterable[ServerSlot], offer: str) -> list[Server]:
        """Those that work and offer it; a ToolError if there is none."""
        names, problems, servers = [], [], []
        for slot in slots:
            try:
                server = await slot.server()
            except ToolError as problem:
                problems.append(problem)
                continue
            names.append(server.name)
            if getattr(server.capabilities, offer):
                servers.append(server)
        if servers:
            return servers
        if problems:
            raise problems[0]
        raise ToolError(f"{' and '.join(names)} cannot {_CAN[offer]}. Use grep and view instead.")

    async def _slots_of(self, path: Path) -> list[ServerSlot]:
        takers = [spec for spec in self._specs if spec.takes(path)]
        roots = await asyncio.to_thread(lambda: [spec.root_of(path, self.directory) for spec in takers])
        if self._closing:
            raise ToolError("The workspace is closing, so no language server can be used.")
        return [self._slot_for(spec, root) for spec, root in zip(takers, roots, strict=True)]

    def _slot_for(self, spec: ServerSpec, root: Path) -> ServerSlot:
        roots = [known for name, known in self._slots if name == spec.name]
        if root not in roots and len(roots) >= MAX_ROOTS:
            root = self.directory
        if root not in roots:
            self._slots[spec.name, root] = ServerSlot(
                spec,
                root,
                environ=self._environ,
                programs=self._programs,
                timeouts=self.timeouts,
                on_change=self._on_change,
            )
        return self._slots[spec.name, root]

    def _find_file(self, look_at: Callable[[str], None]) -> bool:
        """True also where there is too much to look through."""
        for seen, entry in enumerate(Tree(root=str(self.directory)).files(look_at)):
            if seen >= MAX_LOOKED_AT or any(spec.takes(Path(entry.path)) for spec in self._specs):
                return True
        return False

    def _files(self, below: Path) -> list[Path]:
        types = frozenset(suffix for spec in self._specs for suffix in spec.file_types)
        snapshot = Snapshot(below, types, ())
        snapshot.refresh()
        return snapshot.newest()

    async def _warm(self, path: Path) -> None:
        with suppress(ToolError):  # requests say why it does not work
            for slot in await self._slots_of(path):
                server = await slot.server()
                await server.refresh()
                server.documents.put(path, await asyncio.to_thread(read_text, path))
