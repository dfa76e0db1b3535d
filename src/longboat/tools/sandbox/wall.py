"""The wall: a read-only sandbox around commands that run without approval because they only read (A2).

The check that calls a command harmless can be wrong. So such a command runs where a mistake does no harm: it can write
only to its own temp directory, and cannot open sockets, signal or inspect other processes, or open files that a rule
denies. Landlock and a system call filter make the wall at almost no cost; without Landlock, bubblewrap and the
filter do. Must not know which commands are harmless, nor jobs.
"""

import asyncio
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from longboat.permissions.shell.syntax import names
from longboat.tools.process.git_config import git_directories
from longboat.tools.process.supervisor_client import program_paths, restricted_command
from longboat.tools.sandbox import landlock, seccomp
from longboat.tools.sandbox.denied_files import NONE_DENIED, DeniedFiles
from longboat.tools.sandbox.sandbox import SandboxedCommand, bubblewrap_lacks, bubblewrap_masks, bubblewrap_start

_VARIABLES = names("COLUMNS GIT_CEILING_DIRECTORIES HOME LANG LANGUAGE LINES LOGNAME SHELL TZ USER XDG_CONFIG_HOME")
"""The variables that a command behind the wall gets, in addition to PATH and LC_*."""

SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".netrc", ".pgpass", ".my.cnf"),
    *(".git-credentials", ".npmrc", ".pypirc", ".cargo/credentials.toml", ".config/gh", ".config/gcloud"),
    *(".config/git/credentials", ".config/op", ".config/sops", ".local/share/keyrings", ".mozilla"),
    *(".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history", ".python_history"),
)
"""Where programs keep secrets, below the home directory."""


MAX_FILE = 2**28
"""Maximum size of a file in the command's temp directory, in bytes: sort needs some space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    name: str
    """The name that people see."""


LANDLOCK = Wall(name="Landlock")
BUBBLEWRAP = Wall(name="bubblewrap")


@cache
def find_wall() -> Wall | str:
    """Find this system's wall, or the reason why there is none. The first call may take a moment."""
    if not seccomp.read_only(signals=True):
        return "this system has no system call filter that Longboat supports"
    if landlock.version():
        return LANDLOCK
    lack = bubblewrap_lacks(shutil.which("bwrap"))
    return f"the system has no Landlock, and {lack}" if lack else BUBBLEWRAP


async def describe_wall() -> str:
    """A description of the wall, for people."""
    wall = await asyncio.to_thread(find_wall)
    return f"read-only ({wall.name})" if isinstance(wall, Wall) else f"only a few, because there is no wall: {wall}"


