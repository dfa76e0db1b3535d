"""How each model uses tools, as detected while using it.

Owns one file under `<data_dir>/models/`, by address and model. A missing or broken file means that nothing is known.
`longboat models refresh` deletes it, so that Longboat tries an updated server again.
"""

from pathlib import Path

import msgspec

from longboat import regular
from longboat.models.error_quotes import display_url
from longboat.models.refreshed_catalogue import save_file
from longboat.wire.model_requests import ToolMode

FILE = "tool_modes.json"


class ToolUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A way of using tools."""

    mode: ToolMode
    openai_schema: bool = True
    """For steps: whether the server takes the schema in `response_format`, or in the fields of llama.cpp and Ollama."""


class ToolMemory:
    def __init__(self, data_dir: Path, *, address: str, model: str) -> None:
        self._file = data_dir / "models" / FILE
        self._key = f"{display_url(address)} {model}"

    def recall(self) -> ToolUse | None:
        return self._all().get(self._key)

    def keep(self, use: ToolUse) -> None:
        known = self._all() | {self._key: use}
        save_file(self._file, msgspec.json.encode(known))

    def _all(self) -> dict[str, ToolUse]:
        try:
            return msgspec.json.decode(regular.read(self._file), type=dict[str, ToolUse])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}


def forget_tool_modes(data_dir: Path) -> None:
    (data_dir / "models" / FILE).unlink(missing_ok=True)
