"""Whether a person's answer to a question of ours, chosen or typed, is a yes or a no. Anything else is a wish."""

_YES = frozenset({"yes", "y", "ok", "go on", "go"})
_NO = frozenset({"no", "n", "end"})


def agrees(said: str, choice: str) -> bool:
    """`choice` is the one that means yes."""
    return _word(said) in _YES | {_word(choice)}


def declines(said: str, choice: str) -> bool:
    """`choice` is the one that means no."""
    return _word(said) in _NO | {_word(choice)}


def _word(said: str) -> str:
    return said.strip().lower().rstrip(".!")
