"""Whose files the user trusts: `trusted.json`, beside the user's own file.

Owns that file. Trust is of content: it is recorded with the SHA-256 of what the user has seen, and a file that has
changed since is a stranger again. Must not know what a file asks for.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from longboat.config.source import contents
from longboat.errors import ConfigInvalid
from longboat.regular import opener

MAX_RECORD = 4 << 20
"""Some 30,000 directories. Read on the event loop, where more would be felt."""


class Standing(StrEnum):
    """How a project's file stands with the user. Only what a trusted file names may be run."""

    HARMLESS = "harmless"
    """It asks for nothing that needs trust, or is not there."""
    TRUSTED = "trusted"
    CHANGED = "changed"
    """It was trusted, and is not what it was."""
    STRANGER = "stranger"


def trusted_file(user_file: Path) -> Path:
    """Where the record lies, or would."""
    return user_file.with_name("trusted.json")


def standing(trusted: Path, directory: Path, digest: str) -> Standing:
    """How a file of this content in this directory stands, if it asks for anything."""
    known = recorded(trusted).get(_name(directory))
    if known is None:
        return Standing.STRANGER
    return Standing.TRUSTED if known == digest else Standing.CHANGED


def recorded(trusted: Path) -> dict[str, str]:
    """The directories that were trusted, each with the digest of its file at that time."""
    content = contents(
        trusted, most=MAX_RECORD, advice="which `longboat trust` never writes: delete it, then trust again"
    )
    if content is None:
        return {}
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not all(isinstance(digest, str) for digest in value.values()):
        raise ConfigInvalid(f"{trusted}: this is not what `longboat trust` writes: delete it, then trust again.")
    return value


def record(trusted: Path, directory: Path, digest: str) -> None:
    """Trust a file of this content in this directory from now on."""
    with _locked(trusted):
        _write(trusted, _still_there(recorded(trusted)) | {_name(directory): digest})


def forget(trusted: Path, directory: Path) -> bool:
    """Trust it no longer. False if it was not trusted."""
    with _locked(trusted):
        known = recorded(trusted)
        if known.pop(_name(directory), None) is None:
            return False
        _write(trusted, _still_there(known))
        return True


def _name(directory: Path) -> str:
    return os.path.realpath(directory)


def _still_there(known: dict[str, str]) -> dict[str, str]:
    """Without the directories that are gone: work trees and check-outs come and go, and would fill the record."""
    return {directory: digest for directory, digest in known.items() if not _is_gone(directory)}


def _is_gone(directory: str) -> bool:
    try:
        os.stat(directory)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:  # it may come back
        return False
    return False


@contextmanager
def _locked(trusted: Path) -> Iterator[None]:
    """Two who change the record at once do it one after the other, so that nothing forgotten comes back."""
    try:
        trusted.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(trusted.with_suffix(".lock"), "a", opener=opener) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise ConfigInvalid(f"{trusted}: cannot be written: {error.strerror}") from None


def _write(trusted: Path, known: dict[str, str]) -> None:
    """Whole or not at all, and for its owner alone."""
    content = json.dumps(known, indent=2, sort_keys=True)
    if len(content) > MAX_RECORD:
        raise ConfigInvalid(f"{trusted}: this is full: `longboat trust --forget` what you need no longer.")
    fresh = trusted.with_suffix(".new")
    with open(fresh, "w", encoding="ascii", opener=opener) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, trusted)
