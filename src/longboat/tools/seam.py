"""The seam between a turn and its tools.

Owns what a tool is told and what it gives back. A canceled run cancels the task that runs the tool: the tool cleans up
in its `finally` and lets the cancellation through. What a tool raises becomes an error result that the model sees.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from longboat.core.tool import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    call_id: str
    name: str
    arguments: dict[str, Any]
    session_id: str
    run_id: str
    directory: Path
    """The workspace's root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    content: str
    is_error: bool = False


class Tool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, call: ToolCall) -> ToolResult: ...
