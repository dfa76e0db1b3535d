"""The paths of a workspace: its directory, and where the output of its commands is stored."""

import os
from pathlib import Path

from longboat.config.credentials import credentials_file
from longboat.config.load import FILE_NAME, user_config_file
from longboat.config.settings import Settings


def private_rules(directory: Path, settings: Settings) -> tuple[str, ...]:
    """What denies the agent the server's own files where they lie below the workspace, as they do if that is the
    user's home: tokens, keys, and the sessions of all projects. What its commands print stays readable. The stored keys
    are denied wherever they lie."""
    config = user_config_file(os.environ, Path.home()).parent
    data = settings.data_dir
    kept = ((data, "*"), (data / "logins", "**"), (settings.runtime_dir, "**"), (config, "**"))
    rules: list[str] = []
    for place, inside in kept:
        real = Path(os.path.realpath(place))
        if real.is_relative_to(directory):
            pattern = str(real.relative_to(directory) / inside)
            rules += [f"view({pattern})", f"edit({pattern})"]
    stored = os.path.realpath(credentials_file(config / FILE_NAME))
    return (*rules, f"view({stored})", f"edit({stored})")


def scratches(data_dir: Path) -> Path:
    """Where each workspace has a directory of its own for what its commands print."""
    return data_dir / "scratch"
