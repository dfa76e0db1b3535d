"""What a search looks through, and what a person types into it: for every implementation of the store.

Pure. The text of a message is what people and the agent said: prompts, answers, the names of attached files, and the
beginning of what a tool was called with (the command, the path). Neither reasoning nor what tools answered is part of
it: that is mostly the content of files, which grep finds better.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from longboat.wire.models import FilePart, Message, Role, TextPart, ToolCallPart
from longboat.wire.search import Snippet

MAX_TEXT = 64 * 1024
"""Characters of one message; what comes after them is not found."""
MAX_CALL = 400
"""Characters of one tool call."""
MAX_WORDS = 32
"""Of a query; what comes after them is ignored."""

MATCH, END = "\x01", "\x02"
"""Around a match in a marked text. No searchable text has them."""
_UNMARKED = {ord(MATCH): " ", ord(END): " ", 0: " "}

SEARCHED_ROLES = (Role.USER, Role.ASSISTANT)


def searchable_text(message: Message) -> str:
    """One line, without what is too much; empty if there is nothing to find."""
    if message.role not in SEARCHED_ROLES:
        return ""
    return one_line(" ".join(_pieces(message)))


def one_line(text: str) -> str:
    return " ".join(text[:MAX_TEXT].translate(_UNMARKED).split())


def _pieces(message: Message) -> Iterator[str]:
    for part in message.parts:
        match part:
            case TextPart():
                yield part.text
            case FilePart():
                yield part.name
            case ToolCallPart():
                yield f"{part.name} {_words_of_call(part.input)}"


def _words_of_call(arguments: str) -> str:
    """The texts among the arguments: a command, a path, a pattern."""
    try:
        decoded = msgspec.json.decode(arguments)
    except (msgspec.MsgspecError, RecursionError):
        return ""
    values = decoded.values() if isinstance(decoded, dict) else ()
    return " ".join(value[:MAX_CALL] for value in values if isinstance(value, str))[:MAX_CALL]


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must follow each other. `prefix`: the last of them may go on."""

    text: str
    prefix: bool = False


def parse_search(typed: str) -> Sequence[Term]:
    """What to look for: all of the words, and what is in quotes as a phrase. The last word may be unfinished, unless
    it is quoted. Nothing that is typed is an error."""
    terms: list[Term] = []
    typed = typed.encode(errors="ignore").decode().translate(_UNMARKED)  # no index takes NUL or half a character
    for place, piece in enumerate(typed.split('"')):
        is_quoted = place % 2 == 1
        terms += [Term(text) for text in ([piece] if is_quoted else piece.split()) if _has_word(text)]
    ends_in_quotes = typed.rstrip().endswith('"')
    if len(terms) > MAX_WORDS:
        terms = terms[:MAX_WORDS]
    elif terms and not ends_in_quotes:
        terms[-1] = Term(terms[-1].text, prefix=True)
    return terms


def _has_word(text: str) -> bool:
    """Whether anything is left of it when it is split into words."""
    return any(unicodedata.category(char)[0] in "LN" for char in text)


def snippet_from(marked: str) -> Snippet:
    """A text in which the matches are marked, and where they are without the marks."""
    pieces: list[str] = []
    matches: list[tuple[int, int]] = []
    length = 0
    for place, piece in enumerate(marked.split(MATCH)):
        inside, mark, rest = piece.partition(END)
        if place and mark:
            matches.append((length, length + len(inside)))
        pieces += (inside, rest)
        length += len(inside) + len(rest)
    return Snippet(text="".join(pieces), matches=tuple(matches))
