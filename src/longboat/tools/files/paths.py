"""Paths from a model: made absolute, with symlinks resolved, inside or outside the workspace. Reads no file.

Permissions see the resolved path, and the resolved path is opened: a symlink out of the workspace counts as outside.
"""

import difflib
import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from longboat.tools.context import ToolError

MAX_LEVELS = 256
"""Directories are made and walked by recursion, here and in the tools of others."""
MAX_NAME = 255
"""Bytes of one name, as all common file systems have it."""
LOOK_AT = 5_000
"""Names of a directory that are compared with a name that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    given: str
    path: Path
    """Absolute, without a symlink in it."""
    shown: str
    """Relative to the workspace, or absolute outside of it; always printable."""
    inside: bool


def resolve(directory: Path, given: str) -> Target:
    """Where `given` leads, seen from the workspace `directory`. Looks at the disk: call it off the loop."""
    if not given:
        raise ToolError("The path is empty. Pass a file or directory, absolute or relative to the workspace.")
    if "\0" in given:
        raise ToolError("The path contains a NUL character, which no file name can.")
    try:
        os.fsencode(given)
        path = Path(os.path.realpath(directory / _without_tilde(given)))
        _check_possible(path)
    except UnicodeEncodeError:
        raise ToolError(f"{_brief(given)} is not a valid file name.") from None
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ToolError(f"{_brief(given)} is not a valid file name: {reason}.") from None
    inside = path.is_relative_to(directory)
    return Target(given=given, path=path, shown=display_path(directory, path), inside=inside)


def _check_possible(path: Path) -> None:
    """Raise OSError if no file can exist there, so that later code need not handle that."""
    if len(path.parts) > MAX_LEVELS:
        raise OSError(f"It has more than {MAX_LEVELS} levels")
    if any(len(os.fsencode(name)) > MAX_NAME for name in path.parts):
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        path.lstat()


def _brief(given: str) -> str:
    shown = printable(given)
    return repr(shown if len(shown) <= 200 else f"{shown[:200]}…")


def _without_tilde(given: str) -> Path:
    # Only `~` and `~/…` mean the home: `~$report.docx` and `~other` are names like any other.
    return Path(given).expanduser() if given == "~" or given.startswith("~/") else Path(given)


def display_path(directory: Path, path: Path) -> str:
    return printable(str(path.relative_to(directory) if path.is_relative_to(directory) else path))


def printable(name: str) -> str:
    """A name from the disk as text that can be sent: bytes that are no UTF-8 become escapes."""
    return name.encode("utf-8", "backslashreplace").decode()


def missing(target: Target) -> ToolError:
    """What to say of a path that is not there: the nearest names, if looking at them gives nothing away."""
    if target.shown == ".":
        return ToolError("The workspace's directory no longer exists.")
    message = f"{target.shown} does not exist."
    if target.inside and (near := _nearest(target)):
        return ToolError(f"{message} Did you mean {' or '.join(near)}?")
    return ToolError(f"{message} Use ls or glob to find it.")


def _nearest(target: Target) -> list[str]:
    there, name = target.path.parent, target.path.name
    while not there.is_dir() and there != there.parent:
        there, name = there.parent, there.name
    above = Path(target.shown).parents
    levels = len(target.path.relative_to(there).parts)
    if levels > len(above):
        return []  # the workspace itself is gone, and `there` is outside of it
    try:
        names = [entry.name for entry in islice(os.scandir(there), LOOK_AT)]
    except OSError:
        return []
    prefix = above[levels - 1]
    lower = {each.lower(): each for each in sorted(names)}
    close = difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.6)
    return [printable(str(prefix / lower[each])) for each in close]


def directory_of(target: Target) -> Path:
    """The target, which must be a directory."""
    if target.path.is_dir():
        return target.path
    if os.path.lexists(target.path):
        raise ToolError(f"{target.shown} is a file, not a directory. Use view to read it.")
    raise missing(target)


def unreadable(target: Target, error: OSError) -> ToolError:
    return ToolError(f"{target.shown} cannot be opened: {error.strerror or error}.")
