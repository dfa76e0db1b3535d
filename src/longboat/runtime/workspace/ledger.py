"""The lists of a workspace, read page by page: sessions, messages, runs, and what a run sent to models."""

from collections.abc import Sequence

import msgspec

from longboat.core.request_body import parts_of, without_attachments
from longboat.errors import BadInput, RequestNotFound, RunNotFound
from longboat.store.protocol import Store
from longboat.store.records import RequestRecord, RunRecord, UnfinishedRuns
from longboat.wire.listings import Archived, SessionOrder
from longboat.wire.model_requests import SentRequest, SentRequestBody, SentRequests
from longboat.wire.models import MessagePage, RunPage, RunState, SessionPage
from longboat.wire.plain import fold_case
from longboat.wire.statistics import SessionTimeline, SessionUsage
from longboat.wire.workspace_state import Todos


class Ledger:
    def __init__(self, store: Store, workspace_id: str) -> None:
        self._reads = store.reads
        self._workspace_id = workspace_id

    async def sessions(
        self,
        *,
        limit: int,
        after: str | None,
        search: str = "",
        top: bool = False,
        archived: Archived = Archived.LEFT_OUT,
        order: SessionOrder = SessionOrder.PINNED,
    ) -> SessionPage:
        """`search`: those whose title has these words in it. `top`: without those of sub-agents."""
        words = fold_case(search).replace("\0", "\ufffd").split()  # no store takes a NUL in a text
        items, following = await self._reads.sessions(
            self._workspace_id,
            before=page_start(after),
            limit=limit,
            words=words,
            top=top,
            archived=archived,
            order=order,
        )
        return SessionPage(items=tuple(items), next=_next(following))

    async def messages(
        self, session_id: str, *, limit: int, after: str | None = None, before: str | None = None
    ) -> MessagePage:
        if before is not None and after is not None:
            raise BadInput("Pass either after or before, not both.", code="bad_page")
        if before is not None:
            return await self._messages_before(session_id, limit=limit, before=before)
        items = await self._reads.messages(session_id, after=page_start(after) or 0, limit=limit)
        return MessagePage(items=tuple(items), next=str(items[-1].seq) if len(items) == limit else None)

    async def _messages_before(self, session_id: str, *, limit: int, before: str) -> MessagePage:
        """The end of the transcript, or what comes before a page of it; oldest first all the same."""
        found = await self._reads.messages_before(session_id, before=page_start(before or None), limit=limit + 1)
        items = found[-limit:]  # one more was read to know whether there is one
        return MessagePage(items=tuple(items), next=str(items[0].seq) if len(found) > limit else None)

    async def todos(self, session_id: str) -> Todos:
        return Todos(session_id=session_id, items=await self._reads.todos(session_id))

    async def usage(self, session_id: str) -> SessionUsage:
        return await self._reads.session_usage(self._workspace_id, session_id)

    async def timeline(self, session_id: str) -> SessionTimeline:
        return await self._reads.session_timeline(self._workspace_id, session_id)

    async def runs(self, *, state: RunState | None, session_id: str | None, limit: int, after: str | None) -> RunPage:
        """Without their places in the queue, which only memory knows."""
        items, following = await self._reads.runs(
            self._workspace_id, state=state, session_id=session_id, before=page_start(after), limit=limit
        )
        return RunPage(items=tuple(items), next=_next(following))

    async def record(self, run_id: str) -> RunRecord:
        record = await self._reads.run(self._workspace_id, run_id)
        if record is None:
            raise RunNotFound(run_id)
        return record

    async def requests(self, run_id: str) -> SentRequests:
        """What a run sent to models."""
        await self.record(run_id)
        return SentRequests(run_id=run_id, items=_sent(await self._reads.requests(self._workspace_id, run_id)))

    async def request(self, run_id: str, number: int) -> SentRequestBody:
        """One of them, with all that it said."""
        listed = (await self.requests(run_id)).items
        found = await self._reads.request_body(self._workspace_id, run_id, number)
        if found is None:
            raise RequestNotFound(run_id, number)
        body = without_attachments(msgspec.json.decode(found[1]))
        return SentRequestBody(request=listed[number - 1], body=body)

    async def unfinished(self) -> UnfinishedRuns:
        """What a crash or a restart left."""
        return await self._reads.unfinished_runs(self._workspace_id)


def _sent(records: Sequence[RequestRecord]) -> tuple[SentRequest, ...]:
    return tuple(_request(number, record) for number, record in enumerate(records, 1))


def _request(number: int, record: RequestRecord) -> SentRequest:
    facts, answer = record.facts, record.answer
    usage = answer.usage if answer is not None else None
    return SentRequest(
        number=number,
        model=facts.model,
        tool_mode=facts.tool_mode,
        summary=facts.summary,
        exact=facts.exact,
        sent_at=facts.sent_at,
        messages=record.same + len(record.messages),
        new_messages=len(record.messages),
        # Some servers count nothing, and say 0.
        parts=parts_of(facts.sizes, (usage.input_tokens or None) if usage is not None else None),
        usage=usage,
        cached_tokens=answer.cached_tokens if answer is not None and usage is not None else None,
        seconds=answer.seconds if answer is not None else None,
        stop_reason=answer.stop_reason if answer is not None else None,
        error=answer.error if answer is not None else None,
    )


def page_start(after: str | None) -> int | None:
    """The place in a list that a client got as `next`."""
    if after is None:
        return None
    if not (after.isascii() and after.isdigit() and len(after) <= 18):
        raise BadInput("This is not a position in the list. Pass the `next` of the previous page.", code="bad_page")
    return int(after)


def _next(place: int | None) -> str | None:
    return str(place) if place is not None else None
