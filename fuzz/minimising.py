"""A shorter text with the same property.

Owns the search. Must not know what the property is.
"""

from collections.abc import Callable

Given = str | tuple[str, ...]
"""A text, or the words of a command line."""

MAX_TRIES = 400


def minimise(whole: Given, holds: Callable[[Given], bool], *, max_tries: int = MAX_TRIES) -> Given:
    """Take pieces away, large ones first, as long as the property holds."""
    tries = 0
    size = max(len(whole) // 2, 1)
    while size:
        at, shorter = 0, False
        while at < len(whole) and tries < max_tries:
            candidate = _without(whole, at, size)
            tries += 1
            if holds(candidate):
                whole, shorter = candidate, True
            else:
                at += size
        if tries >= max_tries:
            return whole
        size = size if shorter and size == 1 else size // 2
    return whole


def _without(whole: Given, at: int, size: int) -> Given:
    if isinstance(whole, str):  # The same for both; only so does a type checker see that it is.
        return whole[:at] + whole[at + size :]
    return whole[:at] + whole[at + size :]
