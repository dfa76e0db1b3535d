"""What a model answers, without the note of what was sent."""

from collections.abc import AsyncIterator

from longboat.models.protocol import ModelEvent, Sent


async def answer_events(events: AsyncIterator[ModelEvent]) -> AsyncIterator[ModelEvent]:
    async for event in events:
        if not isinstance(event, Sent):
            yield event
