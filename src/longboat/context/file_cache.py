"""Reads whole files, with a size limit, and caches them until they change. Must not know what they mean.

A problem with a file is a sentence that names its place: the loaders collect these and continue.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from longboat.context.locations import Folder
from longboat.context.stamps import FRESH_NS, Stamps

MAX_BYTES = 2**20
MAX_ENTRIES = 200
"""Definitions of a kind that are read from one folder."""
_MAX_NAMES = 5_000
_MAX_KEPT = 1_000


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T")
N = TypeVar("N", bound=Named)
_Stamp = tuple[int, int, int]


class BadFile(Exception):
    """A file cannot be used; the message says where, what is wrong and what to do."""

    def __init__(self, path: Path, message: str, *, line: int | None = None) -> None:
        super().__init__(f"{display_path(path)}{'' if line is None else f':{line}'}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Generic[T]):
    """What was found, and the problems with the rest."""

    items: tuple[T, ...] = ()
    problems: tuple[str, ...] = ()


class FileCache:
    """Safe to use from several threads: at worst a file is read twice."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Path, Callable[..., Any]], tuple[_Stamp, Any]] = {}
        self.stamps = Stamps()
        """All paths that were looked at."""

    def for_reading(self, stamps: Stamps) -> "FileCache":
        """The same cache, for one reading that tells these stamps what it looks at."""
        cache = FileCache()
        cache._kept, cache.stamps = self._kept, stamps
        return cache

    def get(self, path: Path, make: Callable[[Path, str], T], *, within: Path | None) -> T | None:
        """What `make` makes of the file's text, None if there is no such file. Raises BadFile, as `make` may too.

        `make` is a module's function: with the path it is the name under which the result is kept.
        """
        key = (path, make)
        self.stamps.look_at(path)
        try:
            stamp = _stamp(path.stat())
        except (FileNotFoundError, NotADirectoryError):
            self._kept.pop(key, None)
            return None
        except (OSError, ValueError) as error:
            raise BadFile(path, f"cannot be read: {_reason(error)}.") from None
        _check_within(path, within)
        kept = self._kept.get(key)
        if kept is None or kept[0] != stamp:
            kept = (stamp, _made(path, make))
            if time.time_ns() - stamp[0] > FRESH_NS:
                self._keep(key, kept)
        if isinstance(kept[1], BadFile):
            raise kept[1].with_traceback(None)
        made: T = kept[1]
        return made

    def text(self, path: Path, *, within: Path | None) -> str | None:
        return self.get(path, _text, within=within)

    def _keep(self, key: tuple[Path, Callable[..., Any]], kept: tuple[_Stamp, Any]) -> None:
        if len(self._kept) >= _MAX_KEPT:
            self._kept.clear()
        self._kept[key] = kept


def collect(paths: Found[tuple[Path, Folder]], cache: FileCache, make: Callable[[Path, str], T | None]) -> Found[T]:
    """The definitions that the files hold; each file once, however many names lead to it."""
    items: list[T] = []
    problems = list(paths.problems)
    seen: set[str] = set()
    for path, folder in paths.items:
        real = os.path.realpath(path)
        if real in seen:
            continue
        seen.add(real)
        try:
            item = cache.get(path, make, within=folder.within)
        except BadFile as bad:
            problems.append(str(bad))
        else:
            items += [item] if item is not None else []
    return Found(items=tuple(items), problems=tuple(problems))


def load_nearest(
    folders: Iterable[Folder],
    cache: FileCache,
    make: Callable[[Path, str], N | None],
    *,
    file_of: Callable[[str], str | None],
) -> Found[N]:
    """The definitions in these folders, the nearest of each name. `file_of` maps an entry of a folder to the file that
    defines it, or to None."""
    paths: list[tuple[Path, Folder]] = []
    problems: list[str] = []
    for folder in folders:
        names = entries(folder.path, cache)
        problems += names.problems
        paths += [(folder.path / file, folder) for file in map(file_of, names.items) if file is not None]
    found = collect(Found(items=tuple(paths), problems=tuple(problems)), cache, make)
    nearest: dict[str, N] = {}
    for item in found.items:
        nearest.setdefault(item.name, item)
    return Found(items=tuple(nearest.values()), problems=found.problems)


def entries(directory: Path, cache: FileCache) -> Found[str]:
    """The names in a directory, sorted and bounded; none if it is not there."""
    cache.stamps.look_at(directory)
    try:
        with os.scandir(directory) as scan:
            names = sorted(entry.name for entry in islice(scan, _MAX_NAMES))
    except (FileNotFoundError, NotADirectoryError):
        return Found()
    except OSError as error:
        return Found(problems=(str(BadFile(directory, f"cannot be listed: {_reason(error)}.")),))
    names = [name for name in names if not name.startswith(".")]
    if len(names) <= MAX_ENTRIES:
        return Found(items=tuple(names))
    return Found(items=tuple(names[:MAX_ENTRIES]), problems=(too_many(directory),))


def too_many(directory: Path) -> str:
    return str(BadFile(directory, f"has more than {MAX_ENTRIES} entries; the rest is ignored."))


def display_path(path: Path) -> str:
    """A path as text that can be sent: bytes that are no UTF-8 become escapes, and it stays on one line."""
    text = str(path).encode("utf-8", "backslashreplace").decode()
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def cut(text: str, limit: int, where: str) -> str:
    """At most `limit` characters, and if that is not all, a note of where the rest is."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()}\n[cut: {len(text) - limit} more characters in {where}]"


def _made(path: Path, make: Callable[[Path, str], T]) -> T | BadFile:
    try:
        return make(path, _read(path))
    except BadFile as bad:
        return bad


def _text(path: Path, text: str) -> str:
    return text


def _check_within(path: Path, within: Path | None) -> None:
    if within is not None and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(within)):
        # A cloned repository must not have the user's own files sent to a model.
        raise BadFile(path, f"is a link out of {display_path(within)} and is not read. Use a copy instead of a link.")


def _read(path: Path) -> str:
    try:
        # Never waits for the other end of a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise BadFile(path, "is not a regular file.")
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadFile(path, f"cannot be read: {_reason(error)}.") from None
    if len(content) > MAX_BYTES:
        raise BadFile(path, f"is larger than {MAX_BYTES >> 20} MB and is not read. Make it shorter.")
    return _decoded(path, content)


def _decoded(path: Path, content: bytes) -> str:
    at = content.find(b"\0")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start
    if at >= 0:
        raise BadFile(path, "expected UTF-8 text.", line=content.count(b"\n", 0, at) + 1)
    return text.replace("\r\n", "\n")


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
