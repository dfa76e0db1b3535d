"""What is checked out in a git repository. Blocking: call it off the event loop."""

from dataclasses import dataclass
from pathlib import Path

from longboat.context.stamps import Stamps


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    name: str
    """The branch, or the beginning of the commit's id."""
    is_branch: bool


def read_head(directory: Path, stamps: Stamps | None = None) -> Head | None:
    """Read from the repository's own files: git itself would run the programs that the repository's configuration
    names, and no one has been asked about those. None outside of a repository."""
    stamps = Stamps() if stamps is None else stamps
    for above in (directory, *directory.parents):
        place = above / ".git"
        stamps.look_at(place)
        try:
            if place.is_file():  # a worktree or a submodule
                place = above / place.read_text("utf-8")[:4096].removeprefix("gitdir:").strip()
            stamps.look_at(place / "HEAD")
            head = (place / "HEAD").read_text("utf-8")[:4096].strip()
        except (OSError, UnicodeDecodeError):
            continue
        if head.startswith("ref: "):
            return Head(name=head.removeprefix("ref: refs/heads/"), is_branch=True)
        return Head(name=head[:12], is_branch=False)
    return None
