"""A directory tree as ripgrep sees it: without hidden files and those that ignore files exclude.

The order of precedence is ripgrep's: `.rgignore`, `.ignore`, `.gitignore`, `.git/info/exclude`; in each of these the
deepest directory first, and in a file the last line that matches. The rules of git end at the root of a repository.
`.git` itself is never shown. Blocking: call it off the loop.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

_KINDS = (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")
_OF_GIT = _KINDS[2:]
_MAX_RULES = 2**20
"""Bytes of one ignore file that are looked at."""


@dataclass(frozen=True, slots=True)
class _Rules:
    """One ignore file: (does it ignore, its pattern), the last first; and the length of the path above it."""

    patterns: tuple[tuple[bool, re.Pattern[str]], ...]
    above: int

    def verdict(self, path: str) -> bool | None:
        below = path[self.above :]
        for ignores, pattern in self.patterns:
            # A match that ends earlier is one of a directory above: that was decided when we went into it.
            if any(found.lastgroup is None or found.end() == len(below) for found in pattern.finditer(below)):
                return ignores
        return None


@dataclass(frozen=True, slots=True)
class Ignores:
    """The rules that hold in one directory: for each kind, the deepest file first."""

    kinds: tuple[tuple[_Rules, ...], ...] = ((),) * len(_KINDS)

    def below(self, directory: str) -> "Ignores":
        """The rules that hold in `directory`, if these hold in its parent."""
        is_repository = os.path.lexists(os.path.join(directory, ".git"))
        kinds = []
        for name, above in zip(_KINDS, self.kinds, strict=True):
            own = _read_rules(directory, name)
            kinds.append((*own, *(() if is_repository and name in _OF_GIT else above)))
        return Ignores(tuple(kinds))

    def verdict(self, path: str) -> bool | None:
        """Whether an absolute path (a directory's ends in a slash) is ignored; None: nothing is said of it."""
        for kind in self.kinds:
            for rules in kind:
                if (ignored := rules.verdict(path)) is not None:
                    return ignored
        return None


def _read_rules(directory: str, name: str) -> tuple[_Rules, ...]:
    try:
        with open(os.path.join(directory, name), encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read(_MAX_RULES).removeprefix("\ufeff").split("\n")
    except OSError:
        return ()
    patterns = tuple(pattern for line in reversed(lines) if (pattern := _pattern(line)) is not None)
    return (_Rules(patterns, len(directory.rstrip("/")) + 1),) if patterns else ()


def _pattern(line: str) -> tuple[bool, re.Pattern[str]] | None:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # takes 50 ms: not at start-up

    # Git passes over a line that it does not understand.
    with suppress(ValueError, re.error):
        pattern = GitIgnoreSpecPattern(line.removesuffix("\r"))
        if pattern.include is not None and isinstance(pattern.regex, re.Pattern):
            return pattern.include, pattern.regex
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A directory and how much of it to show."""

    root: str
    hidden: bool = False
    ignored: bool = False

    def rules(self) -> Ignores | None:
        """The rules that hold in the root, from all directories above it."""
        if self.ignored:
            return None
        rules = Ignores()
        for directory in reversed((Path(self.root), *Path(self.root).parents)):
            rules = rules.below(str(directory))
        return rules

    def entries(self, directory: str, rules: Ignores | None, *, most: int | None = None) -> list[os.DirEntry[str]]:
        """What is to be seen in `directory`, sorted by name; of the first `most` names. One that cannot be read is
        empty."""
        try:
            with os.scandir(directory) as found:
                shown = [entry for entry in islice(found, most) if self._shows(entry, rules)]
        except OSError:
            return []
        return sorted(shown, key=lambda entry: entry.name)

    def _shows(self, entry: os.DirEntry[str], rules: Ignores | None) -> bool:
        if entry.name == ".git":
            return False
        path = f"{entry.path}/" if entry.is_dir(follow_symlinks=False) else entry.path
        verdict = rules.verdict(path) if rules is not None else None
        # As with ripgrep, a rule that takes a hidden name in (`!.github`) makes it visible.
        return not verdict and (verdict is False or self.hidden or not entry.name.startswith("."))

    def files(self, look_at: Callable[[str], None] = lambda _: None) -> Iterator[os.DirEntry[str]]:
        """All regular files. Symlinks are not followed. Calls `look_at` with each directory before it is read."""
        waiting = [(self.root, self.rules())]
        while waiting:
            directory, rules = waiting.pop()
            look_at(directory)
            for entry in self.entries(directory, rules):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, rules.below(entry.path) if rules is not None else None))
                elif entry.is_file(follow_symlinks=False):
                    yield entry
