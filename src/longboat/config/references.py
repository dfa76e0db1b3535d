"""`$NAME` in a value: a word for what the environment holds."""

import re
from collections.abc import Mapping

from longboat.errors import ConfigInvalid

REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<braced>[A-Za-z_]\w*)\}|(?P<bare>[A-Za-z_]\w*))")

_OWN = "LONGBOAT_"
"""Variables of this name hold the server's own token and places: no value is ever made of them."""


def expand(value: str, environ: Mapping[str, str]) -> str:
    """The value with `$NAME` and `${NAME}` replaced from the environment; `$$` is a dollar sign."""

    def replacement(match: re.Match[str]) -> str:
        name = match["braced"] or match["bare"]
        if name is None:
            return "$"
        if name.startswith(_OWN):
            raise ConfigInvalid(
                f"{name} is Longboat's own and is never put into a value: use a variable of another name."
            )
        if name not in environ:
            raise ConfigInvalid(
                f"The environment variable {name} is not set, but longboat.json refers to it: export it."
            )
        return environ[name]

    return REFERENCE.sub(replacement, value)


def referred(value: str) -> str | None:
    """The variable that the value is nothing but a reference to."""
    match = REFERENCE.fullmatch(value)
    return (match["braced"] or match["bare"]) if match else None


def names_in(value: str) -> set[str]:
    """All variables that the value refers to."""
    return {name for match in REFERENCE.finditer(value) if (name := match["braced"] or match["bare"]) is not None}
