"""JSON-RPC with one language server: sends requests, receives answers, and answers the server's own requests.

Owns which request waits for which answer. Knows bytes, not processes; the names of methods, not their meaning. The
server learns of each request that times out or is canceled; no request outlives the peer.
"""

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

import msgspec

from longboat.tools.lsp.client.framing import Decoder, FramingError, frame

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
NOT_NOW = (-32801, -32802)
"""The document changed meanwhile, or the server gave up: ask again."""

T = TypeVar("T")
_NULL = msgspec.Raw(b"null")

logger = logging.getLogger(__name__)


class ServerGone(Exception):
    """The server exited, or can no longer be reached."""


class NoAnswer(Exception):
    """The server did not answer in time."""


class BadAnswer(Exception):
    """The server's answer does not follow the protocol."""


class Refused(Exception):
    """The server answered with an error, or we answer its request with one."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Failure(msgspec.Struct, frozen=True, kw_only=True):
    code: int = INTERNAL_ERROR
    message: str = ""


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = _NULL
    result: msgspec.Raw = _NULL
    error: _Failure | None = None


class JsonRpc:
    """`send` takes bytes for the server and must not block. `on_request` returns the answer to a server's request, or
    raises Refused."""

    def __init__(
        self,
        send: Callable[[bytes], None],
        *,
        on_notification: Callable[[str, msgspec.Raw], None],
        on_request: Callable[[str, msgspec.Raw], Any],
    ) -> None:
        self._send = send
        self._on_notification = on_notification
        self._on_request = on_request
        self._decoder = Decoder()
        self._messages = msgspec.json.Decoder(_Message)
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self._gone: str | None = None

    def receive(self, data: bytes) -> None:
        """Take what the server wrote. Raises FramingError if it makes no sense."""
        for body in self._decoder.decode(data):
            try:
                message = self._messages.decode(body)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                raise FramingError("it sent a message that is not JSON-RPC") from None
            self._take(message)

    def notify(self, method: str, params: Any) -> None:
        if self._gone is None:
            self._write({"method": method, "params": params})

    async def request(self, method: str, params: Any, decoder: msgspec.json.Decoder[T], *, timeout_s: float) -> T:
        """The answer, decoded. Raises Refused, NoAnswer, BadAnswer or ServerGone."""
        if self._gone is not None:
            raise ServerGone(self._gone)
        number = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._write({"id": number, "method": method, "params": params})
        try:
            async with asyncio.timeout(timeout_s):
                result = await answer
        except TimeoutError:
            self.notify("$/cancelRequest", {"id": number})
            raise NoAnswer(f"no answer to {method} within {timeout_s:g} s") from None
        except asyncio.CancelledError:
            self.notify("$/cancelRequest", {"id": number})
            raise
        finally:
            self._waiting.pop(number, None)
        try:
            return decoder.decode(result)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise BadAnswer(f"its answer to {method} is invalid: {error}") from None

    def close(self, reason: str) -> None:
        """Nothing is sent or awaited any more."""
        if self._gone is not None:
            return
        self._gone = reason
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ServerGone(reason))

    def _take(self, message: _Message) -> None:
        if message.method is None:
            self._settle(message)
        elif message.id is None:
            self._hear(message.method, message.params)
        else:
            self._answer(message.id, message.method, message.params)

    def _settle(self, message: _Message) -> None:
        answer = self._waiting.get(message.id) if isinstance(message.id, int) else None
        if answer is None or answer.done():
            return  # canceled or timed out meanwhile
        if message.error is not None:
            answer.set_exception(Refused(message.error.code, message.error.message))
        else:
            answer.set_result(message.result)

    def _hear(self, method: str, params: msgspec.Raw) -> None:
        try:
            self._on_notification(method, params)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            logger.debug("a language server's %s is invalid: %s", method, error)

    def _answer(self, number: int | str, method: str, params: msgspec.Raw) -> None:
        try:
            self._write({"id": number, "result": self._on_request(method, params)})
        except Refused as refused:
            self._write({"id": number, "error": {"code": refused.code, "message": str(refused)}})
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._write({"id": number, "error": {"code": INTERNAL_ERROR, "message": str(error)}})

    def _write(self, message: dict[str, Any]) -> None:
        self._send(frame(msgspec.json.encode({"jsonrpc": "2.0", **message})))
