"""Calling a tool: whatever goes wrong becomes a result that the model can read."""

import asyncio
import logging

import msgspec

from longboat.core.stream import sayable
from longboat.runtime.home import Home
from longboat.tools.seam import ToolCall
from longboat.wire.models import Run, ToolCallPart, ToolResultPart

logger = logging.getLogger(__name__)


async def call_tool(home: Home, run: Run, part: ToolCallPart) -> ToolResultPart:
    tool = home.tools.get(part.name)
    if tool is None:
        known = ", ".join(sorted(home.tools)) or "none"
        return _failed(part, f"There is no tool {part.name!r}. The tools are: {known}.")
    try:
        arguments = msgspec.json.decode(part.input or "{}", type=dict)
    except (msgspec.MsgspecError, RecursionError) as error:
        return _failed(part, f"The input of {part.name} is not a JSON object: {error}.")
    call = ToolCall(
        call_id=part.id,
        name=part.name,
        arguments=arguments,
        session_id=run.session_id,
        run_id=run.run_id,
        directory=home.directory,
    )
    try:
        result = await tool.run(call)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody canceled the run: something inside the tool was, and the tool let it out.
        return _failed(part, f"{part.name} was canceled from within.")
    except Exception as error:
        logger.exception("tool %s failed", part.name, extra={"run_id": run.run_id, "session_id": run.session_id})
        return _failed(part, f"{part.name} failed: {error}")
    return ToolResultPart(tool_call_id=part.id, content=sayable(result.content), is_error=result.is_error)


def _failed(part: ToolCallPart, content: str) -> ToolResultPart:
    return ToolResultPart(tool_call_id=part.id, content=sayable(content), is_error=True)
