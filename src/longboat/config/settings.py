"""What a server process is started with, and what a workspace's `longboat.json` may say."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

Positive = Annotated[float, msgspec.Meta(ge=0)]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections: unknown keys are mistakes."""


class OnRestart(StrEnum):
    """What becomes of a run that was active when the server crashed."""

    INTERRUPT = "interrupt"
    RESUME = "resume"


class ModelEntry(_Section, frozen=True, kw_only=True):
    """A model of a configured provider."""

    id: str
    context_window: int = 128_000
    max_output_tokens: int | None = None


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


class RetrySection(_Section, frozen=True, kw_only=True):
    """How failed model requests are tried again: at most `attempts` tries, after `base_s`, then twice as long each."""

    attempts: Annotated[int, msgspec.Meta(ge=1, le=20)] = 5
    base_s: Positive = 1.0
    max_s: Positive = 30.0


class ServerSection(_Section, frozen=True, kw_only=True):
    """Read from the user's own file only: a project cannot change the server it runs in."""

    drain_s: Positive = 10.0
    keep_events_days: Positive = 7.0
    allowed_hosts: tuple[str, ...] = ()
    max_body_mb: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 16


class Config(_Section, frozen=True, kw_only=True, rename={"schema_": "$schema"}):
    """`longboat.json`."""

    schema_: str | None = None
    providers: dict[str, ProviderSection] = {}
    models: ModelsSection = ModelsSection()
    permissions: dict[str, Any] = {}
    mcp: dict[str, Any] = {}
    lsp: dict[str, Any] = {}
    hooks: dict[str, Any] = {}
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
