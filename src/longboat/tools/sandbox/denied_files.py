"""The files on disk that deny rules match: for sandboxes, which know paths but not patterns.

Blocking: call it off the event loop. Must not know commands.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from longboat.permissions.verdict import PathPattern, Rule

MAX_ENTRIES = 50_000
"""How many files and directories to search for one rule. Beyond that, only the check of the command protects them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeniedFiles:
    """Resolved paths. A directory stands for everything below it."""

    unreadable: tuple[Path, ...] = ()
    unwritable: tuple[Path, ...] = ()


NONE_DENIED = DeniedFiles()


def find_denied(rules: Sequence[Rule], workspace: Path) -> DeniedFiles:
    """Find the files that these deny rules keep from being read or changed."""
    root = str(workspace)
    unreadable = {path for rule in rules if rule.governs_reading for path in _Search(root).matches(rule)}
    unwritable = {path for rule in rules if rule.governs_changes for path in _Search(root).matches(rule)}
    return DeniedFiles(unreadable=tuple(sorted(unreadable)), unwritable=tuple(sorted(unwritable)))


class _Search:
    """For one rule."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._left = MAX_ENTRIES

    def matches(self, rule: Rule) -> Iterator[Path]:
        if isinstance(rule.pattern, PathPattern):
            yield from map(_resolved, self._fitting(rule.pattern))
        elif rule.pattern is None:  # Names may be seen, and git may look at its own files.
            yield from (_resolved(path) for path, _ in self._entries(self._root) if os.path.basename(path) != ".git")

    def _fitting(self, pattern: PathPattern) -> Iterator[str]:
        start, depth = _start(pattern)
        place = os.path.normpath(os.path.join(self._root, start))
        if depth == 0 or pattern.fits(place, self._root):
            if os.path.lexists(place):
                yield place
            return
        yield from self._below(place, pattern, depth)

    def _below(self, directory: str, pattern: PathPattern, depth: float) -> Iterator[str]:
        for path, is_directory in self._entries(directory):
            if pattern.fits(path, self._root):
                yield path
            elif is_directory and depth > 1:
                yield from self._below(path, pattern, depth - 1)

    def _entries(self, directory: str) -> Iterator[tuple[str, bool]]:
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if self._left == 0:
                        return
                    self._left -= 1
                    yield entry.path, entry.is_dir(follow_symlinks=False)
        except OSError:
            return  # Missing, or nothing that the command could list either.


def _resolved(path: str) -> Path:
    return Path(os.path.realpath(path))


def _start(pattern: PathPattern) -> tuple[str, float]:
    """Return the directory above all matches, and how many levels below it they can be: 0 if the pattern is a single
    path."""
    plain = ""
    rest: list[str] = []
    for sign in pattern.signs():
        if rest or "*" in sign or sign == "?":
            rest.append(sign)
        else:
            plain += sign[1:] if len(sign) == 2 and sign[0] == "\\" else sign
    if not rest:
        return plain, 0
    start = plain.rpartition("/")[0]
    deep = any("**" in sign for sign in rest)
    below = plain[len(start) :].lstrip("/") + "".join(rest)
    return start or ("/" if pattern.absolute else "."), float("inf") if deep else below.count("/") + 1
