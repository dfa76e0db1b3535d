"""Texts near to known ones: seeds from the tests' corpora, and texts that were allowed before, changed a little.

Owns the pool and the changes. Must not know why a text is in the pool.
"""

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random

from fuzz.grammar import Generator
from fuzz.vocabulary import PAYLOADS, TOKENS

MAX_POOL = 400
MAX_LENGTH = 400
_CORPORA = Path(__file__).parents[1] / "tests" / "support"


@cache
def corpus() -> tuple[str, ...]:
    """Every text of the corpora of the unit tests."""
    sys.path.append(str(_CORPORA))
    modules = [import_module(name) for name in ("shell_corpus", "shell_attacks")]
    lists = [value for module in modules for value in vars(module).values() if isinstance(value, tuple)]
    return tuple(text for texts in lists for text in texts if isinstance(text, str) and 0 < len(text) <= MAX_LENGTH)


class Source:
    """An endless source of texts: new ones, and changed ones."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._generator = Generator(chance)
        self._pool: list[str] = []

    def text(self) -> str:
        kind = self._chance.random()
        if kind < 0.45 or (kind < 0.8 and not self._pool):
            return self._generator.text()
        if kind < 0.8:
            return self._changed(self._chance.choice(self._pool))
        return self._changed(self._chance.choice(corpus()))

    def keep(self, text: str) -> None:
        """This one is worth changing further."""
        if len(text) > MAX_LENGTH or ("#" in text and self._chance.random() < 0.9):
            return  # Most changes to a comment make another comment.
        if len(self._pool) < MAX_POOL:
            self._pool.append(text)
        else:
            self._pool[self._chance.randrange(MAX_POOL)] = text

    def _changed(self, text: str) -> str:
        for _ in range(self._chance.choice((1, 1, 2, 3))):
            text = self._change(text)
        return text

    def _change(self, text: str) -> str:
        """Take a piece out, repeat it, put something in or in its place, or go on with another text."""
        chance = self._chance
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.choice((0, 1, 1, 2, 4, 8)))
        before, piece, after = text[:start], text[start:end], text[end:]
        match chance.randrange(8):
            case 0:
                new = ""
            case 1:
                new = piece * 2
            case 2 | 3:
                new = chance.choice(TOKENS) + piece
            case 4:
                new = chance.choice(TOKENS)
            case 5:
                new = chance.choice(PAYLOADS) + piece
            case 6:
                other = chance.choice(self._pool) if self._pool else self._generator.text()
                new, after = other[chance.randint(0, len(other)) :], ""
            case _:
                new = piece
                after += chance.choice((" ", "; ", "\n", " && ", " | ")) + self._generator.text()
        return before + new + after
