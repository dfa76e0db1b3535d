"""The base of everything the server sends."""

import msgspec


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Clients ignore fields they do not know."""
