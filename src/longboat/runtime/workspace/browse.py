"""A workspace's files for clients: its directories, matching file names, texts, and the changes of its sessions.

Only reads, with limits, and never outside the workspace.
"""

import asyncio
import heapq
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from longboat.errors import BadInput, RunNotFound, SessionNotFound
from longboat.permissions.verdict import Rules, hidden_by
from longboat.runtime.archive.net_changes import net_changes, unified_diff
from longboat.runtime.session.file_history import FileHistory
from longboat.runtime.workspace.private_files import PrivateFiles
from longboat.runtime.workspace.tools import WorkspaceTools
from longboat.store.protocol import Store
from longboat.store.records import FileChangeRecord
from longboat.tools.context import ToolError
from longboat.tools.files.file_io import open_file
from longboat.tools.files.paths import Target, printable, resolve
from longboat.tools.files.text import NotText, decode
from longboat.tools.search.ripgrep import Output, ask
from longboat.tools.search.tree import Tree
from longboat.wire.listings import DiffPage, FileDiff, FileEntry, FileKind, FilePage, FoundPage
from longboat.wire.plain import fold_case
from longboat.wire.review import FileText

MAX_ENTRIES = 1_000
MAX_LOOKED_AT = 20_000
"""Maximum number of names from one directory."""
MAX_FILES = 200_000
"""Maximum number of files whose names are searched."""
MAX_TEXT = 400_000
"""Maximum number of bytes shown of a file."""
MAX_DIFFS = 500
MAX_DIFF_TEXT = 4_000_000
"""Characters of all diffs of an answer."""
FRESH_S = 3.0
"""How long a list of all files is reused: while a person types, every letter is a new query."""


