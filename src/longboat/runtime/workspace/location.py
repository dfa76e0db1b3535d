"""The paths of a workspace: where the output of its commands is stored."""

from pathlib import Path


def output_directory(data_dir: Path) -> Path:
    """Where each workspace has a directory of its own for what its commands print."""
    return data_dir / "scratch"
