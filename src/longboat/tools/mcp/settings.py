"""One server in the `mcp` section of `longboat.json`, and its values with `$NAME` replaced.

Owns its schema and which of its values are secret. Must not know the SDK.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from longboat.config.references import expand
from longboat.errors import ConfigInvalid

Kind = Literal["stdio", "http", "sse"]

_NAME = re.compile(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*")
_NAME_LIMIT = 32
_SECRET_NAME = re.compile(r"key|token|secret|passw|auth|credential", re.IGNORECASE)
_SHORTEST_SECRET = 6
"""Shorter values are not worth hiding: they would black out half of a message."""


class McpServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of `mcp`. `$NAME` in its strings stands for an environment variable, looked up when we connect.

    `type` is optional: with a `command` it is stdio, with a `url` http. `timeout_s` limits every answer.
    """

    type: Kind | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}
    enabled: bool = True
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where to connect, with every `$NAME` replaced. `hidden` maps each secret to what is shown instead."""

    name: str
    kind: Kind
    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    url: str
    headers: Mapping[str, str]
    timeout_s: float
    hidden: Mapping[str, str]

    def without_secrets(self, text: str) -> str:
        for secret in sorted(self.hidden, key=len, reverse=True):
            text = text.replace(secret, self.hidden[secret])
        return text


def read(name: str, value: Any) -> McpServer:
    """One entry of `mcp`, checked; ConfigInvalid says what is wrong with it."""
    if len(name) > _NAME_LIMIT or not _NAME.fullmatch(name):
        message = f"a server's name may have up to {_NAME_LIMIT} letters and digits, with single - or _ between them"
        raise ConfigInvalid(f"mcp.{name}: {message}; rename it")
    try:
        server = msgspec.convert(value, McpServer)
    except msgspec.ValidationError as error:
        raise ConfigInvalid(f"mcp.{name}: {error}") from None
    kind = kind_of(server)
    if kind == "stdio" and not server.command:
        raise ConfigInvalid(f"mcp.{name}: a stdio server needs a command; an http or sse server needs a url")
    if kind != "stdio" and not server.url:
        raise ConfigInvalid(f"mcp.{name}: a {kind} server needs a url")
    return server


def kind_of(server: McpServer) -> Kind:
    return server.type or ("http" if server.url and not server.command else "stdio")


def resolve(name: str, server: McpServer, environ: Mapping[str, str]) -> Target:
    """Where to connect; ConfigInvalid if a variable is not set or the url is none."""
    noted = _Noted(environ)
    env = {key: expand(value, noted) for key, value in server.env.items()}
    headers = {key: expand(value, noted) for key, value in server.headers.items()}
    url = expand(server.url or "", noted)
    kind = kind_of(server)
    if kind != "stdio":
        _check_url(name, url)
    return Target(
        name=name,
        kind=kind,
        command=expand(server.command or "", noted),
        args=tuple(expand(value, noted) for value in server.args),
        env=env,
        url=url,
        headers=headers,
        timeout_s=server.timeout_s,
        hidden=_hidden(env, headers, url) | noted.shown_as,
    )


def _check_url(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        fits = False
    if not fits:
        raise ConfigInvalid(f"mcp.{name}.url: expected a URL that begins with http:// or https://")


def _hidden(env: Mapping[str, str], headers: Mapping[str, str], url: str) -> dict[str, str]:
    parts = urlsplit(url)
    values = [word for value in headers.values() for word in value.split()]
    values += [value for key, value in env.items() if _SECRET_NAME.search(key)]
    values += [parts.query, parts.password or ""]
    return {value: "***" for value in values if len(value) >= _SHORTEST_SECRET}


class _Noted(Mapping[str, str]):
    """An environment that records which variables were looked up."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.shown_as: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        value = self._environ[name]
        if len(value) >= _SHORTEST_SECRET:
            self.shown_as[value] = f"${name}"
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)
