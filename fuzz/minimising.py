"""A shorter text with the same property.

Owns the search. Must not know what the property is.
"""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", str, tuple[str, ...])

MAX_TRIES = 400


def minimise(whole: T, holds: Callable[[T], bool], *, max_tries: int = MAX_TRIES) -> T:
    """Take pieces away, large ones first, as long as the property holds."""
    tries = 0
    size = max(len(whole) // 2, 1)
    while size:
        at, shorter = 0, False
        while at < len(whole) and tries < max_tries:
            candidate: T = whole[:at] + whole[at + size :]  # type: ignore[assignment]
            tries += 1
            if holds(candidate):
                whole, shorter = candidate, True
            else:
                at += size
        if tries >= max_tries:
            return whole
        size = size if shorter and size == 1 else size // 2
    return whole
