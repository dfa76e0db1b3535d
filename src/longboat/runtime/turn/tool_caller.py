"""Calls a tool: any failure becomes a result that the model can read. Hooks run before and after."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from longboat.context.hooks import HookEvent, HookResult
from longboat.core.stream import encodable
from longboat.runtime.protocols import WorkspaceServices
from longboat.runtime.turn.setup import TurnSetup, ask_hooks
from longboat.runtime.turn.tool_context import CallContext, News
from longboat.store.records import RunRecord
from longboat.tools.arguments import adapt_arguments
from longboat.tools.context import ToolError
from longboat.tools.protocol import Tool, ToolCall, ToolResult
from longboat.wire.models import ToolCallPart, ToolResultPart

logger = logging.getLogger(__name__)

TOO_LONG = (
    "You hit the output limit: write less per call. Make several smaller edits, or write the file in parts, one call "
    "after the other."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCaller:
    """The tools of one turn."""

    services: WorkspaceServices
    record: RunRecord
    setup: TurnSetup
    problem: Callable[[str], None]
    """Reports hooks that fail."""
    told: set[Path] = field(default_factory=set)
    surplus_plans: frozenset[str] = frozenset()
    """Calls that propose a plan beside another one of the same step."""
    last_at_limit: str = ""
    """The last call of an answer that ended at the output limit, if it did: it may be cut off."""

    async def call(self, part: ToolCallPart, news: News) -> ToolResultPart:
        try:
            result = await self._call(part, news)
        except ToolError as error:
            result = _failed(str(error))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # The run was not canceled: something inside the tool was, and the tool let the cancellation escape.
            result = _failed(f"{part.name} canceled itself.")
        except Exception as error:
            run = self.record.run
            extra = {"run_id": run.run_id, "session_id": run.session_id}
            logger.exception("tool %s failed", part.name, extra=extra)
            result = _failed(f"{part.name} failed: {error}")
        await self.services.asks.drop(self.record.run.run_id, part.id)
        content = encodable(result.content)
        return ToolResultPart(
            tool_call_id=part.id,
            name=part.name,
            content=content,
            is_error=result.is_error,
            command_failed=result.command_failed,
            images=result.images,
        )

    async def _call(self, part: ToolCallPart, news: News) -> ToolResult:
        tool = self._find(part.name)
        if part.id in self.surplus_plans:
            raise ToolError("Propose one plan at a time: people were asked about the other one of this step.")
        arguments = adapt_arguments(self._arguments(part), tool.spec.schema)
        before = await self._ask_hooks(HookEvent.BEFORE_TOOL, part, arguments)
        if before.decision == "deny":
            raise ToolError(f"Denied by a hook: {before.reason}")
        arguments = arguments if before.input is None else before.input
        context = CallContext(
            self.services,
            self.record,
            part.id,
            news=news,
            told=self.told,
            approved=before.decision == "allow",
            planning=self.setup.planning,
        )
        run = self.record.run
        call = ToolCall(
            call_id=part.id, name=part.name, arguments=arguments, session_id=run.session_id, run_id=run.run_id
        )
        try:
            result = await tool.run(call, context)
        except ToolError as error:
            result = _failed(str(error))
        told = {"result": result.content, "is_error": result.is_error}
        after = await self._ask_hooks(HookEvent.AFTER_TOOL, part, arguments, **told)
        objection = [f"A hook rejected the result: {after.reason}"] if after.decision == "deny" else []
        more = (*context.instructions, *before.context, *objection, *after.context)
        return replace(result, content="\n\n".join((result.content, *more)))

    def _arguments(self, part: ToolCallPart) -> dict[str, Any]:
        at_limit = part.id == self.last_at_limit
        try:
            return msgspec.json.decode(part.input if part.input or at_limit else "{}", type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError) as error:
            if at_limit or "truncated" in str(error):
                raise ToolError(f"The input of {part.name} was cut off. {TOO_LONG}") from None
            raise ToolError(f"The input of {part.name} is not a JSON object: {error}.") from None

    def _find(self, name: str) -> Tool:
        tool = self.setup.tools.get(name)
        if tool is None:
            known = ", ".join(sorted(self.setup.tools)) or "none"
            until = " until people approve your plan" if self.setup.planning else ""
            raise ToolError(f"There is no tool {name!r}{until}. Available tools: {known}.")
        return tool

    async def _ask_hooks(
        self, event: HookEvent, part: ToolCallPart, arguments: dict[str, Any], **more: Any
    ) -> HookResult:
        asking = ask_hooks(
            self.services,
            self.setup.hooks,
            event,
            self.record.run,
            tool=part.name,
            call_id=part.id,
            input=arguments,
            **more,
        )
        result = await asking
        for problem in result.problems:
            self.problem(problem)
        return result


def _failed(why: str) -> ToolResult:
    return ToolResult(content=why, is_error=True)
