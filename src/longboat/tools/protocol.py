"""The protocol between a turn and its tools.

Owns what a tool receives and returns. A canceled run cancels the task that runs the tool: the tool cleans up in its
`finally` and lets the cancellation through. A `ToolError` is a sentence for the model; any other exception is a bug,
which is logged and reported to the model in one line.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from longboat.core.tool import ToolSpec
from longboat.tools.context import ToolContext
from longboat.wire.models import Image


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    call_id: str
    name: str
    arguments: dict[str, Any]
    session_id: str
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    content: str
    is_error: bool = False
    command_failed: bool = False
    """The error is how a command ended that the tool ran: a red test run is a result."""
    images: tuple[Image, ...] = ()
    """For models that accept images; the others get a note instead."""


class Tool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult: ...
