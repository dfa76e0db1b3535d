"""The diagnostics that one server has published: how recent they are, and which are new. Does not know servers.

Time here is a count of publications: it orders events independently of the clock.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from longboat.tools.lsp.client.documents import Document
from longboat.tools.lsp.client.json_rpc import ServerGone
from longboat.tools.lsp.client.shapes import Diagnostic

ERROR, WARNING = 1, 2
MAX_FILES = 5_000
"""Files that a server may say something of."""


class Source(StrEnum):
    PUSHED = "pushed"
    PULLED = "pulled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    items: tuple[Diagnostic, ...]
    version: int | None
    at: int


@dataclass(slots=True)
class _Page:
    """The diagnostics of one file, by how they were delivered: some servers use both ways."""

    entries: dict[Source, Entry] = field(default_factory=dict)

    def items(self) -> tuple[Diagnostic, ...]:
        return tuple(dict.fromkeys(item for entry in self.entries.values() for item in entry.items))


class DiagnosticsStore:
    def __init__(self) -> None:
        self._pages: dict[Path, _Page] = {}
        self._count = 0
        self._changed = asyncio.Event()
        self._busy: set[int | str] = set()
        self._known: dict[Path, Counter[str]] | None = None
        self._gone: str | None = None

    def clock(self) -> int:
        return self._count

    def publish(self, path: Path, items: Iterable[Diagnostic], *, source: Source, version: int | None = None) -> None:
        self._count += 1
        if path in self._pages or len(self._pages) < MAX_FILES:
            entry = Entry(items=tuple(items), version=version, at=self._count)
            self._pages.setdefault(path, _Page()).entries[source] = entry
        self._tell()

    def forget(self, path: Path) -> None:
        """The file is not there any more."""
        self._pages.pop(path, None)

    def of(self, path: Path) -> tuple[Diagnostic, ...]:
        page = self._pages.get(path)
        return page.items() if page is not None else ()

    def all(self) -> Mapping[Path, tuple[Diagnostic, ...]]:
        return {path: page.items() for path, page in self._pages.items()}

    def progress(self, token: int | str, *, ended: bool) -> None:
        """The server started or ended background work."""
        if ended:
            self._busy.discard(token)
        else:
            self._busy.add(token)
        self._tell()

    def give_up_on_progress(self) -> None:
        """Work that never ends is not waited for again."""
        self._busy.clear()

    async def wait_idle(self) -> None:
        await self._wait(lambda: not self._busy)

    async def wait_fresh(self, path: Path, document: Document) -> None:
        """Wait until the server has said something of this version of the document."""
        await self._wait(lambda: self._is_fresh(path, document))

    async def wait_other(self, path: Path, items: tuple[Diagnostic, ...]) -> None:
        """Wait until something else than this is said of a file."""
        await self._wait(lambda: self.of(path) != items)

    async def wait_quiet(self, quiet_s: float) -> None:
        """Wait until the server does nothing and has said nothing more for a while."""
        while True:
            await self.wait_idle()
            try:
                await asyncio.wait_for(self._changed.wait(), quiet_s)
            except TimeoutError:
                return

    def take_news(self, open_paths: Iterable[Path]) -> dict[Path, tuple[Diagnostic, ...]]:
        """The errors that came since this was last called, by file.

        The first call only learns what was wrong all along; and so it is with a file that was opened since, of which a
        server may say for the first time what was always wrong with it.
        """
        before, opened = self._known, set(open_paths)
        now = {path: [item for item in page.items() if is_error(item)] for path, page in self._pages.items()}
        self._known = {path: Counter(map(_describe_item, items)) for path, items in now.items()}
        if before is None:
            return {}
        looked_at = {path: items for path, items in now.items() if path in before or path not in opened}
        news = {path: tuple(_added(items, before.get(path, Counter()))) for path, items in looked_at.items()}
        return {path: items for path, items in news.items() if items}

    @property
    def has_baseline(self) -> bool:
        return self._known is not None

    def _is_fresh(self, path: Path, document: Document) -> bool:
        page = self._pages.get(path)
        return page is not None and any(
            entry.at > document.sent_at if entry.version is None else entry.version >= document.version
            for entry in page.entries.values()
        )

    def close(self, reason: str) -> None:
        """The server is gone: wake everyone who is waiting for it."""
        self._gone = reason
        self._tell()

    async def _wait(self, condition: Callable[[], bool]) -> None:
        while not condition():
            if self._gone is not None:
                raise ServerGone(self._gone)
            await self._changed.wait()

    def _tell(self) -> None:
        # Those who wait hold this event; the next wait takes the new one.
        self._changed.set()
        self._changed = asyncio.Event()


def is_error(item: Diagnostic) -> bool:
    return (item.severity or ERROR) == ERROR


def is_serious(item: Diagnostic) -> bool:
    """An error or a warning: hints are for editors."""
    return (item.severity or ERROR) <= WARNING


def _describe_item(item: Diagnostic) -> str:
    # Without its line: an error that only moved is not new.
    return f"{item.code} {item.message}"


def _added(items: list[Diagnostic], before: Counter[str]) -> Iterable[Diagnostic]:
    left = before.copy()
    for item in items:
        left[_describe_item(item)] -= 1
        if left[_describe_item(item)] < 0:
            yield item
