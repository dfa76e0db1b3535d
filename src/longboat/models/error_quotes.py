"""A provider's message for use in errors: without our secrets, and shortened. Pure.

Some servers quote the key or a header. The order matters: shortening first could leave half a key that is no longer
recognized.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

_SHORT = 4
"""A shorter "key" is mostly a stand-in for servers that want none. It is hidden only where it is quoted: hiding each
"x" would garble messages."""


def secrets_of(api_key: str | None, headers: Mapping[str, str], base_url: str | None) -> tuple[str, ...]:
    """What must not be quoted: the key, the headers, and what a URL may carry. The longest first, for one may hold
    another."""
    found = [api_key or "", *headers.values(), *_in_url(base_url or "")]
    found += [value.removeprefix("Bearer ") for value in headers.values()]
    plain = {text.strip() for text in found}
    return tuple(sorted((text for text in plain if text), key=len, reverse=True))


def _in_url(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    password = parts.password or ""
    return [password, unquote(password), *(value for _, value in parse_qsl(parts.query))]


def with_advice(said: str, advice: str) -> str:
    """What was said, and then what to do. Providers do not always end their sentences."""
    ended = said if not advice or said.rstrip().endswith((".", "!", "?", ":")) else f"{said.rstrip()}."
    return f"{ended} {advice}".strip()


def quote_error(text: str, secrets: Iterable[str], *, limit: int) -> str:
    """The text without the secrets, and then no longer than `limit`."""
    for secret in secrets:
        if len(secret) >= _SHORT:
            text = text.replace(secret, "***")
        else:
            text = re.sub(rf"((?:[\"'`“]|[:=] ?)){re.escape(secret)}(?![\w-])", r"\1***", text)
    return text[:limit]


def display_url(url: str) -> str:
    """The URL without what may be secret in it: a user, a password, a query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(not a URL)"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
