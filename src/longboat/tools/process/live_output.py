"""Output shown to people while a command runs, at a limited rate."""

import asyncio
from collections.abc import Callable

EVERY_S = 0.2
AT_ONCE = 4_000
"""Characters shown at a time: of more, the last ones."""
NOT_SHOWN = "characters not shown …]"
"""The end of the line that replaces the skipped text."""


class Live:
    """Passes text to `show`: immediately, then at most every `EVERY_S`, at most `AT_ONCE` characters at a time."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._text = ""
        self._skipped = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def write(self, text: str) -> None:
        if self._closed or not text:
            return
        self._skipped += max(0, len(self._text) + len(text) - AT_ONCE)
        self._text = (self._text + text[-AT_ONCE:])[-AT_ONCE:]
        if self._timer is None:
            self._flush()

    def close(self) -> None:
        """Show what is left, and nothing from now on."""
        if self._timer is not None:
            self._timer.cancel()
        self._emit()
        self._closed = True

    def _flush(self) -> None:
        self._timer = None
        if self._text:
            self._emit()
            self._timer = asyncio.get_running_loop().call_later(EVERY_S, self._flush)

    def _emit(self) -> None:
        text, skipped = self._text, self._skipped
        self._text, self._skipped = "", 0
        if skipped:
            text = f"\n[… {skipped:,} {NOT_SHOWN}\n{text}"
        if text and not self._closed:
            self._show(text)
