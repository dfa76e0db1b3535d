"""Resolves the paths in a shell command on disk: where links lead, and which files its patterns may match.

The rules see only names. This module looks at the directories, and answers “yes” when it is not sure what bash would
do: a bash pattern depends on quotes, on the locale and on shell options.
"""

import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from longboat.permissions.guarded_files import GUARDED, GUARDED_DIRECTORIES, is_guarded
from longboat.permissions.verdict import NamedPath, Need, named_paths
from longboat.tools.context import ToolError
from longboat.tools.files.paths import printable
from longboat.tools.process.git_config import find_doubt

MAX_FITTING = 20_000
"""Files that a command's pattern may match: all of them are checked before it is permitted."""

_START = re.compile(r"(?:[^*?\[\]()!+@\\]|[!+@](?!\())*")
_END = re.compile(r"[^*?\[\]()\\]*\Z")
"""Letters that match themselves in every kind of pattern."""
_QUOTES = re.compile(r"""['"\\]""")
_OWN_CWD = re.compile(r"\A/+proc/+[^/]+/+cwd(?=/|\Z)")
"""Of the command, which is not ours."""
_SETS_GLOBBING = re.compile(r"shopt|dotglob|globstar|GLOBIGNORE|BASHOPTS")


@dataclass(frozen=True, slots=True)
class GuardedLinks:
    """Other names of the workspace's guarded files: a write there changes the guarded file."""

    targets: dict[str, str]
    """Where guarded names lead that are symbolic links."""
    files: dict[tuple[int, int], str]
    """Device and inode of guarded files that have several hard links."""

    def name_of(self, real: str) -> str:
        """The guarded name under which a path can be reached; empty if there is none."""
        for target, name in self.targets.items():
            if real == target or real.startswith(target + "/"):
                return name + real[len(target) :]
        return self.files.get(_identity(real), "") if self.files else ""


def look_up(need: Need, directory: Path, workspace: Path) -> Need:
    """The need of a command with what only the disk can tell."""
    found: dict[str, bool] = {}
    options_set = _sets_options(need)
    links = guarded_links(workspace)
    for named in named_paths(need.argument, directory=str(workspace), start=str(directory)):
        for path in _on_disk(named, workspace, options_set=options_set):
            for real in map(printable, _led_to(named, path, links)):
                found[real] = found.get(real, True) and named.looks
    return replace(
        need,
        paths=tuple(found),
        only_read=tuple(path for path, looks in found.items() if looks),
        doubt=find_doubt(workspace),
    )


def files_named(need: Need, workspace: Path) -> Iterator[str]:
    """Every path that the words of a command may name, inside the workspace or not, if known."""
    options_set = _sets_options(need)
    start = str(workspace / need.directory)
    for named in named_paths(need.argument, directory=str(workspace), start=start, outside=True):
        path = _OWN_CWD.sub(lambda _: start, os.path.expanduser(named.path))
        at = replace(named, path=path)
        yield from islice(_matches(at, workspace, options_set=options_set), MAX_FITTING)


def _sets_options(need: Need) -> bool:
    """Whether it may set shell options that make bash match more."""
    return _SETS_GLOBBING.search(_QUOTES.sub("", need.argument)) is not None


def _led_to(named: NamedPath, path: str, links: GuardedLinks) -> Iterator[str]:
    """What the rules must know of beside the name: where it leads, and guarded files that it does not name."""
    real = os.path.realpath(path)
    if real != os.path.normpath(path):
        yield real
    if named.looks:
        return
    if named.glob and is_guarded(real):
        yield real
    if alias := links.name_of(real):
        yield alias


def guarded_links(workspace: Path) -> GuardedLinks:
    links = GuardedLinks({}, {})
    for path in _guarded_paths(workspace):
        real = os.path.realpath(path)
        if not is_guarded(real) and not workspace.is_relative_to(real):
            links.targets.setdefault(real, str(path))
        if (found := _status(real)) and stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            links.files.setdefault(_identity(real), str(path))
    return links


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def _identity(path: str) -> tuple[int, int]:
    found = _status(path)
    return (found.st_dev, found.st_ino) if found else (0, 0)


def _guarded_paths(workspace: Path) -> Iterator[Path]:
    """Those that exist, and the entries of their directories, which may include a link."""
    for name in GUARDED:
        place = workspace / name
        if os.path.lexists(place):
            yield place
        if name in GUARDED_DIRECTORIES and place.is_dir():
            yield from (place / "config", *place.glob("hooks/*")) if name == ".git" else place.iterdir()


def _on_disk(named: NamedPath, workspace: Path, *, options_set: bool) -> Iterator[str]:
    """The paths of a name: itself, or whatever may match it."""
    for count, path in enumerate(_matches(named, workspace, options_set=options_set)):
        if count == MAX_FITTING:
            raise ToolError(f"{named.path} matches more than {MAX_FITTING:,} files. Name fewer.")
        yield path


def _matches(named: NamedPath, workspace: Path, *, options_set: bool) -> Iterator[str]:
    if not named.glob:
        return iter((named.path,))
    # Signs in the path of the workspace itself are none of the command's.
    place = f"{workspace}/" if named.path.startswith(f"{workspace}/") else "/"
    return _fitting(place, named.path[len(place) :], options_set=options_set)


def _fitting(place: str, pattern: str, *, options_set: bool) -> Iterator[str]:
    """What may match the pattern below a directory. `options_set`: shell options may make bash match more."""
    first, _, rest = pattern.partition("/")
    path = os.path.join(place, first)
    if options_set and first == "**":
        yield from (os.path.join(top, name) for top, *names in os.walk(place) for name in (*names[0], *names[1]))
    elif _START.fullmatch(first):
        if not rest and os.path.lexists(path):
            yield path
        elif rest:
            yield from _fitting(path, rest, options_set=options_set)
    else:
        for name in _entries(place):
            if _may_fit(first, name, dotfiles=options_set):
                found = os.path.join(place, name)
                yield from _fitting(found, rest, options_set=options_set) if rest else (found,)


def _entries(place: str) -> list[str]:
    try:
        return os.listdir(place)
    except OSError:
        return []


def _may_fit(pattern: str, name: str, *, dotfiles: bool) -> bool:
    """Whether a name begins and ends like the pattern: what is between may be anything, since brackets may have been in
    quotes, a `?` is a byte in some locales, and ranges of letters differ."""
    if name.startswith(".") and not pattern.startswith(".") and not dotfiles:
        return False
    name, pattern = _fold_name(name), _fold_name(pattern)
    prefix, suffix = _START.match(pattern), _END.search(pattern)
    if prefix is None or suffix is None:
        return True
    return (
        len(name) >= len(prefix.group()) + len(suffix.group())
        and name.startswith(prefix.group())
        and name.endswith(suffix.group())
    )


def _fold_name(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
