"""Ids: opaque strings. The server creates UUIDv7; clients may choose their own run_id and client_id."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import msgspec
import uuid_utils

from longboat.errors import BadInput

_OWN_ID = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._:-]{1,128}")
"""`.` and `..` are not usable in a URL: proxies and clients remove them."""

# The same for the API description. `check_own_id` refuses what does not fit, with a code that names the field.
OWN_ID_SCHEMA = {"pattern": f"^{_OWN_ID.pattern}$"}
OwnId = Annotated[str, msgspec.Meta(extra_json_schema=OWN_ID_SCHEMA)]
OwnSessionId = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": f"^(?!import$){_OWN_ID.pattern}$"})]


RETRY_KEY = "retry-"
"""How an idempotency key begins that is repeated only until there is an answer."""
_REPEATED = "again-"


def new_id() -> str:
    """A new opaque id."""
    return str(uuid_utils.uuid7())


def new_key() -> str:
    """An idempotency key for one change that a client repeats until it has an answer."""
    return RETRY_KEY + new_id()


def repeated_key(key: str) -> str:
    """The key of a request that may have been done already: how Longboat's clients and nodes repeat one."""
    return key if key.startswith(_REPEATED) else _REPEATED + key


def first_key(key: str) -> str:
    """The key with which the request was sent first."""
    return key.removeprefix(_REPEATED)


def check_own_id(value: str, *, field: str) -> str:
    """Return the id that a client chose, or refuse it with an error that names the field."""
    if not _OWN_ID.fullmatch(value):
        raise BadInput(
            f"{field} must be 1 to 128 characters of A-Z a-z 0-9 . _ : -, and not . or .. (got {value[:140]!r}).",
            code=f"bad_{field}",
        )
    return value


def check_session_id(value: str) -> str:
    """The same for a session. Its id must not be the name of a route: `…/sessions/import` is not a session."""
    if value == "import":
        raise BadInput(f"session_id must not be {value!r}, which is the name of a route.", code="bad_session_id")
    return check_own_id(value, field="session_id")


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """A position in one workspace's log: just after event `number`, written in the server's start `epoch`."""

    workspace_id: str
    epoch: int
    number: int

    def __str__(self) -> str:
        return f"{self.workspace_id}/{self.epoch}/{self.number}"

    @classmethod
    def parse(cls, text: str) -> "Cursor | None":
        """The cursor in `text`, or None: an unknown cursor is answered with a resync, not an error."""
        match text.split("/"):
            case [workspace_id, epoch, number] if _digits(epoch) and _digits(number):
                return cls(workspace_id, int(epoch), int(number))
        return None


def _digits(text: str) -> bool:
    return 1 <= len(text) <= 18 and text.isascii() and text.isdigit()


def windows_of_people(client_ids: Iterable[str]) -> dict[str, int]:
    """How many clients each person has, in order of the names."""
    return dict(sorted(Counter(map(person, client_ids)).items()))


def describe_people(client_ids: Iterable[str]) -> list[str]:
    """Each person once: `anna (3 windows)`."""
    found = windows_of_people(client_ids).items()
    return [name if windows == 1 else f"{name} ({windows} windows)" for name, windows in found]


def person(client_id: str) -> str:
    """The person's name in a client id: `ann:tui-3f2a` is one of ann's clients."""
    return client_id.partition(":")[0] or client_id
