"""The paths that the words of a shell command may name, and whether these are outside the workspace.

Owns what a program may treat as a path, and relative to which directories. Must not know what is allowed, nor look at
the disk.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass

from longboat.permissions.assessment import Assessment
from longboat.permissions.overlap import may_begin, may_name
from longboat.permissions.rules import PathPattern, Rule, relative_to
from longboat.permissions.shell.harmless import harmless_paths
from longboat.permissions.shell.reach import find_reach
from longboat.permissions.shell.script import Command, Kind, Script, Word, plain_name

DEVICES = frozenset({"/dev/null", "/dev/stderr", "/dev/stdin", "/dev/stdout"})
GLOB_SIGN = re.compile(r"[*?\[]")
_WEB_ADDRESS = re.compile(r"\b(?:https?|ssh|git)://(?!\S*\.\.)[^\s,]*")
_HIDDEN_GLOB = re.compile(r"(?:\A|/)\.[^/]*[*?\[]")
_LETTERS = re.compile(r"[A-Za-z0-9]+")
_MAX_LETTERS = 40
_CD_AND = re.compile(r"\s*cd [A-Za-z0-9_][A-Za-z0-9_./-]* && ")
_JOINED = re.compile(r"&&|[<>]&|&>")
_SEPARATOR = re.compile(r"[;&\n`(){}]|\|\||popd")
"""After these a command may run although the `cd` failed, or in another directory. In quotes they are harmless, but are
treated the same."""
_ROOTED = re.compile(r"(?<![\w.*?\]])/.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class NamedPath:
    """An absolute path that a command may name. Not normalized: after a link, `..` leads elsewhere."""

    path: str
    _: KW_ONLY
    glob: bool = False
    """It is a pattern, and stands for whatever fits it."""
    looks: bool = False
    """It is named by a command that only reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellPaths(Assessment):
    script: Script
    start: str
    """Where it runs: the root of the workspace, or a directory below."""
    moves: tuple[str, ...]
    """Where it changes its directory to."""

    def named(self, *, outside: bool = False) -> tuple[NamedPath, ...]:
        """The paths inside the workspace that its words and redirections may name; with `outside`, all of them."""
        found: list[Iterator[NamedPath]] = []
        for command in self.script.commands:
            looks = harmless_paths(command) is not None
            found += [self._named(word, looks=looks, outside=outside) for word in command.words]
        found += [self._named_within(each) for each in self.script.commands]
        for each in self.script.redirections:
            found.append(self._named(each.target, looks=not each.writes, outside=outside))
        return tuple(dict.fromkeys(path for paths in found for path in paths))

    def _named(self, word: Word, *, looks: bool, outside: bool) -> Iterator[NamedPath]:
        word = _any_status(word)
        at_home = outside and word.text.startswith("~/") and not GLOB_SIGN.search(word.text)
        if at_home and word.kind is Kind.DYNAMIC:
            yield NamedPath(word.text, looks=looks)
        for text in () if word.kind is Kind.DYNAMIC else possible_paths(word.text):
            glob = word.kind is Kind.GLOB and bool(GLOB_SIGN.search(text))
            for path in (posixpath.join(base, text) for base in self.bases()):
                if outside or relative_to(posixpath.normpath(path), self.directory) is not None:
                    yield NamedPath(path, glob=glob, looks=looks)

    def _named_within(self, command: Command) -> Iterator[NamedPath]:
        """What is in the directories that it may name, where it shows the files right in them."""
        for reach in find_reach(command, harmless_paths(command) or ()):
            for path in () if reach.deep else self.from_bases(reach.place):
                if relative_to(path, self.directory) is not None:
                    yield from (NamedPath(f"{path}/{names}", glob=True, looks=True) for names in ("*", ".*"))

    def bases(self) -> tuple[str, ...]:
        """The directories that relative paths may start from. A command that moves twice is asked anyway."""
        moved = tuple(posixpath.normpath(posixpath.join(self.start, move)) for move in self.moves[:1])
        return moved if len(self.moves) == 1 and _runs_only_there(self.argument) else (self.start, *moved)

    def from_bases(self, text: str) -> Iterator[str]:
        return (posixpath.normpath(posixpath.join(base, text)) for base in self.bases())

    def paths_in(self, text: str) -> Iterator[str]:
        return (path for part in possible_paths(text) if part for path in self.from_bases(part))

    @property
    def elsewhere(self) -> bool:
        return len(self.moves) > 1 or any(base != self.directory for base in self.bases())

    def places_of(self, target: Word) -> tuple[str, ...]:
        if not target.literal or target.text in DEVICES:
            return ()
        return tuple(dict.fromkeys(self.from_bases(target.text)))

    def may_be(self, word: Word, rule: Rule) -> bool:
        """Whether a word may name what the rule names. Of words that are only known when it runs, those with braces
        alone can be told."""
        if not isinstance(rule.pattern, PathPattern):
            return rule.pattern is None
        word = _any_status(word)
        match word.kind:
            case Kind.GLOB:
                return any(may_name(path, rule.pattern, self.directory) for path in self.paths_in(word.text))
            case Kind.DYNAMIC:
                start, brace, _ = word.text.partition("{")
                if not brace or re.search(r"[$`~'\"\\<>]", word.text):
                    return False
                return any(may_begin(path, rule.pattern, self.directory) for path in self.from_bases(start))
        return any(rule.pattern.fits(path, self.directory) for path in self.paths_in(word.text))

    def strays(self, word: Word) -> bool:
        """Whether a word may be a path that leads out of the workspace."""
        if word.kind is Kind.DYNAMIC:
            return True
        if word.kind is Kind.GLOB and _HIDDEN_GLOB.search(word.text):
            return True
        return any(self.outside(path) for path in possible_paths(word.text))

    def outside(self, path: str) -> bool:
        if path.startswith("~"):
            return True
        if path in DEVICES:
            return False
        return any(relative_to(each, self.directory) is None for each in self.from_bases(path))


def _runs_only_there(text: str) -> bool:
    """Whether a command is `cd DIRECTORY && …`, and all of the rest runs there or not at all."""
    return _CD_AND.match(text) is not None and _SEPARATOR.search(_JOINED.sub("", text)) is None


def _any_status(word: Word) -> Word:
    """With a pattern for the number that `$?` stands for."""
    return Word(word.text.replace("$?", "*"), Kind.GLOB) if word.kind is Kind.STATUS else word


def moves_of(script: Script) -> tuple[str, ...]:
    moves = (command.words for command in script.commands if plain_name(command.words[0]) in ("cd", "pushd"))
    return tuple(words[1].text for words in moves if len(words) > 1)


def possible_paths(text: str) -> Iterator[str]:
    """The parts of a word that a program may take for a path: `x`, `--file=x`, `-fx`, `a:x`, `@x`."""
    if "file:" in text.casefold():
        yield "/"
    text = _WEB_ADDRESS.sub("", text)
    if text.startswith("-") and not text.startswith("--"):
        # Letters of other options may stand before the one with the value: `-vfx`.
        letters = _LETTERS.match(text, 1)
        end = letters.end() if letters else 1
        yield from (text[at:] for at in range(2, min(end, _MAX_LETTERS) + 1))
        yield text[max(end, 2) :] if end <= _MAX_LETTERS else "/"
    if text.startswith("-") and (rooted := _ROOTED.search(text)):
        yield rooted.group()
    if text.startswith(("+", "%")):
        yield text[1:]
    parts = re.split(r"[=:@,;|'\"]", text)
    yield from parts if len(parts) == 1 else (text, *parts)
