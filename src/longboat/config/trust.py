"""Which project files the user trusts: `trusted.json`, beside the user's own file.

Owns that file. Trust applies to content: it is recorded with the SHA-256 of what the user reviewed, and a file that has
changed since is no longer trusted. Must not know what a file contains.
"""

import json
import os
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path

from longboat.config.private_file import locked, write
from longboat.config.source import contents
from longboat.errors import ConfigInvalid

MAX_RECORD = 4 << 20
"""About 30,000 directories. The file is read on the event loop, so a larger one would be noticeable."""


class TrustState(StrEnum):
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


def find_trust_state(trusted: Path, directory: Path, digest: str) -> TrustState:
    """Whether a file with this content in this directory is trusted."""
    known = recorded(trusted).get(_name(directory))
    if not known:
        return TrustState.STRANGER
    return TrustState.TRUSTED if digest in known.split() else TrustState.CHANGED


def recorded(trusted: Path) -> dict[str, str]:
    """The directories that were trusted, each with the digest of its file at that time. While a file is replaced, with
    two digests; without one if the user has forgotten it."""
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


def record(trusted: Path, directory: Path, *digests: str) -> None:
    """Trust a file of this content, or one of these, in this directory from now on."""
    with locked(trusted):
        _write(trusted, _still_there(recorded(trusted)) | {_name(directory): " ".join(digests)})


def forget(trusted: Path, directory: Path) -> bool:
    """Stop trusting it. False if it was not trusted."""
    with locked(trusted):
        known = recorded(trusted)
        if not known.get(_name(directory)):
            return False
        _write(trusted, _still_there(known | {_name(directory): ""}))
        return True


def follow(trusted: Path, directory: Path, digest: str, steps: Collection[tuple[str, str]]) -> bool:
    """Trust a file with this content if one step after the other leads to it from content that is trusted here. A step
    has the digests before and after a person's “always” on another node; before, it is empty if the file needed no
    trust. Such a step does not count where the user has forgotten the directory."""
    with locked(trusted):
        known = recorded(trusted)
        had = known.get(_name(directory))
        reached = {""} if had is None else set(had.split())
        while more := {after for before, after in steps if before in reached} - reached:
            reached |= more
        if digest not in reached:
            return False
        _write(trusted, _still_there(known | {_name(directory): digest}))
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