class FileBrowser:
    def __init__(
        self,
        workspace_id: str,
        directory: Path,
        tools: WorkspaceTools,
        store: Store,
        files: FileHistory,
        *,
        rules: Callable[[], Rules],
        private: PrivateFiles,
    ) -> None:
        self._workspace_id = workspace_id
        self._directory = directory
        self._tools = tools
        self._store = store
        self._files = files
        self._rules = rules
        self._private = private
        self._listing = asyncio.Lock()
        self._names: list[str] = []
        self._complete = True
        self._listed_at = float("-inf")

    @property
    def environ(self) -> Mapping[str, str]:
        return self._tools.environ

    # A directory

    async def files(self, path: str, *, everything: bool) -> FilePage:
        return await asyncio.to_thread(self._files_in, path, everything)

    def _files_in(self, path: str, everything: bool) -> FilePage:
        found, shown = self._directory_at(path)
        tree = Tree(root=str(found), hidden=everything, ignored=everything)
        entries = tree.entries(str(found), tree.rules(), most=MAX_LOOKED_AT)
        prefix = "" if shown == "." else f"{shown}/"
        items = tuple(_entry(entry, prefix) for entry in entries[:MAX_ENTRIES])
        return FilePage(path=shown, items=items, complete=len(entries) <= MAX_ENTRIES)

    def _directory_at(self, path: str) -> tuple[Path, str]:
        target = self._target(path)
        if not target.path.is_dir():
            raise BadInput(f"{target.shown} is not a directory.", code="path_not_directory")
        return target.path, target.shown

    def _target(self, path: str) -> Target:
        try:
            target = resolve(self._directory, path)
        except ToolError as error:
            raise BadInput(str(error), code="bad_path") from None
        if not target.inside:
            raise BadInput(f"{printable(path)} is outside the workspace.", code="path_outside")
        if not target.path.exists():
            raise BadInput(f"{target.shown} does not exist.", code="path_not_found")
        return target

    # A file

    async def text(self, path: str) -> FileText:
        """For a person to look at: what a rule hides from the agent is not shown here either."""
        hidden = self._private.hidden_with(hidden_by(self._rules(), directory=str(self._directory)))
        return await asyncio.to_thread(self._text_of, path, hidden)

    def _text_of(self, path: str, hidden: Callable[[str], bool]) -> FileText:
        target = self._target(path)
        if hidden(str(target.path)):
            raise BadInput(f"A permission rule hides {target.shown}.", code="path_hidden")
        try:
            with os.fdopen(open_file(target), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                content = file.read(MAX_TEXT + 1)
        except (ToolError, OSError) as error:
            raise BadInput(str(error), code="path_not_file") from None
        whole = len(content) <= MAX_TEXT
        try:
            # Cut at a line's end, because half a character would make it look like another encoding.
            text = decode(content if whole else content[: content.rfind(b"\n", 0, MAX_TEXT) + 1]).content
        except NotText as error:
            raise BadInput(f"{target.shown} is not a text file ({error.kind}).", code="path_not_text") from None
        return FileText(path=target.shown, text=text, size=size, complete=whole)

    # Names

    async def search(self, query: str, *, limit: int) -> FoundPage:
        """Files whose path holds the query, or at least its letters in order."""
        names = await self._all_names()
        best = await asyncio.to_thread(best_of, query, names, limit + 1)
        return FoundPage(items=tuple(best[:limit]), complete=self._complete and len(best) <= limit)

    async def _all_names(self) -> list[str]:
        async with self._listing:  # who waits here is served by the same list
            if time.monotonic() - self._listed_at > FRESH_S:
                try:
                    output = await ask(self, self._directory, "--files", "--null", mark=b"\0", most=MAX_FILES)
                except ToolError as error:
                    raise BadInput(str(error), code="search_failed") from None
                self._names = await asyncio.to_thread(_names_in, output)
                self._complete = not output.stopped
                self._listed_at = time.monotonic()
            return self._names

    # Changes

    async def diff(self, *, session_id: str | None, run_id: str | None) -> DiffPage:
        if (session_id is None) == (run_id is None):
            raise BadInput("Pass either session_id or run_id.", code="bad_diff")
        found = await self._store.reads.changes(self._workspace_id, session_id=session_id, run_id=run_id)
        if found is None:
            raise RunNotFound(run_id) if run_id is not None else SessionNotFound(session_id or "")
        return await asyncio.to_thread(self._diffs, *found)

    def _diffs(self, session_id: str, changes: Sequence[FileChangeRecord]) -> DiffPage:
        stretches = net_changes((change.path, change.before, change.after) for change in changes)
        items, room = [], MAX_DIFF_TEXT
        for stretch in stretches[:MAX_DIFFS]:
            change, told = self._files.event(session_id, "", Path(stretch.path), stretch.before, stretch.after)
            text, whole = unified_diff(stretch, told.path) if room > 0 else ("", False)
            room -= len(text)
            items.append(
                FileDiff(
                    path=printable(told.path),
                    change=change,
                    additions=told.additions,
                    deletions=told.deletions,
                    diff=text,
                    complete=whole,
                )
            )
        return DiffPage(items=tuple(items), complete=len(stretches) <= MAX_DIFFS)


def _entry(entry: os.DirEntry[str], prefix: str) -> FileEntry:
    kind, size = FileKind.OTHER, None
    if entry.is_symlink():
        kind = FileKind.LINK
    elif entry.is_dir(follow_symlinks=False):
        kind = FileKind.DIRECTORY
    elif entry.is_file(follow_symlinks=False):
        kind = FileKind.FILE
        try:
            size = entry.stat(follow_symlinks=False).st_size
        except OSError:  # gone since
            size = None
    name = printable(entry.name)
    return FileEntry(name=name, path=prefix + name, kind=kind, size=size)


def _names_in(output: Output) -> list[str]:
    *names, _ = os.fsdecode(output.content).split("\0")
    return [printable(name.removeprefix("./")) for name in names[:MAX_FILES]]


def best_of(query: str, paths: Sequence[str], limit: int) -> list[str]:
    """The paths that match best. Small letters match large ones too."""
    wanted = fold_case(query)
    ranked = ((place, len(path), path) for path in paths if (place := _place(wanted, fold_case(path))) is not None)
    return [path for _, _, path in heapq.nsmallest(limit, ranked)]


def _place(wanted: str, path: str) -> int | None:
    """How well a path matches, 0 best; None: not at all."""
    name = path.rpartition("/")[2]
    if wanted in path:
        return next(
            (place for place, fits in enumerate((name == wanted, name.startswith(wanted), wanted in name)) if fits), 3
        )
    letters = iter(path)
    return 4 if all(letter in letters for letter in wanted) else None
