"""AGENTS.md, or CLAUDE.md if there is no AGENTS.md beside it: a project's instructions for the agent (A5).

Read from the repository's root down to the workspace, after the user's own; those in subdirectories when the agent
reads a file there. A line may include another file with `@path`, one level deep and only from inside the project.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from longboat.context.file_cache import BadFile, FileCache, Found, cut, display_path
from longboat.context.locations import Locations

NAMES = ("AGENTS.md", "CLAUDE.md")
MAX_CHARS = 60_000
"""The limit for all instructions together. The nearest ones are kept first."""
ROOM_FROM = 4_000
"""Models with a smaller context window, in tokens, get no instructions."""
MAX_IMPORTS = 20
FOREIGN = frozenset({".git", "node_modules", "site-packages", ".venv", "venv"})
"""Directories with other people's code: files there are not instructions of this project."""

_IMPORT = re.compile(r"(?<![\w@/.])@([^\s@`'\"<>|]+)")
_CODE = re.compile(r"`[^`]*`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class _Import:
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class _Sheet:
    text: str
    imports: tuple[_Import, ...]


class _Reader:
    """Reads instruction files, each only once."""

    def __init__(self, cache: FileCache) -> None:
        self._cache = cache
        self._seen: set[str] = set()
        self.items: list[Instruction] = []
        self.problems: list[str] = []

    def read(self, directory: Path, within: Path | None, *, imports_within: Path) -> None:
        """Read the instructions of one directory and the files they import."""
        self._cache.stamps.look_at(directory)
        path = next((directory / name for name in NAMES if os.path.lexists(directory / name)), None)
        sheet = self._add(path, within) if path is not None else None
        for each in sheet.imports if sheet else ():
            self._bring(directory, path or directory, each, imports_within)

    def _add(self, path: Path, within: Path | None) -> _Sheet | None:
        real = os.path.realpath(path)
        if real in self._seen:
            return None
        self._seen.add(real)
        try:
            sheet = self._cache.get(path, _sheet, within=within)
        except BadFile as bad:
            self.problems.append(str(bad))
            return None
        if sheet is not None and sheet.text:
            self.items.append(Instruction(path=path, text=sheet.text))
        return sheet

    def _bring(self, directory: Path, path: Path, each: _Import, within: Path) -> None:
        target = directory / each.name
        self._cache.stamps.look_at(target)
        if not os.path.isfile(target):
            # `@alice`, `@types/node` and `@/components` are not files. Only a name that must mean a file is reported.
            if each.name.endswith(".md"):
                self.problems.append(str(BadFile(path, f"@{each.name} does not exist.", line=each.line)))
        elif not Path(os.path.realpath(target)).is_relative_to(os.path.realpath(within)):
            message = f"@{each.name} is outside {display_path(within)} and is not read."
            self.problems.append(str(BadFile(path, message, line=each.line)))
        else:
            self._add(Path(os.path.normpath(target)), within)


def load(places: Locations, cache: FileCache) -> Found[Instruction]:
    """Load the instructions for the whole workspace: the user's own first, the workspace's last."""
    reader = _Reader(cache)
    reader.read(places.config_dir, None, imports_within=places.config_dir)
    for directory in places.descent:
        reader.read(directory, places.root, imports_within=places.root)
    return _apply_limit(reader)


def load_for(places: Locations, cache: FileCache, path: Path) -> Found[Instruction]:
    """Load the additional instructions for one file or directory below the workspace, the outermost first."""
    path = Path(os.path.realpath(places.directory / path))
    reader = _Reader(cache)
    for directory in _between(places.directory, path if path.is_dir() else path.parent):
        reader.read(directory, places.root, imports_within=places.root)
    return _apply_limit(reader)


def _between(workspace: Path, directory: Path) -> Iterable[Path]:
    if not directory.is_relative_to(workspace):
        return ()
    steps = directory.relative_to(workspace).parts
    if FOREIGN.intersection(steps):
        return ()
    return (workspace.joinpath(*steps[: count + 1]) for count in range(len(steps)))


def _apply_limit(reader: _Reader) -> Found[Instruction]:
    kept = shorten(reader.items, MAX_CHARS)
    problems = [
        str(BadFile(item.path, f"was cut off: all instructions together exceed {MAX_CHARS} characters."))
        for item, short in zip(reversed(reader.items), reversed(kept), strict=True)
        if short.text != item.text
    ]
    return Found(items=kept, problems=(*reader.problems, *problems))


def shorten(instructions: Sequence[Instruction], limit: int) -> tuple[Instruction, ...]:
    """Cut the instructions to `limit` characters in total, with a note wherever something was cut. The nearest ones,
    which come last, are kept first."""
    left = limit
    kept: list[Instruction] = []
    for item in reversed(instructions):
        kept.append(replace(item, text=cut(item.text, left, display_path(item.path))))
        left = max(left - len(item.text), 0)
    return tuple(reversed(kept))


def for_small_window(instructions: Sequence[Instruction], window: int) -> tuple[Instruction, ...]:
    """Cut the instructions to an eighth of the window's tokens beyond `ROOM_FROM`, at four characters a token."""
    limit = (window - ROOM_FROM) // 2
    return shorten(instructions, limit) if limit > 0 else ()


def _sheet(path: Path, text: str) -> _Sheet:
    return _Sheet(text.strip(), tuple(_imports(text))[:MAX_IMPORTS])


def _imports(text: str) -> Iterator[_Import]:
    fence = ""
    for number, line in enumerate(text.split("\n"), start=1):
        mark = line.strip()[:3]
        if mark in ("```", "~~~"):
            fence = "" if fence == mark else fence or mark
        elif not fence and "@" in line:
            for match in _IMPORT.finditer(_CODE.sub("", line)):
                if name := match[1].rstrip(".,;:!?)]}"):
                    yield _Import(name, number)
