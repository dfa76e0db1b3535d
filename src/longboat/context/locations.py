"""Where the agent's context files are: the project's, up to its repository's root, and the user's own."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from longboat.config.load import user_config_file
from longboat.context.stamps import Stamps


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A directory that may contain definitions. Files in it must be inside `within`, with symlinks resolved; the user's
    own files may be anywhere."""

    path: Path
    within: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Locations:
    """All paths except `config_dir` and `home` have symlinks resolved."""

    directory: Path
    root: Path
    """The repository's root, or the workspace itself where there is no repository."""
    config_dir: Path
    home: Path

    @property
    def descent(self) -> tuple[Path, ...]:
        """From the repository's root down to the workspace."""
        return tuple(reversed(tuple(self._ascent())))

    def folders(self, kind: str, *names: str, own: tuple[str, ...] = ()) -> tuple[Folder, ...]:
        """Where definitions of a kind may lie, the nearest first: that one wins. `own`: where in the user's home, if
        not in `.agents` alone."""
        at_home = tuple(self.home / name for name in own or (f".agents/{kind}",))
        user = (self.config_dir / kind, *at_home)
        theirs = (above / name for above in self._ascent() for name in names)
        return (
            *(Folder(path=path, within=self.root) for path in theirs if path not in user),
            *(Folder(path=path, within=None) for path in user),
        )

    def _ascent(self) -> Iterator[Path]:
        yield self.directory
        if self.directory != self.root:
            for above in self.directory.parents:
                yield above
                if above == self.root:
                    return


def find_locations(directory: Path, *, environ: Mapping[str, str], user_dir: Path, stamps: Stamps) -> Locations:
    """`user_dir` is the user's home directory."""
    stamps.look_at(directory)
    directory = Path(os.path.realpath(directory))
    return Locations(
        directory=directory,
        root=_repository(directory, stamps),
        config_dir=user_config_file(environ, user_dir).parent,
        home=user_dir,
    )


def _repository(directory: Path, stamps: Stamps) -> Path:
    try:
        trusted = {directory.stat().st_uid, os.getuid()}
    except OSError:
        return directory
    for above in (directory, *directory.parents):
        stamps.look_at(above / ".git")
        try:
            owner = (above / ".git").stat().st_uid
        except OSError:
            continue
        # Someone who may write to a directory above, as to /tmp, must not be able to make it our repository.
        return above if owner in trusted else directory
    return directory
