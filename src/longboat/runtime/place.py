"""Where a workspace is, and where it keeps what its commands print."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A workspace as the store knows it."""

    workspace_id: str
    path: Path
    created_at: str


def scratches(data_dir: Path) -> Path:
    """Where each workspace has a directory of its own for what its commands print."""
    return data_dir / "scratch"
