"""Titles: found by the small model, detached from the run (A9). Nothing waits for one and nothing fails with one."""

import logging
from collections.abc import AsyncIterator
from typing import Protocol

from longboat.core.prompts import TITLE_SYSTEM
from longboat.errors import LongboatError
from longboat.models.seam import ModelEvent, ModelRequest, ReasoningDelta, TextDelta
from longboat.runtime.clock import now
from longboat.runtime.home import Home
from longboat.wire.ids import new_id
from longboat.wire.models import Message, Role, Session, TextPart

logger = logging.getLogger(__name__)

MAX_LENGTH = 80
MAX_PROMPT = 2_000
MAX_ANSWER = 1_000
"""How many characters are listened to: a model that says more is not naming anything."""
MAX_THOUGHT = 50_000
"""The same for its reasoning, which comes before the title."""


class Titled(Protocol):
    async def rename(self, title: str, *, only_from: str | None = None) -> Session: ...


async def write_title(home: Home, session: Titled, provisional: str, prompt: str) -> None:
    """Replace the provisional title, which is the prompt's first line, unless a person was faster."""
    try:
        if not home.config().titles:
            return
        model = await home.model(None, "small")
        if model.provider == "local":
            return  # its titles are poor, and it answers one request at a time
        async with model.stream(ModelRequest(system=TITLE_SYSTEM, messages=(_ask(prompt),))) as events:
            title = _tidy(await _said(events))
        if title:
            await session.rename(title, only_from=provisional)
    except LongboatError as error:
        logger.info("no title: %s", error.message)


async def _said(events: AsyncIterator[ModelEvent]) -> str:
    """What the model says, up to where it is no title any more."""
    said, thought = "", 0
    async for event in events:
        match event:
            case TextDelta():
                said += event.text
            case ReasoningDelta():
                thought += len(event.text)
        if len(said) > MAX_ANSWER or thought > MAX_THOUGHT:
            break
    return said


def _ask(prompt: str) -> Message:
    text = TextPart(text=f"Name a conversation that begins with this request:\n\n{prompt[:MAX_PROMPT]}")
    return Message(id=new_id(), session_id="", run_id="", seq=1, role=Role.USER, parts=(text,), created_at=now())


def _tidy(answer: str) -> str:
    lines = answer.strip().splitlines()
    return lines[0].strip().strip("\"'“”*#. ")[:MAX_LENGTH].rstrip() if lines else ""
