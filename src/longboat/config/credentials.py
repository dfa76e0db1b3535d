"""The keys that `longboat connect` and the apps' set-up store: `credentials.json`, beside the user's own file.

Owns that file and who may have a key: each is stored with the kind of the provider and the address it was entered for,
and is used only for these. Where the system has a keyring (`longboat[keyring]`), the file says only that the
key is there. Must not know how a key is used. Nothing here shows one.
"""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from longboat.config import system_keyring
from longboat.config.private_file import locked, write
from longboat.config.source import contents
from longboat.errors import ConfigInvalid

MAX_FILE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    type: str
    """The kind of provider, as in `longboat.json`."""
    base_url: str | None = None
    """The address that the key was entered for; None is the provider's own."""
    api_key: str | None = field(default=None, repr=False)
    """None if the system's keyring has it."""
    keyring: str | None = None
    """A new random word whenever the key in the keyring is replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """All stored keys, as they were read at one moment."""

    file: Path
    digest: str = ""
    """Of the file: another one means that some key is another one."""
    by_provider: Mapping[str, Credential] = field(default_factory=dict)

    def has(self, provider: str) -> bool:
        return provider in self.by_provider

    def key_for(self, provider: str, kind: str, base_url: str | None) -> str | None:
        """The provider's key, if it was stored for this kind of provider at this address. May ask the system's keyring,
        which takes a while: call it off the loop."""
        known = self.by_provider.get(provider)
        if known is None or (known.type, known.base_url) != (kind, base_url):
            return None
        if known.keyring is None:
            return known.api_key
        return system_keyring.read(_account(self.file, provider, known.keyring))


def credentials_file(user_file: Path) -> Path:
    """Where the keys are, or would be."""
    return user_file.with_name("credentials.json")


def read_credentials(file: Path) -> Credentials:
    content = contents(
        file, most=MAX_FILE, advice="so `longboat connect` did not write it; delete it and connect again"
    )
    if content is None:
        return Credentials(file=file)
    try:
        known = msgspec.json.decode(content, type=dict[str, Credential])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Without the reason, which may quote the file.
        raise ConfigInvalid(
            f"{file}: `longboat connect` did not write this file. Delete it and connect again."
        ) from None
    return Credentials(file=file, digest=hashlib.sha256(content).hexdigest(), by_provider=known)


def store_key(file: Path, provider: str, *, kind: str, base_url: str | None, api_key: str) -> None:
    """Keep the key for this kind of provider at this address, instead of one stored before. Blocking."""
    with locked(file):
        known = dict(read_credentials(file).by_provider)
        before = known.get(provider)
        version = secrets.token_hex(8)
        in_keyring = system_keyring.write(_account(file, provider, version), api_key)
        known[provider] = Credential(
            type=kind,
            base_url=base_url,
            api_key=None if in_keyring else api_key,
            keyring=version if in_keyring else None,
        )
        _save(file, known)
        if before is not None and before.keyring is not None:
            system_keyring.delete(_account(file, provider, before.keyring))


def forget_key(file: Path, provider: str) -> bool:
    """Delete the stored key. False if there was none. Blocking."""
    with locked(file):
        known = dict(read_credentials(file).by_provider)
        found = known.pop(provider, None)
        if found is None:
            return False
        _save(file, known)
        if found.keyring is not None:
            system_keyring.delete(_account(file, provider, found.keyring))
        return True


def _save(file: Path, known: Mapping[str, Credential]) -> None:
    write(file, msgspec.json.format(msgspec.json.encode(known), indent=2).decode() + "\n")


def _account(file: Path, provider: str, word: str) -> str:
    """Two homes of one user have keys of their own."""
    return f"{provider} ({file.parent}) {word}"
