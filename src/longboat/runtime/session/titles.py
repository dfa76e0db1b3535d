"""Session titles, written by the small model outside the run (A9). Nothing waits for a title or fails with it."""

import logging
from collections.abc import AsyncIterator

from longboat.core.prompts import TITLE_SYSTEM
from longboat.core.turn import plausible
from longboat.errors import LongboatError, ModelError
from longboat.models.failover import Lineup, is_made_good, name_of
from longboat.models.protocol import Finished, Model, ModelEvent, ModelRequest, ReasoningDelta, TextDelta
from longboat.runtime.clock import now
from longboat.runtime.protocols import TurnOwner, WorkspaceServices
from longboat.wire.ids import new_id
from longboat.wire.models import Message, Role, Run, TextPart, Usage

logger = logging.getLogger(__name__)

MAX_LENGTH = 80
MAX_PROMPT = 2_000
MAX_ANSWER = 1_000
"""How many characters to read: a model that writes more is not writing a title."""
MAX_THOUGHT = 50_000
"""The same for its reasoning, which comes before the title."""


async def write_title(services: WorkspaceServices, session: TurnOwner, provisional: str, first: Run) -> None:
    """Replace the provisional title, which is the first prompt's first line, unless a person has changed it."""
    try:
        if not services.config().titles:
            return
        lineup = await services.lineup(None, "small")
        model = lineup.first()
        if model.provider == "local":
            return  # its titles are poor, and it answers one request at a time
        request = ModelRequest(system=TITLE_SYSTEM, messages=(_title_request(first.prompt),))
        model, said, usage = await _ask_first(lineup, request)
        session.add_usage(first.run_id, name_of(model), plausible(usage))
        if title := _tidy_title(said):
            await session.rename(title, only_from=provisional)
        await session.settle_usage()
    except LongboatError as error:
        logger.info("no title: %s", error.message)


async def _ask_first(lineup: Lineup, request: ModelRequest) -> tuple[Model, str, Usage]:
    """Return the answer of the first available model of the list. Failures here cause no cooldown: a missing title is
    no reason for prompts to skip a model."""
    *others, last = lineup.rest()
    for model in others:
        try:
            return model, *await _ask(model, request)
        except ModelError as error:
            if not is_made_good(error):
                raise
    return last, *await _ask(last, request)


async def _ask(model: Model, request: ModelRequest) -> tuple[str, Usage]:
    async with model.stream(request) as events:
        return await _collect(events)


async def _collect(events: AsyncIterator[ModelEvent]) -> tuple[str, Usage]:
    """Collect the model's text, cut off if it is too long for a title, and its usage, which comes last."""
    said, thought, usage = "", 0, Usage()
    async for event in events:
        match event:
            case TextDelta():
                said += event.text
            case ReasoningDelta():
                thought += len(event.text)
            case Finished():
                usage = event.usage
        if len(said) > MAX_ANSWER or thought > MAX_THOUGHT:
            break
    return said, usage


def _title_request(prompt: str) -> Message:
    text = TextPart(text=f"Name a conversation that begins with this request:\n\n{prompt[:MAX_PROMPT]}")
    return Message(id=new_id(), session_id="", run_id="", seq=1, role=Role.USER, parts=(text,), created_at=now())


def _tidy_title(answer: str) -> str:
    lines = answer.strip().splitlines()
    return lines[0].strip().strip("\"'“”*#. ")[:MAX_LENGTH].rstrip() if lines else ""
