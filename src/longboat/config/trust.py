"""Which project files the user trusts: `trusted.json`, beside the user's own file.

Owns that file. Trust applies to content: it is recorded with the SHA-256 of what the user reviewed, and a file that has
changed since is no longer trusted. Must not know what a file contains.
"""

import json
import os
from enum import StrEnum
from pathlib import Path

from longboat.config.private_file import locked, write
from longboat.config.source import contents
from longboat.errors import ConfigInvalid

MAX_RECORD = 4 << 20
"""About 30,000 directories. The file is read on the event loop, so a larger one would be noticeable."""


class Standing(StrEnum):
    """Whether the user trusts a project's file. Only what a trusted file names may be run."""

    HARMLESS = "harmless"
    """The file needs no trust, or does not exist."""
    TRUSTED = "trusted"
    CHANGED = "changed"
    """The file was trusted, but has changed since."""
    STRANGER = "stranger"


def trusted_file(user_file: Path) -> Path:
    """Where the record is, or would be."""
    return user_file.with_name("trusted.json")


def standing(trusted: Path, directory: Path, digest: str) -> Standing:
    """Whether a file with this content in this directory is trusted."""
    known = recorded(trusted).get(_name(directory))
    if known is None:
        return Standing.STRANGER
    return Standing.TRUSTED if known == digest else Standing.CHANGED


def recorded(trusted: Path) -> dict[str, str]:
    """The directories that were trusted, each with the digest of its file at that time."""
    content = contents(
        trusted, most=MAX_RECORD, advice="so `longboat trust` did not write it; delete it and trust the project again"
    )
    if content is None:
        return {}
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not all(isinstance(digest, str) for digest in value.values()):
        raise ConfigInvalid(
            f"{trusted}: `longboat trust` did not write this file. Delete it and trust the project again."
        )
    return value


def record(trusted: Path, directory: Path, digest: str) -> None:
    """Trust a file of this content in this directory from now on."""
    with locked(trusted):
        _write(trusted, _still_there(recorded(trusted)) | {_name(directory): digest})


def forget(trusted: Path, directory: Path) -> bool:
    """Stop trusting it. False if it was not trusted."""
    with locked(trusted):
        known = recorded(trusted)
        if known.pop(_name(directory), None) is None:
            return False
        _write(trusted, _still_there(known))
        return True


def _name(directory: Path) -> str:
    return os.path.realpath(directory)


def _still_there(known: dict[str, str]) -> dict[str, str]:
    """Without the directories that no longer exist: worktrees and checkouts come and go, and would fill the record."""
    return {directory: digest for directory, digest in known.items() if not _is_gone(directory)}


def _is_gone(directory: str) -> bool:
    try:
        os.stat(directory)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:  # it may come back
        return False
    return False


def _write(trusted: Path, known: dict[str, str]) -> None:
    content = json.dumps(known, indent=2, sort_keys=True)
    if len(content) > MAX_RECORD:
        raise ConfigInvalid(
            f"{trusted}: this file is full. Run `longboat trust --forget` for projects you no longer need."
        )
    write(trusted, content)
