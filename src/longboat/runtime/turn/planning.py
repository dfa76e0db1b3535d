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
from longboat.wire.models import Message, ToolCallPart, ToolResultPart


def approval_in(messages: Iterable[Message]) -> CallAnswer | None:
    """The answer that approved a plan, if it is the latest decision. It counts once the call that proposed the plan has
    its result."""
    proposals: set[str] = set()
    latest: CallAnswer | None = None
    for message in messages:
        proposals |= {call.id for call in calls_of(message) if _proposes(call)}
        for part in message.parts:
            if isinstance(part, ToolResultPart) and part.tool_call_id in proposals and part.finished and part.answers:
                latest = None if part.is_error else part.answers[-1]
    return latest if latest is not None and latest.answer is PermissionAnswer.ONCE else None


def surplus_plans(calls: Iterable[ToolCallPart]) -> frozenset[str]:
    """The calls of a step that propose another plan: people are asked about one at a time."""
    return frozenset([call.id for call in calls if _proposes(call)][1:])


def _proposes(call: ToolCallPart) -> bool:
    return call.traits is not None and call.traits.proposes


async def was_approved(store: Store, record: RunRecord) -> bool:
    """Of a run that is resumed. Looks at all of its messages: a summary may have replaced them for the model."""
    if not record.options.plan:
        return False
    messages = await store.reads.messages(record.run.session_id)
    return approval_in(message for message in messages if message.run_id == record.run.run_id) is not None


def without_plan(record: RunRecord) -> RunRecord:
    """The run as it works from now on, without the restriction."""
    return replace(record, options=msgspec.structs.replace(record.options, plan=False))
