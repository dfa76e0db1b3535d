"""What a server process is started with, and what a workspace's `longboat.json` may say."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]
Days = Annotated[float, msgspec.Meta(ge=0, le=36_500)]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections: unknown keys are mistakes."""


class OnRestart(StrEnum):
    """What becomes of a run that was active when the server crashed."""

    INTERRUPT = "interrupt"
    RESUME = "resume"


class ModelEntry(_Section, frozen=True, kw_only=True):
    """A model of a configured provider. What is left out is looked up in the catalogue."""

    id: str
    context_window: Tokens | None = None
    max_output_tokens: Tokens | None = None
    effort: Literal["low", "medium", "high"] | None = None
    """How much it thinks where a prompt does not say."""
    images: bool | None = None
    """Whether it sees images."""
    tools: bool | None = None
    """Whether it calls tools."""
    reasoning: bool | None = None
    """Whether an effort can be set."""
    json_schema: bool | None = None
    """Whether its server takes a schema for the answer besides tools."""


class ProviderSection(_Section, frozen=True, kw_only=True):
    """A provider. `openai-compatible` needs a base_url; the others take the provider's own when it is left out."""

    type: Literal[
        "openai-compatible",
        "anthropic-compatible",
        "anthropic",
        "openai",
        "google",
        "groq",
        "mistral",
        "openrouter",
        "azure",
        "bedrock",
        "local",
    ]
    base_url: str | None = None
    api_key: str | None = None
    headers: dict[str, str] = {}
    models: tuple[ModelEntry, ...] = ()


class ModelsSection(_Section, frozen=True, kw_only=True):
    """Which model plays which role, as `provider/model`. `small` writes titles."""

    large: str | None = None
    small: str | None = None
    detect: bool = True
    """With nothing configured, look for an Ollama or llama.cpp server on this machine."""


class RetrySection(_Section, frozen=True, kw_only=True):
    """How failed model requests are tried again: at most `attempts` tries, after `base_s`, then twice as long each."""

    attempts: Annotated[int, msgspec.Meta(ge=1, le=20)] = 5
    base_s: Seconds = 1.0
    max_s: Seconds = 30.0


class ServerSection(_Section, frozen=True, kw_only=True):
    """Read from the user's own file only: a project cannot change the server it runs in."""

    drain_s: Seconds = 10.0
    keep_events_days: Days = 7.0
    allowed_hosts: tuple[str, ...] = ()
    max_body_mb: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 16


class PermissionsSection(_Section, frozen=True, kw_only=True):
    """Rules over tools, such as `view`, `bash(git status)`, `bash(npm test *)`, `edit(src/**)`. Deny goes first."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class SearchSection(_Section, frozen=True, kw_only=True):
    """Who is asked by web_search: the URL, and the key as `$NAME`."""

    kind: Literal["searxng", "brave"]
    endpoint: str
    key: str = ""


class WebSection(_Section, frozen=True, kw_only=True):
    """`allowed_networks` are private ones that fetch may reach all the same, such as `10.1.0.0/16`."""

    allowed_networks: tuple[str, ...] = ()
    search: SearchSection | None = None


class Config(_Section, frozen=True, kw_only=True, rename={"schema_": "$schema"}):
    """`longboat.json`."""

    schema_: str | None = None
    providers: dict[str, ProviderSection] = {}
    models: ModelsSection = ModelsSection()
    permissions: PermissionsSection = PermissionsSection()
    mcp: dict[str, Any] = {}
    lsp: dict[str, Any] = {}
    hooks: dict[str, Any] = {}
    web: WebSection = WebSection()
    sandbox: Literal["off", "auto", "required"] = "off"
    """Whether bash runs in a box that writes only to the workspace and temp, and has no network."""
    titles: bool = True
    retry: RetrySection = RetrySection()
    on_restart: OnRestart = OnRestart.INTERRUPT
    server: ServerSection = ServerSection()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one server process runs. Command-line flags, environment and the user's config meet here."""

    data_dir: Path
    runtime_dir: Path
    socket: Path | None
    host: str | None = None
    port: int = 0
    token: str
    idle_exit_s: float | None = None
    """A server started in the background ends itself after so long without a workspace (B3)."""
    server: ServerSection = field(default_factory=ServerSection)
    heartbeat_s: float = 15.0
    create_hold_s: float = 30.0
    """How long a created workspace waits for its first stream (B3)."""
    detach_grace_s: float = 10.0
    """How long a dropped stream keeps its claim (B3)."""