class ReadOnlyWall:
    """The wall of one workspace. Its rules are built when first needed, and rebuilt when they may have changed."""

    def __init__(self, wall: Wall, *, workspace: Path, temp: Path, hidden: tuple[Path, ...] = ()) -> None:
        """`temp` is the only writable place, created if it is missing; `hidden` are the directories with our own keys
        and data."""
        self._wall = wall
        self._workspace = workspace
        self._temp = temp
        self._hidden = hidden
        self._ruleset: landlock.Ruleset | None = None
        self._denied = NONE_DENIED
        self._stamps: dict[str, tuple[int, ...]] = {}
        """The inputs of the ruleset, and the directories that it listed, as they were then."""

    async def around(self, argv: tuple[str, ...], denied: DeniedFiles) -> SandboxedCommand:
        """Wrap the command to run behind the wall."""
        if self._wall is BUBBLEWRAP:
            return await asyncio.to_thread(self._wrapped, argv, denied)
        if not self._is_current(denied):
            await asyncio.to_thread(self._make_ruleset, denied)
        return SandboxedCommand(argv=argv, ruleset=self._ruleset)

    def _make_ruleset(self, denied: DeniedFiles) -> None:
        self._temp.mkdir(parents=True, exist_ok=True, mode=0o700)
        stamps = {
            path: _stamp(path) for path in self._denied_paths(denied)
        }  # first, so that the next call sees changes made from now on
        version = landlock.version()
        closed = self._closed(denied)
        rules = landlock.LandlockRules(
            version=version,
            writable=(self._temp,),
            readable=self._readable_paths(closed),
            closed=closed,
            shared_memory=False,
            sieve=seccomp.read_only(signals=version >= landlock.CAN_SCOPE),
            file_size=MAX_FILE,
        )
        self._ruleset, self._denied, self._stamps = landlock.Ruleset(rules), denied, stamps

    def _is_current(self, denied: DeniedFiles) -> bool:
        """Whether a new ruleset would be the same. A ruleset names everything beside the closed paths."""
        known = self._ruleset is not None and self._denied == denied and self._temp.exists()
        return known and all(_stamp(path) == stamp for path, stamp in self._stamps.items())

    def _denied_paths(self, denied: DeniedFiles) -> set[str]:
        """The directories above closed paths, and the workspace, which must still be the same directory."""
        secrets = (_home() / name for name in SECRETS)
        closed = (*map(Path, landlock.CLOSED), *self._hidden, *denied.unreadable, *secrets)
        above = {str(parent) for path in closed for parent in path.parents}
        return above | {str(self._workspace)}

    def _readable_paths(self, closed: Iterable[Path]) -> tuple[Path, ...]:
        """The workspace, and the files that git keeps for it elsewhere. A `.git` file can name any place, so closed
        places do not count."""
        shut = tuple(Path(os.path.realpath(path)) for path in closed)
        places = (Path(os.path.realpath(path)) for path in git_directories(self._workspace))
        kept = (place for place in places if not any(place.is_relative_to(path) for path in shut))
        return (self._workspace, *(place for place in kept if str(place) not in ("/", *landlock.CLOSED)))

    def _closed(self, denied: DeniedFiles) -> tuple[Path, ...]:
        secrets = (path for name in SECRETS if (path := _home() / name).exists())
        return (*self._hidden, *secrets, *denied.unreadable)

    def _wrapped(self, argv: tuple[str, ...], denied: DeniedFiles) -> SandboxedCommand:
        self._temp.mkdir(parents=True, exist_ok=True, mode=0o700)
        temp = str(self._temp)
        walls = [*bubblewrap_start(), "--tmpfs", "/tmp"]
        for path in program_paths():  # Longboat itself may be installed there
            if Path(path).is_relative_to("/tmp"):
                walls += ["--ro-bind", path, path]
        closed = self._closed(denied)
        for path in map(str, self._readable_paths(closed)):
            walls += ["--ro-bind-try", path, path]
        walls += ["--bind", temp, temp, *bubblewrap_masks(closed)]
        inner = restricted_command(
            argv, None, seccomp.read_only(signals=True), MAX_FILE
        )  # it sees only its own processes
        return SandboxedCommand(argv=(shutil.which("bwrap") or "bwrap", *walls, "--", *inner))


def _home() -> Path:
    return Path(os.path.realpath(Path.home()))


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns


def walled_environ(environ: Mapping[str, str], *, workspace: Path, temp: Path) -> dict[str, str]:
    """Filter `environ` for a command behind the wall: nothing that makes programs load or run something, no secrets,
    and no programs of the workspace that could shadow others."""
    kept = {name: value for name, value in environ.items() if name in _VARIABLES or name.startswith("LC_")}
    return {**kept, "PATH": _path_outside(environ.get("PATH", ""), workspace), "TMPDIR": str(temp)}


@lru_cache(16)
def _path_outside(path: str, workspace: Path) -> str:
    places = [place for place in path.split(os.pathsep) if os.path.isabs(place)]
    outside = [place for place in places if not Path(os.path.realpath(place)).is_relative_to(workspace)]
    return os.pathsep.join(outside) or os.defpath
