"""`$NAME` in a value: a reference to an environment variable."""

import re
from collections.abc import Mapping

from longboat.errors import ConfigInvalid

REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<braced>[A-Za-z_]\w*)\}|(?P<bare>[A-Za-z_]\w*))")

_OWN = "LONGBOAT_"
"""Variables with this prefix hold the server's own token and paths; they are never used in a value."""

SHELL_TEXTS = frozenset({"permissions", "hooks", "lsp"})
"""Sections of `longboat.json` in which a `$` belongs to a shell or to another program. In every other one it may be a
reference."""


def expand(value: str, environ: Mapping[str, str]) -> str:
    """The value with `$NAME` and `${NAME}` replaced from the environment; `$$` is a dollar sign."""

    def replacement(match: re.Match[str]) -> str:
        name = match["braced"] or match["bare"]
        if name is None:
            return "$"
        if name.startswith(_OWN):
            raise ConfigInvalid(
                f"{name} is reserved for Longboat and cannot be used in a value. Use a variable with another name."
            )
        if name not in environ:
            raise ConfigInvalid(
                f"longboat.json refers to the environment variable {name}, which is not set. Export it."
            )
        return environ[name]

    return REFERENCE.sub(replacement, value)


def parse_reference(value: str) -> str | None:
    """The variable's name if the value is exactly one reference."""
    match = REFERENCE.fullmatch(value)
    return (match["braced"] or match["bare"]) if match else None


def names_in(value: str) -> set[str]:
    """All variables that the value refers to."""
    return {name for match in REFERENCE.finditer(value) if (name := match["braced"] or match["bare"]) is not None}
