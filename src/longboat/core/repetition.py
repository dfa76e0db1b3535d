"""Notices a text that repeats itself without end, as small models do. Pure."""

from longboat.errors import ModelError

CHECKED = 3_000
"""How many characters must be the same few words over and over. Rulers and empty tables are shorter."""
REPEATS = 10
EVERY = 500
"""Characters between two checks. A piece that is as long was not streamed: it has its end already."""


class RepetitionGuard:
    """Feed it a text as it streams."""

    def __init__(self) -> None:
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
        tail = "".join(self._pieces)[-CHECKED:]
        self._pieces, self._unchecked = [tail], 0
        return len(tail) == CHECKED and _is_periodic(tail)


def _is_periodic(text: str) -> bool:
    return any(text.startswith(text[period:]) for period in range(1, len(text) // REPEATS + 1))
