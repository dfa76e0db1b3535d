"""Full-text search in PostgreSQL: asks the index, and keeps it up to date beside all other work.

Triggers queue what changed, in the transaction that changed it. What is queued is put into the index shortly after a
commit, and before each search. Words are split and folded here, not by PostgreSQL, whose rules depend on how it was
installed: what SQLite finds is found here too.
"""

import asyncio
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import asyncpg

from longboat.errors import SessionDamaged, StoreUnavailable
from longboat.store.postgres.statements import is_lost
from longboat.store.protocol import Row
from longboat.store.rows import message_from_row
from longboat.store.search_text import END, MATCH, Term, one_line, parse_search, searchable_text, snippet_from
from longboat.tasks import Tasks
from longboat.wire.models import Role
from longboat.wire.search import SearchHit, SearchPage

logger = logging.getLogger(__name__)

FOLLOW_AFTER_S = 2.0
"""How long after a commit the index takes it. A search before that waits for it."""
SLICE = 100
"""Changes that one transaction takes."""
CATCH_UP_S = 1.0
"""How long a search waits for the index. What it could not take by then is missing, and the page says so."""
SNIPPET_WORDS = 24
NEWEST = 2**62
MAX_WORD = 500
"""Characters; PostgreSQL takes no word of more than 2 KB."""
MAX_PLACE = 16_383
"""The last place in a text that PostgreSQL keeps; words behind it are found, but in no phrase."""
MAX_VECTOR = 500_000
"""Bytes of all different words of a text; PostgreSQL takes about a million. Words behind them are not found."""
MAX_PLACES = 200
"""Of one word in one text; it keeps no more than 255."""

Borrow = Callable[[], AbstractAsyncContextManager[Any]]

_WORD = re.compile(r"[^\W_]+")

_TAKE = """
DELETE FROM search_queue WHERE place IN (SELECT place FROM search_queue ORDER BY place LIMIT $1 FOR UPDATE SKIP LOCKED)
RETURNING place, session_id, message_id"""
_MESSAGE = """
SELECT messages.*, sessions.workspace_id FROM messages JOIN sessions USING (session_id)
WHERE message_id = $1 AND parent_id IS NULL"""
_TITLE = "SELECT workspace_id, title, updated_at FROM sessions WHERE session_id = $1 FOR SHARE"
_PUT = """
INSERT INTO documents (workspace_id, session_id, message_id, role, at, text, words)
VALUES ($1, $2, $3, $4, $5, $6, $7::text::tsvector)
ON CONFLICT (message_id) DO UPDATE SET text = excluded.text, words = excluded.words"""
_WAITS = "SELECT EXISTS (SELECT 1 FROM search_queue)"
_HITS = """
SELECT documents.*, workspaces.path, sessions.title, sessions.archived
FROM {found} JOIN sessions USING (session_id) JOIN workspaces ON workspaces.workspace_id = documents.workspace_id
    LEFT JOIN messages USING (message_id)
WHERE words @@ $1::text::tsquery AND ($3::text IS NULL OR documents.workspace_id = $3::text)
    AND (documents.message_id IS NULL OR messages.undone = 0)
ORDER BY document_id DESC LIMIT $4"""
# A word that is in many texts is in some of the newest; the index would have to sort all of them.
_NEWEST_HITS = _HITS.format(
    found="(SELECT * FROM documents WHERE document_id < $2 ORDER BY document_id DESC LIMIT 500) AS documents"
)
_ALL_HITS = _HITS.format(
    found="(SELECT document_id FROM documents WHERE words @@ $1::text::tsquery AND document_id < $2"
    " ORDER BY document_id DESC OFFSET 0) AS hits JOIN documents USING (document_id)"
)


class PostgresSearch:
    def __init__(self, borrow: Borrow, tasks: Tasks) -> None:
        """`borrow` lends a connection."""
        self._borrow = borrow
        self._tasks = tasks
        self._following: asyncio.Task[None] | None = None
        self._taking = asyncio.Lock()

    def committed(self) -> None:
        """Update the index: something was committed that it may not have."""
        if self._following is None or self._following.done():
            self._following = self._tasks.spawn(self._follow(), name="search index")

    async def find(self, typed: str, *, workspace_id: str | None, before: int | None, limit: int) -> SearchPage:
        """See `longboat.store.reads.Reads.search`."""
        terms = parse_search(typed)
        if not terms:
            return SearchPage(items=())
        complete = await self._catch_up()
        end = NEWEST if before is None else before
        async with self._borrow() as connection:
            wanted = match_expression(terms), end, workspace_id, limit
            rows = await connection.fetch(_NEWEST_HITS, *wanted)
            if len(rows) < limit:
                rows = await connection.fetch(_ALL_HITS, *wanted)
        following = str(rows[-1]["document_id"]) if len(rows) == limit else None
        return SearchPage(items=tuple(_hit(row, terms) for row in rows), next=following, complete=complete)

    async def aclose(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])

    async def _follow(self) -> None:
        await asyncio.sleep(FOLLOW_AFTER_S)
        try:
            while await self._take_slice():
                pass
        except StoreUnavailable as error:
            logger.warning("the search index is left as it is for now: %s", error)

    async def _catch_up(self) -> bool:
        """Whether everything is in the index."""
        try:
            async with asyncio.timeout(CATCH_UP_S):
                while await self._take_slice():
                    pass
        except TimeoutError:
            return False
        return True

    async def _take_slice(self) -> bool:
        """Whether there may be more."""
        async with self._taking, self._borrow() as connection:
            if not await connection.fetchval(_WAITS):
                return False
            async with connection.transaction():
                # A crash that loses this also brings back what was queued.
                await connection.execute("SET LOCAL synchronous_commit = off")
                rows = await connection.fetch(_TAKE, SLICE)
                changed = dict.fromkeys(
                    (row["session_id"], row["message_id"]) for row in sorted(rows, key=lambda row: row["place"])
                )
                for session_id, message_id in changed:
                    await self._put(connection, session_id, message_id)
            return len(rows) == SLICE

    async def _put(self, connection: Any, session_id: str, message_id: str | None) -> None:
        """Put a text into the index, in a savepoint: one that it refuses loses its own words, and no others."""
        try:
            async with connection.transaction():
                if message_id is None:
                    await _put_title(connection, session_id)
                else:
                    await _put_message(connection, message_id)
        except asyncpg.PostgresError as error:
            if is_lost(error):
                raise
            logger.warning("a text of session %s is left out of the search index: %s", session_id, error)


