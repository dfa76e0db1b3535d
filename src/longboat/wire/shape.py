"""What all that the server sends has in common."""

import msgspec


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Clients ignore fields they do not know."""
