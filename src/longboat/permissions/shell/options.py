"""Parses a command line as a program does: which words are options, which are their values, and which are operands.

Owns the parsing of options whose number of values is declared. An undeclared option, a missing value or a value that
looks like an option makes the whole line unreadable, because the program may read it differently. Must not know any
program.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from longboat.permissions.shell.syntax import Word, names

_NEGATIVE_NUMBER = re.compile(r"-[0-9]+")
"""The only value that may begin like an option: `head -n -5`. No option of digits does any harm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one command that are known to be harmless, each with the values that it takes."""

    flags: str = ""
    """Letters without a value."""
    valued: str = ""
    """Letters with a value: the rest of the word, or else the next word."""
    optional: str = ""
    """Letters with a value only if it is in the same word."""
    longs: frozenset[str] = frozenset()
    longs_valued: frozenset[str] = frozenset()
    """With a value after `=`, or else in the next word."""
    longs_optional: frozenset[str] = frozenset()
    """With a value only after `=`."""
    files: frozenset[str] = frozenset()
    """Options whose value names a file to read."""
    texts: frozenset[str] = frozenset()
    """Options whose value is never a path, even if it is a separate word."""
    numbers: bool = False
    """`-20` is an option too."""
    max_operands: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionValue:
    name: str
    """Without its dashes."""
    value: Word | None
    separate: bool = False
    """The value is a word of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """The words after a command's name, as the command parses them."""

    given: tuple[OptionValue, ...]
    operands: tuple[Word, ...]

    def has(self, *names: str) -> bool:
        return any(each.name in names for each in self.given)

    def values(self, *names: str) -> list[Word]:
        return [each.value for each in self.given if each.name in names and each.value is not None]

    def paths(self, options: Options) -> list[Word]:
        """Values that may be paths. A separate one counts unless it is surely a text: should the command not take it as
        a value after all, it is an operand."""
        return [
            each.value
            for each in self.given
            if each.value is not None
            and (each.name in options.files or (each.separate and each.name not in options.texts))
        ]


def declare(
    flags: str = "",
    valued: str = "",
    optional: str = "",
    longs: str = "",
    *,
    files: str = "",
    texts: str = "",
    numbers: bool = False,
    max_operands: int | None = None,
) -> Options:
    """Long options are written as a help text would: `all color? max-count=` are one without a value, one that may have
    one, and one that must."""
    words = longs.split()
    return Options(
        flags=flags,
        valued=valued,
        optional=optional,
        longs=frozenset(word for word in words if word[-1] not in "=?"),
        longs_valued=frozenset(word[:-1] for word in words if word[-1] == "="),
        longs_optional=frozenset(word[:-1] for word in words if word[-1] == "?"),
        files=names(files),
        texts=names(texts),
        numbers=numbers,
        max_operands=max_operands,
    )


def read_command_line(options: Options, words: Sequence[Word]) -> CommandLine | None:
    """None where a word is not surely a harmless option, the value of one, or an operand."""
    given: list[OptionValue] = []
    operands: list[Word] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.text == "--":
            operands += rest
            break
        if word.text == "-" or not word.text.startswith("-"):
            operands.append(word)
            continue
        found = _long(options, word) if word.text.startswith("--") else _letters(options, word)
        if found is None:
            return None
        if found and found[-1].separate:
            value = rest.pop(0) if rest else Word("-")
            if value.text.startswith("-") and not _NEGATIVE_NUMBER.fullmatch(value.text):
                return None
            found[-1] = OptionValue(name=found[-1].name, value=value, separate=True)
        given += found
    if options.max_operands is not None and len(operands) > options.max_operands:
        return None
    return CommandLine(given=tuple(given), operands=tuple(operands))


def _long(options: Options, word: Word) -> list[OptionValue] | None:
    """Programs take unique beginnings for the whole name. What a beginning is unique for differs between versions, so
    only whole names count."""
    name, equals, value = word.text[2:].partition("=")
    if equals:
        known = name in options.longs_valued | options.longs_optional
        return [OptionValue(name=name, value=Word(value, word.kind))] if known else None
    if name in options.longs | options.longs_optional:
        return [OptionValue(name=name, value=None)]
    return [OptionValue(name=name, value=None, separate=True)] if name in options.longs_valued else None


def _letters(options: Options, word: Word) -> list[OptionValue] | None:
    letters = word.text[1:]
    if options.numbers and letters.isdecimal():
        return []
    found: list[OptionValue] = []
    for at, letter in enumerate(letters):
        value = letters[at + 1 :]
        if letter in options.flags:
            found.append(OptionValue(name=letter, value=None))
        elif letter in options.optional or (letter in options.valued and value):
            return [*found, OptionValue(name=letter, value=Word(value, word.kind) if value else None)]
        elif letter in options.valued:
            return [*found, OptionValue(name=letter, value=None, separate=True)]
        else:
            return None
    return found
