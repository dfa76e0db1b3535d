"""Sends prompts in order, one at a time, and keeps them while the server is unreachable: nothing typed is lost.

Owns the outbox; must not know widgets. A rejected prompt stays there until the person resends or removes it.
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
    """One prompt. We choose its run_id, so that sending it twice has no second effect."""

    text: str
    kind: Kind = Kind.PROMPT
    delivery: Delivery = Delivery.STEER
    attachments: tuple[Attachment, ...] = ()
    model: str | None = None
    effort: Effort | None = None
    approve: Approve = Approve.ASK
    plan: bool = False
    session_id: str | None = None
    """None: a session is created for it."""
    draft: int = 0
    """The draft it belongs to: prompts of one draft go to one new session."""
    run_id: str = field(default_factory=new_id)
    progress: Progress = Progress.SENDING
    problem: str = ""
    tried: bool = False
    """Whether it was sent at least once, so that the server may have it."""
    recalled: bool = False
    """Whether the person took it back."""


class Sender:
    def __init__(
        self,
        connection: Connection,
        *,
        session: Callable[[Outgoing], Awaitable[str]],
        on_change: Callable[[Outgoing], None],
    ) -> None:
        self.waiting: list[Outgoing] = []
        """Oldest first: not yet accepted, rejected, or accepted but not yet seen in the event stream."""
        self._connection = connection
        self._session = session
        self._on_change = on_change
        self._news = asyncio.Event()

    def post(self, prompt: Outgoing) -> None:
        self.waiting.append(prompt)
        self._news.set()
        self._on_change(prompt)

    def retry(self, prompt: Outgoing) -> None:
        """Resend a rejected prompt. The server never accepted its run_id, so it can be used again."""
        prompt.progress, prompt.problem = Progress.SENDING, ""
        self._news.set()
        self._on_change(prompt)

    def drop(self, prompt: Outgoing) -> None:
        self.waiting.remove(prompt)
        self._on_change(prompt)

    def take_back(self, prompt: Outgoing) -> None:
        """Take a prompt back. If the server turns out to have it, it is canceled there."""
        prompt.recalled = True
        self.drop(prompt)

    def heard(self, run_id: str) -> None:
        """Drop a prompt whose run appears in the event stream: the server has it."""
        for prompt in [known for known in self.waiting if known.run_id == run_id]:
            self.drop(prompt)

    def caught_up(self) -> None:
        """Drop accepted prompts when the stream starts again: it may not mention them any more."""
        for prompt in [known for known in self.waiting if known.progress is Progress.SENT]:
            self.drop(prompt)

    @property
    def unsent(self) -> list[Outgoing]:
        return [prompt for prompt in self.waiting if prompt.progress is not Progress.SENT]

    async def send_all(self) -> None:
        """Send what is in the outbox, forever."""
        while True:
            head = next((prompt for prompt in self.waiting if prompt.progress is Progress.SENDING), None)
            if head is None:
                self._news.clear()
                await self._news.wait()
                continue
            try:
                await self._connection.send_with_retry(lambda head=head: self._send(head))  # type: ignore[misc]
            except LongboatError as refusal:
                head.progress, head.problem = Progress.REFUSED, refusal.message
            else:
                head.progress = Progress.SENT
            if head in self.waiting:
                self._on_change(head)
            elif head.recalled and head.tried and head.progress is Progress.SENT:
                await self._call_off(head)

    async def _call_off(self, prompt: Outgoing) -> None:
        """Cancel a prompt that was taken back while it was being sent, so that it does not run."""
        client, workspace_id = self._connection.client, self._connection.workspace_id
        with suppress(LongboatError):  # the server never got it, or the run has ended
            await self._connection.send_with_retry(lambda: client.cancel_run(workspace_id, prompt.run_id))

    async def _send(self, prompt: Outgoing) -> None:
        if prompt not in self.waiting:  # it was taken back meanwhile
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
        plan=prompt.plan,
    )
