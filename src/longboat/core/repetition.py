"""Notices a text that repeats itself without end, as small models do. Pure."""

from longboat.errors import ModelError

CHECKED = 3_000
"""How many characters must be the same few words over and over. Rulers and empty tables are shorter."""
CHECKED_LONG = 20_000
"""How many must be the same paragraphs, or what a tool call writes: a file may well have a thousand equal lines."""
REPEATS = 10
_HEAD = 50
"""Characters by which the next repetition is searched."""
EVERY = 500
"""Characters between two checks. A piece that is as long was not streamed: it has its end already."""


class RepetitionGuard:
    """Feed it a text as it streams."""

    def __init__(self, *sizes: int) -> None:
        """`sizes`: of how many last characters it checks that they are the same over and over."""
        self._sizes = sizes or (CHECKED, CHECKED_LONG)
        self._pieces: list[str] = []
        self._unchecked = 0

    def hear(self, text: str) -> None:
        """Raise ModelError once it is endless."""
        if self.is_endless(text):
            raise ModelError(
                "It wrote the same words over and over. Send the prompt again with other words, or choose another "
                "model.",
                title="Stopped: the model repeats itself",
                code="repetition",
            )

    def is_endless(self, text: str) -> bool:
        """Whether the text so far, with this piece, ends in nothing but repetition."""
        if len(text) >= EVERY:
            self._pieces, self._unchecked = [], 0
            return False
        self._pieces.append(text)
        self._unchecked += len(text)
        if self._unchecked < EVERY:
            return False
        tail = "".join(self._pieces)[-max(self._sizes) :]
        self._pieces, self._unchecked = [tail], 0
        return any(len(tail) >= size and _is_periodic(tail[-size:]) for size in self._sizes)


def _is_periodic(text: str) -> bool:
    head, last = text[:_HEAD], len(text) // REPEATS
    period = text.find(head, 1, last + len(head))
    while period != -1:
        if text.startswith(text[period:]):
            return True
        period = text.find(head, period + 1, last + len(head))
    return False
