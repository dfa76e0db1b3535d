"""Which form an answer has: an event stream as asked for, or one document, because the server does not stream.

Owns how to distinguish the two, how a document becomes a stream of one event, and how much to read of something that
is not an answer. The beginning of the body decides, not its type: servers send streams as JSON, JSON as text, and
errors with status 200. Must not know what the answer says.
"""

import asyncio
import re
from dataclasses import dataclass
from typing import Any

import msgspec

from longboat.models.http_client import Answer
from longboat.models.openai_refusal import Addressee, broken_answer
from longboat.models.openai_stream import MAX_LINE

MAX_DOCUMENT = MAX_LINE
"""A longer one cannot be the answer of a chat model."""

_MAX_ERROR_BODY = 64 * 1024
_ERROR_BODY_S = 10.0
_BLANK = b" \t\r\n\xef\xbb\xbf"
"""What may stand before both forms: some servers send empty lines while they work, others a byte order mark."""
_FIELD = re.compile(rb"(?:data|event|id|retry)?:")
_LONGEST_FIELD = len(b"event:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    answer: Answer
    begun: bytes
    """The beginning of its stream, already read. A document is all of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReply:
    body: bytes
    """What the server sent instead of an answer: an error, a web page, another document."""


async def read_reply(answer: Answer, to: Addressee) -> Reply | NoReply:
    """Read as much of a successful answer as it takes to know what it is. Raises OSError if it breaks off."""
    begun = b""
    while len(begun) < _LONGEST_FIELD and (piece := await answer.read()):
        begun = (begun + piece).lstrip(_BLANK)
    if _is_stream(begun, answer.headers.get("content-type", "")):
        return Reply(answer=answer, begun=begun)
    if not begun.startswith(b"{"):
        return NoReply(body=await read_error_body(answer, begun))
    document = await _read_document(answer, begun, to)
    events = _as_stream(document, to)
    return Reply(answer=answer, begun=events) if events is not None else NoReply(body=document[:_MAX_ERROR_BODY])


def _is_stream(begun: bytes, kind: str) -> bool:
    if _FIELD.match(begun):
        return True
    return not begun.startswith((b"{", b"[", b"<")) and not kind.startswith(("application/json", "text/html"))


async def _read_document(answer: Answer, begun: bytes, to: Addressee) -> bytes:
    document, piece = bytearray(), begun
    while piece:
        document += piece
        if len(document) > MAX_DOCUMENT:
            raise broken_answer(to, "sent an answer that is too long")
        piece = await answer.read()
    return bytes(document)


def _as_stream(document: bytes, to: Addressee) -> bytes | None:
    """The events that a server would have sent that streams; None if this is no answer."""
    try:
        value: dict[str, Any] = msgspec.json.decode(document)
        return b"data: " + msgspec.json.encode(value) + b"\n\ndata: [DONE]\n\n" if _complete(value) else None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        # Worth another try if it is an answer, or broke off; an error that is no JSON is not.
        if b'"choices"' in document or "truncated" in str(error):
            raise broken_answer(to, f"sent an answer that cannot be read ({error})") from None
        return None


def _complete(value: dict[str, Any]) -> bool:
    """Whether it is an answer. It then gets a finish_reason: one that could be read to its end is complete."""
    choices = value.get("choices")
    if value.get("error") or not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return False
    choice = choices[0]
    if str(choice.get("finish_reason")).startswith("content_filter"):
        return True  # Google's leaves nothing else
    choice["finish_reason"] = choice.get("finish_reason") or "stop"
    return any(isinstance(choice.get(name), dict) for name in ("message", "delta"))


async def read_error_body(answer: Answer, begun: bytes = b"") -> bytes:
    """The beginning of the body, as much as comes soon: it only explains an error."""
    body = begun
    try:
        async with asyncio.timeout(_ERROR_BODY_S):
            while len(body) <= _MAX_ERROR_BODY and (pieces := await answer.read()):
                body += pieces
    except OSError:
        pass  # the status alone has to do
    return body[:_MAX_ERROR_BODY]
