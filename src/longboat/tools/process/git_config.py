"""What a git repository's configuration could run even for read-only commands. Blocking: call it off the event loop.

Owns the list of keys that are known to be harmless; any other key is a reason for doubt. Must not know permissions.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from longboat.permissions.shell.syntax import names

MAX_CONFIG = 2**18
MAX_INDEX = 2**26
"""Bytes that are looked at; a larger file is a doubt."""

_GITLINK = b"\0\0\xe0\0"
"""The mode of a submodule in an index. A size may look the same: that costs a question."""

_SECTION = re.compile(r'\[[ \t]*([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?[ \t]*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?")
_HARMLESS_SECTIONS = names(
    """advice branch color commit extensions fetch gc http index init maintenance pack pull push rebase
        rerere tag url user"""
)
_HARMLESS_KEYS = {
    "core": names(
        """abbrev autocrlf bare bigfilethreshold commentchar compression eol filemode ignorecase
        logallrefupdates longpaths precomposeunicode preloadindex protecthfs protectntfs quotepath
        repositoryformatversion safecrlf sharedrepository sparsecheckout sparsecheckoutcone splitindex
        symlinks trustctime untrackedcache"""
    ),
    "diff": names("""algorithm colormoved context indentheuristic mnemonicprefix renames submodule"""),
    "lfs": frozenset({"access", "repositoryformatversion"}),
    "merge": names("conflictstyle ff log renames"),
    "remote": names(
        """fetch gh-resolved mirror partialclonefilter promisor prune prunetags push pushurl skipdefaultupdate
        tagopt url"""
    ),
    "status": names("branch short showstash showuntrackedfiles"),
    "submodule": names("active branch ignore recurse url"),
}
_HOOK = "post-index-change"
"""The one hook that a look can run: `git status` brings the index up to date."""


def find_doubt(directory: Path) -> str:
    """Why even looking at the repository around `directory` may run a program; empty where nothing speaks for it."""
    try:
        for repository, tree in _repositories(directory):
            for name in ("config", "config.worktree"):
                if key := _first_doubt(repository / name, tree):
                    return f"{repository / name} sets {key}, which may run a program"
            if os.path.lexists(repository / "hooks" / _HOOK):
                return f"{repository / 'hooks' / _HOOK} may run"
            if _GITLINK in _content(repository / "index", MAX_INDEX):
                return "it has submodules, which have their own configuration"
    except (OSError, ValueError):
        return "git's configuration cannot be read"
    return ""


def git_directories(directory: Path) -> tuple[Path, ...]:
    """What git reads beside `directory`: the tree of its repository, and where that is kept."""
    try:
        return tuple(dict.fromkeys(path for pair in _repositories(directory) for path in reversed(pair)))
    except (OSError, ValueError):
        return ()


def _repositories(directory: Path) -> Iterator[tuple[Path, Path]]:
    """Where git finds its configuration: in `.git`, in what a file `.git` names, and in what is common to worktrees.
    Each with the directory where its hooks run."""
    for parent in (directory, *directory.parents):
        place = parent / ".git"
        if place.is_file():
            place = parent / _content(place, MAX_CONFIG).decode().removeprefix("gitdir:").strip()
        elif not place.is_dir():
            if not ((parent / "HEAD").exists() and (parent / "objects").is_dir() and (parent / "refs").is_dir()):
                continue
            place = parent  # a bare one
        yield place, parent
        if common := _content(place / "commondir", MAX_CONFIG).decode().strip():
            yield place / common, parent
        return


def _content(path: Path, most: int) -> bytes:
    """Empty if there is no file. Raises OSError if it is not a regular file, such as a pipe that no one writes to."""
    if not os.path.lexists(path):
        return b""
    if not path.is_file():
        raise IsADirectoryError(path)
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError("too large")
    return content


def _first_doubt(path: Path, tree: Path) -> str:
    text = _content(path, MAX_CONFIG).decode(errors="replace")
    return next((key for key, value in _settings(text) if not _is_harmless(key, value, tree)), "")


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Each key as `section.key` with its value. A line that cannot be parsed gives an unknown key."""
    section = ""
    for line in map(str.strip, text.removeprefix("\ufeff").split("\n")):
        rest = line
        while found := _SECTION.match(rest):
            # `[diff "x"]` and the old `[diff.x]` have settings of their own, with other names.
            named = found[2] is not None or "." in found[1]
            section = found[1].lower().partition(".")[0] + (".*" if named else "")
            rest = rest[found.end() :].strip()
        if not rest or rest[0] in "#;":
            continue
        found = _KEY.fullmatch(rest)
        if not found or rest.endswith("\\"):
            yield f"{rest[:40]!r}", ""
        else:
            yield f"{section}.{found[1].lower()}", found[2] or ""


def _is_harmless(key: str, value: str, tree: Path) -> bool:
    section, _, name = key.rpartition(".")
    first = section.removesuffix(".*")
    if key == "core.hookspath":
        plain = re.fullmatch(r"[A-Za-z0-9_./-]+", value)
        return plain is not None and not os.path.lexists(tree / value / _HOOK)
    if section in ("diff.*", "merge.*"):
        return False  # A driver.
    return first in _HARMLESS_SECTIONS or name in _HARMLESS_KEYS.get(first, ())
