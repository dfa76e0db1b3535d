"""How each model uses tools, as detected while using it. `models/memory.py` owns the file."""

from pathlib import Path

import msgspec

from longboat.models.memory import TOOL_MODES, ModelMemory
from longboat.wire.model_requests import ToolMode


class ToolUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A way of using tools."""

    mode: ToolMode
    openai_schema: bool = True
    """For steps: whether the server takes the schema in `response_format`, or in the fields of llama.cpp and Ollama."""


class ToolMemory(ModelMemory[ToolUse]):
    def __init__(self, data_dir: Path, *, address: str, model: str) -> None:
        super().__init__(data_dir / "models" / TOOL_MODES, ToolUse, address=address, model=model)
