"""Full-text search of the SQLite store: asks the index, and keeps it up to date beside all other work.

Owns the index's thread, and when it follows the log: shortly after something was committed, in slices, and before each
search. The writer and the readers of the store never wait for it.
"""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from longboat.errors import StoreDamaged, StoreUnavailable
from longboat.store.protocol import Row
from longboat.store.rows import legible_text
from longboat.store.search_text import END, MATCH, Term, parse_search, snippet_from
from longboat.store.sqlite.search_index import IndexNotMade, SearchIndex, is_index_damage
from longboat.wire.models import Role
from longboat.wire.search import SearchHit, SearchPage

logger = logging.getLogger(__name__)
T = TypeVar("T")

INDEX_NAME = "search.db"
FOLLOW_AFTER_S = 2.0
"""From a commit until the index takes it. Who searches earlier waits for it."""
SLICE_S = 0.05
"""How long the index works at a time, so that a search comes in between."""
PAUSE_S = 0.05
CATCH_UP_S = 1.0
"""How long a search waits for the index. What it could not take by then is missing, and the page says so."""
SNIPPET_WORDS = 24
NEWEST = 2**62

_HITS = f"""
SELECT documents.*, workspaces.path, sessions.title, sessions.archived,
    snippet(texts, 0, :match, :end, '…', {SNIPPET_WORDS}) AS snippet
FROM texts CROSS JOIN documents ON documents.document_id = texts.rowid
CROSS JOIN store.sessions AS sessions ON sessions.session_id = documents.session_id
CROSS JOIN store.workspaces AS workspaces ON workspaces.workspace_id = documents.workspace_id
WHERE texts MATCH :query AND texts.rowid < :before
    AND (:workspace_id IS NULL OR documents.workspace_id = :workspace_id)
    AND (documents.message_id IS NULL OR EXISTS (
        SELECT 1 FROM store.messages AS messages
        WHERE messages.message_id = documents.message_id AND messages.undone = 0))
ORDER BY texts.rowid DESC LIMIT :limit"""


class Search:
    def __init__(self, store: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._loop = loop
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-search")
        self._index: SearchIndex | None = None
        self._made_again = False
        self._closing = threading.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = False
        self._is_behind = False
        """Something was committed since the index was told to follow: what it takes may not have it."""

    # On the loop

    def committed(self) -> None:
        """Something is in the log that the index may not have."""
        self._is_behind = True
        if not self._is_due:
            self._is_due = True
            self._timer = self._loop.call_later(FOLLOW_AFTER_S, self._follow)

    async def find(self, typed: str, *, workspace_id: str | None, before: int | None, limit: int) -> SearchPage:
        """See `longboat.store.reads.Reads.search`."""
        terms = parse_search(typed)
        if not terms:
            return SearchPage(items=())
        params = {
            "query": match_expression(terms),
            "workspace_id": workspace_id,
            "before": NEWEST if before is None else before,
            "limit": limit,
        }
        return await self._loop.run_in_executor(self._thread, self._attempt, lambda index: _find(index, params))

    async def aclose(self) -> None:
        self._closing.set()
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.to_thread(self._thread.shutdown)
        if self._index is not None:
            self._index.close()

    def _follow(self) -> None:
        if not self._closing.is_set():
            self._is_behind = False
            following = self._loop.run_in_executor(self._thread, self._attempt, self._take_slice)
            following.add_done_callback(self._followed)

    def _followed(self, following: "asyncio.Future[bool]") -> None:
        if self._closing.is_set() or following.cancelled():
            return
        error = following.exception()
        if error is not None:
            logger.warning("the search index is left as it is for now: %s", error)
        elif not following.result() or self._is_behind:
            self._timer = self._loop.call_later(FOLLOW_AFTER_S if following.result() else PAUSE_S, self._follow)
            return
        self._is_due = False

    # On the thread

    def _take_slice(self, index: SearchIndex) -> bool:
        return index.catch_up(for_s=SLICE_S, give_up=self._closing.is_set)

    def _attempt(self, work: Callable[[SearchIndex], T]) -> T:
        """With the index, which is made again once if it is damaged: the second time it may be the store that is."""
        try:
            if self._index is None:
                self._index = SearchIndex(self._store.parent / INDEX_NAME, self._store)
            try:
                return work(self._index)
            except sqlite3.DatabaseError as error:
                if not is_index_damage(error) or self._made_again:
                    raise
                logger.warning("the search index is damaged and is made again: %s", error)
                self._made_again = True
                self._index.make_again()
                return work(self._index)
        except (IndexNotMade, OSError) as error:  # the next search tries again
            self._index = None
            raise StoreUnavailable(f"Search is not available: {error}.") from error
        except sqlite3.Error as error:
            if is_index_damage(error):
                raise StoreDamaged(str(error)) from error
            raise StoreUnavailable(f"Search is not available: {error}.") from error


def match_expression(terms: Sequence[Term]) -> str:
    """In the words of FTS5. In quotes nothing has a meaning but the quote itself, which no term has."""
    return " AND ".join(f'"{term.text}"{"*" if term.prefix else ""}' for term in terms)


def _find(index: SearchIndex, params: Mapping[str, str | int | None]) -> SearchPage:
    complete = index.catch_up(for_s=CATCH_UP_S)
    rows = index.connection.execute(_HITS, {**params, "match": MATCH, "end": END}).fetchall()
    following = str(rows[-1]["document_id"]) if len(rows) == params["limit"] else None
    return SearchPage(items=tuple(map(_hit, rows)), next=following, complete=complete)


def _hit(row: Row) -> SearchHit:
    return SearchHit(
        workspace_id=row["workspace_id"],
        workspace_path=legible_text(row["path"]),
        session_id=row["session_id"],
        session_title=legible_text(row["title"]),
        archived=bool(row["archived"]),
        message_id=row["message_id"],
        role=Role(row["role"]) if row["role"] is not None else None,
        at=row["at"],
        snippet=snippet_from(legible_text(row["snippet"])),
    )
