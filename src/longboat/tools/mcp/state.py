"""The state of a server and what it offers. Plain values for events, routes and tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Phase(StrEnum):
    CONNECTING = "connecting"
    """It is being started or reached."""
    READY = "ready"
    """Its tools can be called."""
    FAILED = "failed"
    """It could not be reached, or it died; `reason` says why. It is tried again later."""
    CLOSED = "closed"
    """Not needed yet, disabled, or the workspace has closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """`authorization_url` is a page that a person must open before the server can be used. Contains no secret except
    that page's one-time state."""

    name: str
    type: str
    phase: Phase
    reason: str = ""
    authorization_url: str | None = None
    tools: int = 0
    prompts: int = 0
    resources: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class McpArgument:
    name: str
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class McpPrompt:
    server: str
    name: str
    description: str
    arguments: tuple[McpArgument, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpResource:
    """`uri` is a pattern to fill in, such as `file:///{path}`, if it `is_template`."""

    server: str
    uri: str
    name: str
    description: str
    mime_type: str
    is_template: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A tool under the name the server gave it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    only_reads: bool = False
    """As the server declares it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Everything a server offers."""

    tools: tuple[OfferedTool, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    resources: tuple[McpResource, ...] = ()
    instructions: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A server's answer as text for a model."""

    text: str
    is_error: bool = False
