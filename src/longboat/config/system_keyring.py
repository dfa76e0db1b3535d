"""The system's keyring, by the package `keyring` where it is installed and has a real backend. Blocking.

A keyring may ask the person to unlock it, on a screen that no one looks at: every call has a time limit.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import TypeVar

SERVICE = "longboat"
WAIT_S = 20.0

T = TypeVar("T")


def is_available() -> bool:
    """Whether there is a keyring that keeps a secret: one that only stores plain text is no better than our file."""
    try:
        import keyring
    except ImportError:
        return False
    with suppress(Exception):  # backends of all kinds look at the system here
        return keyring.get_keyring().priority >= 1
    return False


def write(account: str, secret: str) -> bool:
    """False if the keyring did not take it."""
    if not is_available():
        return False
    import keyring

    _in_time(lambda: keyring.set_password(SERVICE, account, secret))
    return read(account) == secret


@lru_cache(maxsize=64)
def _read(account: str) -> str:
    import keyring

    found = _in_time(lambda: keyring.get_password(SERVICE, account))
    if found is None:
        raise LookupError(account)
    return found


def read(account: str) -> str | None:
    """Asked once for each account."""
    if not is_available():
        return None
    try:
        return _read(account)
    except LookupError:
        return None


def delete(account: str) -> None:
    if is_available():
        import keyring

        _in_time(lambda: keyring.delete_password(SERVICE, account))


def _in_time(asking: Callable[[], T]) -> T | None:
    """None if it failed or took too long. On a thread that a stopping server does not wait for."""
    answers: list[T] = []

    def ask() -> None:
        with suppress(Exception):  # a locked keyring, a bus that is away: each backend has errors of its own
            answers.append(asking())

    asker = threading.Thread(target=ask, name="system keyring", daemon=True)
    asker.start()
    asker.join(WAIT_S)
    return answers[0] if answers else None
