"""The shell environment that is sent along with a prompt."""

import os
from typing import TYPE_CHECKING

from longboat.cli.console import notice
from longboat.config.keys import PROVIDER_KEYS
from longboat.errors import BadInput
from longboat.runtime.workspace.client_environment import check_environ

if TYPE_CHECKING:
    from longboat.client.address import Address

_KEPT_BACK = frozenset(name for names in PROVIDER_KEYS.values() for name in names)


def env_for(address: "Address", wanted: bool | None) -> dict[str, str] | None:
    """The environment to send to this server. It holds secrets, so by default only a unix socket gets it. Provider keys
    are never sent: commands do not get them."""
    if not (address.url is None if wanted is None else wanted):
        return None
    found = {name: value for name, value in os.environ.items() if _may_go(name, value)}
    try:
        check_environ(found)
    except BadInput as error:
        notice(f"{error.message} Commands will use the server's environment.")
        return None
    return found


def _may_go(name: str, value: str) -> bool:
    try:
        (name + value).encode()
    except UnicodeEncodeError:
        return False
    return not name.startswith("LONGBOAT_") and name not in _KEPT_BACK
