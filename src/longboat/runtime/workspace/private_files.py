"""The server's own files: tokens, keys, logins, and the sessions of all projects. No tool of the agent opens them.

Owns which files these are, and recognizes them under any name: by path for rules and sandboxes, and by device and inode
for whatever a hard link, a mount or `/proc/self/root` leads to. Must not know how a tool names its files.
"""

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from longboat.config.credentials import credentials_file
from longboat.config.load import FILE_NAME, user_config_file
from longboat.config.private_file import new_file
from longboat.config.settings import Settings
from longboat.tools.registry import built_in_traits
from longboat.wire.tools import Governs

_NOT_SECRET = frozenset({"lock", "server.log", "web-port"})


def private_rules(directory: Path, settings: Settings) -> tuple[str, ...]:
    """What denies the agent the server's own files. Where they lie below the workspace, as they do if that is the
    user's home, all of them are hidden; what its commands print stays readable."""
    data, config = settings.data_dir, _config_dir()
    kept = ((data, "*"), (data / "logins", "**"), (settings.runtime_dir, "**"), (config, "**"))
    patterns: list[str] = []
    for place, inside in kept:
        real = Path(os.path.realpath(place))
        if real.is_relative_to(directory):
            patterns.append(str(real.relative_to(directory) / inside))
    patterns += [str(path) for path in _secrets(data)]
    patterns += [f"{os.path.realpath(data / 'logins')}/**", *map(os.path.realpath, _key_files())]
    return tuple(f"{tool}({pattern})" for pattern in dict.fromkeys(patterns) for tool in _governing_tools())


@cache
def _governing_tools() -> tuple[str, ...]:
    """The tools whose rules hold for all reading, and for all changes."""
    found = {traits.governs: name for name, traits in reversed(list(built_in_traits().items()))}
    return found[Governs.READING], found[Governs.EDITING]


def _secrets(data: Path) -> Iterator[Path]:
    real = Path(os.path.realpath(data))
    return (real / name for name in ("token", "push-key.pem", "longboat.db", "longboat.db-wal", "search.db"))


def _key_files() -> tuple[Path, Path]:
    """The stored keys, and what a kill may leave of a file that was to replace them."""
    file = credentials_file(_config_dir() / FILE_NAME)
    return file, new_file(file)


def _config_dir() -> Path:
    return user_config_file(os.environ, Path.home()).parent


class PrivateFiles:
    def __init__(self, settings: Settings) -> None:
        self._data = settings.data_dir
        self._runtime = settings.runtime_dir

    def known(self) -> Callable[[str], str]:
        """A test that tells under which name the server knows the file or directory that a path leads to; empty if it
        is none of its own. Looks at the disk: call it, and the test, off the loop."""
        identities = {found: path for path in self._paths() if (found := _identity(path)) is not None}
        return lambda path: identities.get(_identity(path) or (-1, -1), "")

    def hidden_with(self, hidden: Callable[[str], bool]) -> Callable[[str], bool]:
        """The test whether rules hide a path, extended by these files under any other name."""
        known = cache(self.known)  # when it is first needed, which is off the loop
        return lambda path: hidden(path) or bool(known()(path))

    def _paths(self) -> Iterator[str]:
        yield str(self._data)
        yield from map(str, _key_files())
        yield from (path for path in _entries(self._data) if os.path.basename(path) not in _NOT_SECRET)
        for place in (self._data / "logins", self._runtime):
            for top, _, names in os.walk(place):
                yield top
                yield from (os.path.join(top, name) for name in names)


def _entries(place: Path) -> list[str]:
    try:
        with os.scandir(place) as entries:
            return [entry.path for entry in entries if not entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
