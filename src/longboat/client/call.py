"""A request as a value: what to send, and how to read the answer. Pure; `calls` has one for every route."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Generic, TypeVar, cast
from urllib.parse import urlencode

import msgspec

from longboat.client.answers import error_from
from longboat.errors import LongboatError
from longboat.wire.ids import repeated_key

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request. `repeatable`: sending it twice does no more than sending it once."""

    method: str
    path: str
    answer: type[T]
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    key: str | None = None
    """Makes it repeatable: the server answers a repeated request with the same key as the first time."""
    repeatable: bool = True
    timeout_s: float = 30.0

    def repeated(self) -> "Call[T]":
        """This call for another try: the one before may have been done."""
        return self if self.key is None else replace(self, key=repeated_key(self.key))

    @property
    def target(self) -> str:
        """Path and query, as the request line has them."""
        return f"{self.path}?{urlencode(self.params)}" if self.params else self.path

    @property
    def headers(self) -> dict[str, str]:
        given = {} if self.body is None else {"content-type": "application/json"}
        return given if self.key is None else given | {"idempotency-key": self.key}

    def read(self, status: int, content: bytes) -> T:
        """The answer, or the error that it tells of. Any 2xx is success (R5)."""
        if not 200 <= status < 300:
            raise error_from(status, content)
        if self.answer is NoneType:
            return cast(T, None)
        if self.answer is bytes:
            return cast(T, content)
        try:
            return msgspec.json.decode(content, type=self.answer)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise LongboatError(
                f"Cannot read the answer to {self.method} {self.path}. Is it a Longboat server of this version?",
                code="bad_answer",
            ) from None
