"""Prompts on their way: nothing that was typed is lost. In order, one at a time, for as long as the server is away.

Owns the outbox; must not know widgets. A refusal stays at its prompt until somebody retries or drops it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

from longboat.errors import LongboatError
from longboat.tui.connection import Connection
from longboat.wire.ids import new_id
from longboat.wire.models import Attachment, Delivery
from longboat.wire.requests import Approve, Effort, Submit


class Kind(StrEnum):
    PROMPT = "prompt"
    SHELL = "shell"
    SUMMARY = "summary"


class Progress(StrEnum):
    SENDING = "sending"
    SENT = "sent"
    REFUSED = "refused"


@dataclass(slots=True, kw_only=True)
class Outgoing:
    """One prompt. Its run_id is ours, so that sending it twice is sending it once."""

    text: str
    kind: Kind = Kind.PROMPT
    delivery: Delivery = Delivery.STEER
    attachments: tuple[Attachment, ...] = ()
    model: str | None = None
    effort: Effort | None = None
    approve: Approve = Approve.ASK
    session_id: str | None = None
    """None: a session is made for it."""
    draft: int = 0
    """Which of the sessions that do not exist yet: prompts of one draft go to one session."""
    run_id: str = field(default_factory=new_id)
    progress: Progress = Progress.SENDING
    problem: str = ""
    tried: bool = False
    """The server may have it."""
    recalled: bool = False
    """Whoever typed it has taken it back."""


class Sender:
    def __init__(
        self,
        connection: Connection,
        *,
        session: Callable[[Outgoing], Awaitable[str]],
        on_change: Callable[[Outgoing], None],
    ) -> None:
        self.waiting: list[Outgoing] = []
        """Oldest first: not yet accepted, or refused, or accepted and not yet heard of."""
        self._connection = connection
        self._session = session
        self._on_change = on_change
        self._news = asyncio.Event()

    def post(self, prompt: Outgoing) -> None:
        self.waiting.append(prompt)
        self._news.set()
        self._on_change(prompt)

    def retry(self, prompt: Outgoing) -> None:
        """A run that was refused was never accepted: the same id may be sent again."""
        prompt.progress, prompt.problem = Progress.SENDING, ""
        self._news.set()
        self._on_change(prompt)

    def drop(self, prompt: Outgoing) -> None:
        self.waiting.remove(prompt)
        self._on_change(prompt)

    def take_back(self, prompt: Outgoing) -> None:
        """It is not to be run. What may be with the server already is canceled as soon as that is known."""
        prompt.recalled = True
        self.drop(prompt)

    def heard(self, run_id: str) -> None:
        """The stream tells of the run: the server has it."""
        for prompt in [known for known in self.waiting if known.run_id == run_id]:
            self.drop(prompt)

    def caught_up(self) -> None:
        """The stream begins anew: of what the server has taken, nothing may be told again."""
        for prompt in [known for known in self.waiting if known.progress is Progress.SENT]:
            self.drop(prompt)

    @property
    def unsent(self) -> list[Outgoing]:
        return [prompt for prompt in self.waiting if prompt.progress is not Progress.SENT]

    async def send_all(self) -> None:
        """Work the outbox off, for ever."""
        while True:
            head = next((prompt for prompt in self.waiting if prompt.progress is Progress.SENDING), None)
            if head is None:
                self._news.clear()
                await self._news.wait()
                continue
            try:
                await self._connection.insist(lambda head=head: self._send(head))  # type: ignore[misc]
            except LongboatError as refusal:
                head.progress, head.problem = Progress.REFUSED, refusal.message
            else:
                head.progress = Progress.SENT
            if head in self.waiting:
                self._on_change(head)
            elif head.recalled and head.tried and head.progress is Progress.SENT:
                await self._call_off(head)

    async def _call_off(self, prompt: Outgoing) -> None:
        """It was taken back while it was on its way: whoever took it back must not find that it runs."""
        client, workspace_id = self._connection.client, self._connection.workspace_id
        with suppress(LongboatError):  # the server never had it, or is done with it
            await self._connection.insist(lambda: client.cancel_run(workspace_id, prompt.run_id))

    async def _send(self, prompt: Outgoing) -> None:
        if prompt not in self.waiting:  # taken back meanwhile
            return
        client, workspace_id = self._connection.client, self._connection.workspace_id
        if prompt.session_id is None:
            prompt.session_id = await self._session(prompt)
        prompt.tried = True
        match prompt.kind:
            case Kind.SHELL:
                await client.shell(workspace_id, prompt.session_id, prompt.text, run_id=prompt.run_id)
            case Kind.SUMMARY:
                await client.summarize_session(
                    workspace_id, prompt.session_id, run_id=prompt.run_id, model=prompt.model
                )
            case Kind.PROMPT:
                await client.submit(workspace_id, _request(prompt))


def _request(prompt: Outgoing) -> Submit:
    return Submit(
        session_id=prompt.session_id or "",
        prompt=prompt.text,
        run_id=prompt.run_id,
        delivery=prompt.delivery,
        attachments=prompt.attachments,
        model=prompt.model,
        approve=prompt.approve,
        effort=prompt.effort,
    )
