"""The `lsp` section of `longboat.json`: the servers by name, and how to start them. Starts nothing.

    "lsp": {
      "zls": {"command": "zls", "file_types": ["zig"], "root_markers": ["build.zig"]},
      "basedpyright": {"settings": {"basedpyright": {"analysis": {"typeCheckingMode": "strict"}}}},
      "clangd": {"enabled": false}
    }

For a built-in server, set only what differs. Servers in this section are preferred: no built-in server is started for a
file type that one of them supports.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from longboat.errors import ConfigInvalid


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One language server. Missing values come from the built-in server of the same name, if there is one."""

    command: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    args: tuple[str, ...] | None = None
    env: dict[str, str] = {}
    file_types: tuple[str, ...] | None = None
    """Endings of file names, with or without the dot."""
    root_markers: tuple[str, ...] | None = None
    """Names that mark the directory a server is started for."""
    initialization_options: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    """The configuration that the server gets when it asks for it."""
    enabled: bool = True


def read(section: Mapping[str, Any]) -> dict[str, ServerSettings]:
    """The section with its values checked; a ConfigInvalid names what is wrong."""
    return {name: _read_one(name, value) for name, value in section.items()}


def _read_one(name: str, value: Any) -> ServerSettings:
    try:
        return msgspec.convert(value, ServerSettings)
    except msgspec.ValidationError as error:
        raise ConfigInvalid(f"lsp.{name}: {error}") from None