async def _put_message(connection: Any, message_id: str) -> None:
    row = await connection.fetchrow(_MESSAGE, message_id)
    if row is None:
        return
    try:
        message = message_from_row(row)
    except SessionDamaged:  # it costs this message, and no other (D12)
        return
    if text := searchable_text(message):
        where = row["workspace_id"], message.session_id, message.id, message.role.value
        await connection.execute(_PUT, *where, message.created_at, text, word_vector(text))
    else:
        await connection.execute("DELETE FROM documents WHERE message_id = $1", message_id)


async def _put_title(connection: Any, session_id: str) -> None:
    row = await connection.fetchrow(_TITLE, session_id)
    if row is None:
        return
    await connection.execute("DELETE FROM documents WHERE session_id = $1 AND message_id IS NULL", session_id)
    if text := one_line(row["title"]):
        where = row["workspace_id"], session_id, None, None
        await connection.execute(_PUT, *where, row["updated_at"], text, word_vector(text))


# Words


def fold_word(word: str) -> str:
    """The text without case and accents."""
    if word.isascii():  # most are
        return word.lower()[:MAX_WORD]
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join(char for char in parts if not unicodedata.combining(char))[:MAX_WORD]


def words_in(text: str) -> Iterator[tuple[str, int, int]]:
    """The folded words of a text, and where each begins and ends."""
    # A combining accent behind a letter belongs to its word.
    for found in _WORD.finditer(unicodedata.normalize("NFC", text)):
        yield fold_word(found[0]), *found.span()


def word_vector(text: str) -> str:
    """A tsvector, as text."""
    places: dict[str, list[int]] = {}
    size = 0
    for place, (word, _, _) in enumerate(words_in(text), 1):
        if word not in places:
            size += len(word.encode())
            if size > MAX_VECTOR:
                break
        known = places.setdefault(word, [])
        if len(known) < MAX_PLACES:
            known.append(min(place, MAX_PLACE))
    return " ".join(f"'{word}':{','.join(map(str, dict.fromkeys(known)))}" for word, known in places.items() if word)


def match_expression(terms: Sequence[Term]) -> str:
    """A tsquery, as text. Words have neither quotes nor backslashes."""
    return " & ".join(f"({phrase})" for term in terms if (phrase := _phrase(term)))


def _phrase(term: Term) -> str:
    words = [word for word, _, _ in words_in(term.text) if word]
    quoted = [f"'{word}'" for word in words]
    if term.prefix and quoted:
        quoted[-1] += ":*"
    return " <-> ".join(quoted)


# Hits


def _hit(row: Row, terms: Sequence[Term]) -> SearchHit:
    return SearchHit(
        workspace_id=row["workspace_id"],
        workspace_path=row["path"],
        session_id=row["session_id"],
        session_title=row["title"],
        archived=row["archived"],
        message_id=row["message_id"],
        role=Role(row["role"]) if row["role"] is not None else None,
        at=row["at"],
        snippet=snippet_from(mark_matches(row["text"], terms)),
    )


def mark_matches(text: str, terms: Sequence[Term]) -> str:
    """A stretch of the text around the first match, with all matches in it marked."""
    text = unicodedata.normalize("NFC", text)
    words = list(words_in(text))
    spans = sorted({span for term in terms for span in _matches(words, term)})
    if not spans:
        spans = [(0, 0)]
    first = max(0, min(spans[0][0] - SNIPPET_WORDS // 4, len(words) - SNIPPET_WORDS))
    shown = words[first : first + SNIPPET_WORDS]
    if not shown:
        return text
    start = 0 if first == 0 else shown[0][1]
    stop = len(text) if first + SNIPPET_WORDS >= len(words) else shown[-1][2]
    pieces = ["" if start == 0 else "…"]
    at = start
    for begin, end in spans:
        if begin == end or begin < first or end > first + len(shown) or words[begin][1] < at:
            continue
        pieces += (text[at : words[begin][1]], MATCH, text[words[begin][1] : words[end - 1][2]], END)
        at = words[end - 1][2]
    pieces += (text[at:stop], "" if stop == len(text) else "…")
    return "".join(pieces)


def _matches(words: Sequence[tuple[str, int, int]], term: Term) -> Iterator[tuple[int, int]]:
    """Where the term stands, by the numbers of its words."""
    wanted = [word for word, _, _ in words_in(term.text) if word]
    if not wanted:
        return
    *before, last = wanted
    for end in range(len(before), len(words)):
        word = words[end][0]
        if word == last or (term.prefix and word.startswith(last)):
            begin = end - len(before)
            if [word for word, _, _ in words[begin:end]] == before:
                yield begin, end + 1
