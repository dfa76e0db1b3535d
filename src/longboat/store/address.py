"""The address of a PostgreSQL database, for people. Must not need the driver: commands without it name it, too."""

from urllib.parse import urlsplit


def describe_dsn(dsn: str) -> str:
    """An address without its password."""
    parts = urlsplit(dsn)
    _, _, host = parts.netloc.rpartition("@")
    user = f"{parts.username}@" if parts.username else ""
    return f"{parts.scheme}://{user}{host}{parts.path}"
