"""What was learned of models while using them, such as how each uses tools.

Owns small files under `<data_dir>/models/`, one for each kind of knowledge, by address and model. A missing or broken
file means that nothing is known. `longboat models refresh` deletes them, so that Longboat tries an updated server
again. Must not know what the knowledge means.
"""

from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

import msgspec

from longboat import regular_files
from longboat.models.error_quotes import display_url
from longboat.models.refreshed_catalogue import save_file

T = TypeVar("T", bound=msgspec.Struct)

TOOL_MODES = "tool_modes.json"
CHAT_HABITS = "chat_habits.json"

_keeping = Lock()
"""Two models may be learned of at the same time, in threads; all of one kind share a file."""


class ModelMemory(Generic[T]):
    """What is known of one model at one address."""

    def __init__(self, file: Path, kind: type[T], *, address: str, model: str) -> None:
        self._file = file
        self._kind = kind
        self._key = f"{display_url(address)} {model}"

    def recall(self) -> T | None:
        return self._all().get(self._key)

    def keep(self, learned: T) -> None:
        with _keeping:
            known = self._all() | {self._key: learned}
            save_file(self._file, msgspec.json.encode(known))

    def _all(self) -> dict[str, T]:
        try:
            return msgspec.json.decode(regular_files.read(self._file), type=dict[str, self._kind])  # type: ignore[name-defined]
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}


def forget_learned(data_dir: Path) -> None:
    for name in (TOOL_MODES, CHAT_HABITS):
        (data_dir / "models" / name).unlink(missing_ok=True)
