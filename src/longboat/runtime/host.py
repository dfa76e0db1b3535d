"""What a turn needs from its session."""

from typing import Protocol

from longboat.wire.models import Session, Usage


class Host(Protocol):
    summary_seq: int

    @property
    def session(self) -> Session: ...

    async def drain_step(self, run_id: str) -> None: ...

    async def send_step(self, run_id: str) -> None: ...

    def next_message_seq(self) -> int: ...

    def add_usage(self, run_id: str, model: str, usage: Usage, *, context: int | None) -> None: ...

    def add_call(self, tool: str, *, failed: bool) -> None: ...
