"""What a typed text means as an answer to a permission or a question. Pure.

The page has the same in `answering.js`.
"""

from longboat.wire.asks import Permission, PermissionAnswer, Question

_WORDS = {
    PermissionAnswer.ONCE: ("y", "yes", "ok", "allow", "allow once"),
    PermissionAnswer.SESSION: ("s", "session", "allow for this session"),
    PermissionAnswer.ALWAYS: ("a", "always", "always allow"),
    PermissionAnswer.DENY: ("d", "n", "no", "deny"),
}


def answer_in(permission: Permission, text: str) -> PermissionAnswer | None:
    """The answer that a short word stands for, if this call accepts it. Any other text is the reason of a denial."""
    said = text.strip().lower().rstrip(".!")
    found = next((answer for answer, words in _WORDS.items() if said in words), None)
    if permission.danger and len(said) == 1 and found is not PermissionAnswer.DENY:
        return None  # a slip must not allow it
    if found in (PermissionAnswer.SESSION, PermissionAnswer.ALWAYS) and not (permission.grant or permission.wide):
        return None
    return found


def texts_in(question: Question, text: str) -> tuple[str, ...]:
    """The answers in a text: numbers stand for choices, anything else is the answer itself."""
    text, pieces = text.strip(), pieces_of(question, text)
    if all(is_number_in(question, piece) for piece in pieces):
        return tuple(dict.fromkeys(question.choices[int(piece) - 1] for piece in pieces))
    return (text,)


def pieces_of(question: Question, text: str) -> list[str]:
    return [piece.strip() for piece in text.split(",")] if question.multiple else [text.strip()]


def is_number_in(question: Question, text: str) -> bool:
    """Whether it is the number of a choice."""
    return text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= len(question.choices)
