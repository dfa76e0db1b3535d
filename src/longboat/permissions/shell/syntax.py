"""The parts of a parsed shell command: words, commands, redirections, and the findings so far.

Owns these types and nothing else. Must not know how they are parsed, nor how they are used.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from longboat.permissions.shell.variables import Values

MAX_DEPTH = 30
MAX_WORDS = 4_000
"""Enough for any command that a person would read, and quick to parse."""


def names(text: str) -> frozenset[str]:
    """A set written as a line of words."""
    return frozenset(text.split())


class NotUnderstood(Exception):
    """The parser is not sure about a part of the command; the message tells the person who is asked which."""


class Kind(StrEnum):
    """What is known of a word before it runs."""

    LITERAL = "literal"
    """All of it: `text` is the value."""
    GLOB = "glob"
    """It stands for names of files: `text` is the pattern."""
    STATUS = "status"
    """All but the number that `$?` stands for."""
    DYNAMIC = "dynamic"
    """Nothing: it may become any number of words. `text` is the source."""


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    kind: Kind = Kind.LITERAL

    @property
    def literal(self) -> bool:
        return self.kind is Kind.LITERAL


@dataclass(frozen=True, slots=True)
class Assignment:
    name: str
    value: Word


Span = tuple[int, int]
"""Where a part stands in the text: its first code point, and the one after its last."""


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: its words, and what it sets in its own environment."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    span: Span | None = field(default=None, compare=False)
    """Where it stands; for one inside a wrapper, where the wrapper does. None if that is not known."""
    piped: bool = field(default=False, compare=False)
    """Whether it reads the output of another command."""


@dataclass(frozen=True, slots=True)
class Redirection:
    target: Word
    writes: bool
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class Findings:
    """What has been read so far of a text and the texts inside it."""

    commands: list[Command] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    """Names that an expansion or a statement sets in the shell itself."""
    settings: list[Assignment] = field(default_factory=list)
    """Those of them whose value is written in the command."""
    reasons: list[str] = field(default_factory=list)
    """Why the whole is opaque although it could be parsed to its end."""
    expanded: list[str] = field(default_factory=list)
    """Variables whose values are put in, as written."""
    fed: list[str] = field(default_factory=list)
    """Those of them that a command reads as its input."""
    known: dict[str, Word] = field(default_factory=dict)
    """Variables of which the value is known just here."""
    values: Values = field(default_factory=Values)
    """Which variables decide what is done."""
    sets_ifs: bool = False
    """Whether words may be split at characters other than blanks."""
    words: int = 0
    """How many, with the parts inside them."""
    again: int = 0
    """How many characters were read more than once."""

    def mark(self) -> tuple[int, ...]:
        return (*map(len, self._lists()), self.words)

    def back_to(self, mark: tuple[int, ...]) -> None:
        """Forget what was found since."""
        for found, length in zip(self._lists(), mark, strict=False):
            del found[length:]
        self.words = mark[-1]

    def _lists(self) -> tuple[list[Any], ...]:
        own = (self.commands, self.redirections, self.variables, self.reasons, self.expanded, self.fed, self.settings)
        return (*own, *self.values.lists())
