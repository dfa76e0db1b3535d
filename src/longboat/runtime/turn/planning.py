"""Runs that plan first: whether people have approved the plan, which the transcript of the run tells.

Must not know tools: those of a turn come from `WorkspaceTools`, and the traits of a recorded call say that it proposed.
"""

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from longboat.core.history import calls_of
from longboat.store.protocol import Store
from longboat.store.records import RunRecord
from longboat.wire.asks import CallAnswer, PermissionAnswer
from longboat.wire.models import Message, ToolResultPart


def approval_in(messages: Iterable[Message]) -> CallAnswer | None:
    """The answer that approved a plan, once the call that proposed it has its result."""
    proposals: set[str] = set()
    for message in messages:
        proposals |= {call.id for call in calls_of(message) if call.traits is not None and call.traits.proposes}
        for part in message.parts:
            if isinstance(part, ToolResultPart) and part.tool_call_id in proposals and not part.is_error:
                for answer in part.answers if part.finished else ():
                    if answer.answer is PermissionAnswer.ONCE:
                        return answer
    return None


async def was_approved(store: Store, record: RunRecord) -> bool:
    """Of a run that is resumed. Looks at all of its messages: a summary may have replaced them for the model."""
    if not record.options.plan:
        return False
    messages = await store.reads.messages(record.run.session_id)
    return approval_in(message for message in messages if message.run_id == record.run.run_id) is not None


def without_plan(record: RunRecord) -> RunRecord:
    """The run as it works from now on, without the restriction."""
    return replace(record, options=msgspec.structs.replace(record.options, plan=False))
