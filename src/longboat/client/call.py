"""A request as a value: what to send, and how to read the answer. Pure; `calls` has one for every route."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Generic, TypeVar, cast
from urllib.parse import urlencode

import msgspec

from longboat.client.answers import error_from
from longboat.errors import LongboatError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request. `repeatable`: sending it twice does no more than sending it once."""

    method: str
    path: str
    answer: type[T]
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    repeatable: bool = True
    timeout_s: float = 30.0

    @property
    def target(self) -> str:
        """Path and query, as the request line has them."""
        return f"{self.path}?{urlencode(self.params)}" if self.params else self.path

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.body is None else {"content-type": "application/json"}

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
