"""Records what a turn sends to models, so that people can see it.

Owns what was sent last: the next request is stored as what differs from it. Must not know providers or retries.
"""

import asyncio
import time
from dataclasses import dataclass
from itertools import takewhile

from longboat.core.request_body import digest_of, measure_frame, measure_message, take_apart
from longboat.core.turn import plausible
from longboat.errors import ModelError
from longboat.models.failover import name_of
from longboat.models.protocol import Finished, Model, Sent
from longboat.runtime.clock import now
from longboat.runtime.turn.outbox import Outbox
from longboat.store.changes import add_request, end_request, put_request_piece
from longboat.store.records import RequestAnswer, RequestFacts, RequestRecord
from longboat.wire.ids import new_id
from longboat.wire.model_requests import PartName
from longboat.wire.models import Run

SENT_AGAIN = "Longboat sent the request again in another form."


@dataclass(frozen=True, slots=True)
class _Message:
    content: bytes
    digest: bytes
    part: PartName
    size: int


@dataclass(frozen=True, slots=True)
class _Noted:
    sent: Sent
    model: Model
    summary: bool
    sent_at: str
    sent_s: int
    clock_s: float


class SentRequests:
    def __init__(self, run: Run, outbox: Outbox) -> None:
        self._run = run
        self._outbox = outbox
        self._messages: list[_Message] = []
        self._open = ""
        """The id of the request that has no answer yet."""
        self._sent_at = 0.0
        self._noted: _Noted | None = None
        """What is not recorded yet."""

    def begin(self, sent: Sent, model: Model, *, summary: bool) -> None:
        """Note what is about to be sent. It is recorded once the turn waits for the answer: nothing may delay it."""
        self._record()
        self._noted = _Noted(sent, model, summary, sent_at=now(), sent_s=int(time.time()), clock_s=time.monotonic())
        asyncio.get_running_loop().call_soon(self._record)

    def _record(self) -> None:
        noted, self._noted = self._noted, None
        if noted is None:
            return
        if self._open:
            self._end(error=SENT_AGAIN)
        frame, contents = take_apart(noted.sent.body)
        same = self._count_same(contents)
        new = [_read(content) for content in contents[same:]]
        self._messages = [*self._messages[:same], *new]
        sent_s = noted.sent_s
        session_id = self._run.session_id
        pieces = [(digest_of(frame), frame), *((message.digest, message.content) for message in new)]
        for digest, content in pieces:
            self._outbox.write(put_request_piece(session_id, digest, content, sent_s))
        record = RequestRecord(
            request_id=new_id(),
            run_id=self._run.run_id,
            frame=pieces[0][0],
            same=same,
            messages=tuple(message.digest for message in new),
            facts=RequestFacts(
                model=name_of(noted.model),
                sent_at=noted.sent_at,
                tool_mode=noted.sent.tool_mode,
                exact=noted.sent.exact,
                summary=noted.summary,
                sizes=self._measure(frame),
            ),
        )
        self._outbox.write(add_request(session_id, record, sent_s))
        self._open, self._sent_at = record.request_id, noted.clock_s

    def finish(self, finished: Finished) -> None:
        self._record()
        if self._open:
            self._end(finished)

    def fail(self, error: ModelError) -> None:
        self._record()
        if self._open:
            self._end(error=error.message)

    def cancel(self) -> None:
        self._record()
        if self._open:
            self._end(error="Canceled.")

    def _count_same(self, contents: list[bytes]) -> int:
        """How many messages the request before this one has in common with it, from the first."""
        pairs = zip(self._messages, contents, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0].content == pair[1], pairs))

    def _measure(self, frame: bytes) -> dict[PartName, int]:
        sizes = measure_frame(frame)
        for message in self._messages:
            sizes[message.part] = sizes.get(message.part, 0) + message.size
        return sizes

    def _end(self, finished: Finished | None = None, *, error: str | None = None) -> None:
        answer = RequestAnswer(
            seconds=round(time.monotonic() - self._sent_at, 3),
            usage=plausible(finished.usage) if finished is not None else None,
            cached_tokens=finished.cached_tokens if finished is not None else 0,
            stop_reason=finished.reason.value if finished is not None else None,
            error=error,
        )
        self._outbox.write(end_request(self._open, answer))
        self._open = ""


def _read(content: bytes) -> _Message:
    part, size = measure_message(content)
    return _Message(content, digest_of(content), part, size)
