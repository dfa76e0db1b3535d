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
    """The model's name at the provider."""
    context_window: Tokens | None = None
    """In tokens; a conversation that comes near it is summarized. Left out: what is known of the model, else 128000."""
    max_output_tokens: Tokens | None = None
    """The longest answer to ask for. Left out: the provider's own."""
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
    """A provider of your own, or changes to a known one.

    In `base_url`, `api_key` and `headers`, `$NAME` and `${NAME}` stand for environment variables and `$$` for a dollar
    sign. Variables whose names begin with `LONGBOAT_` are Longboat's own and cannot be used there. A key from the
    environment goes to the provider's own address only: a `base_url` needs an `api_key` beside it.
    """

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
    """What it speaks, or which known provider it is."""
    base_url: str | None = None
    """Where it is: needed for `openai-compatible` and `anthropic-compatible`. Left out: the provider's own address."""
    api_key: str | None = None
    """The key, or `$NAME` for an environment variable. Left out: the provider's own variable."""
    headers: dict[str, str] = {}
    """Sent with every request."""
    models: tuple[ModelEntry, ...] = ()
    """What it has; the first is its default."""


class ModelsSection(_Section, frozen=True, kw_only=True):
    """Which model plays which role, as `provider/model`."""

    large: str | None = None
    """Answers prompts."""
    small: str | None = None
    """Writes titles."""
    detect: bool = True
    """With nothing configured, look for an Ollama or llama.cpp server on this machine."""


class RetrySection(_Section, frozen=True, kw_only=True):
    """How failed model requests are tried again."""

    attempts: Annotated[int, msgspec.Meta(ge=1, le=20)] = 5
    """How often a request is sent at most."""
    base_s: Seconds = 1.0
    """Seconds before the second try; doubled each time."""
    max_s: Seconds = 30.0
    """The longest wait."""


class ServerSection(_Section, frozen=True, kw_only=True):
    """Read once, when the server starts, and from your own file only: a project cannot change the server it is opened
    in."""

    drain_s: Seconds = 10.0
    """How long active runs may go on when the server is told to stop."""
    keep_events_days: Days = 7.0
    """How long the event log is kept for clients that come back; transcripts stay for ever."""
    allowed_hosts: tuple[str, ...] = ()
    """Names under which a reverse proxy reaches the server."""
    heartbeat_s: Annotated[float, msgspec.Meta(ge=1, le=15)] = 15.0
    """Seconds between the signs of life on a silent event stream; less where something on the way cuts silent
    connections."""
    max_body_mb: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 16
    """The largest request body, but for an import."""
    max_import_mb: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 512
    """The largest export that can be imported. It needs about five times as much memory for a moment."""
    max_output_mb: Annotated[int, msgspec.Meta(ge=1, le=1_048_576)] = 512
    """Disk space for the full output of commands, all workspaces together. The oldest output makes way."""
    max_workspace_output_mb: Annotated[int, msgspec.Meta(ge=1, le=1_048_576)] = 256
    """The same for one workspace."""


class PermissionsSection(_Section, frozen=True, kw_only=True):
    """Rules over tools, such as `view`, `bash(git status)`, `bash(npm test *)`, `edit(src/**)`."""

    allow: tuple[str, ...] = ()
    """What is done without asking."""
    deny: tuple[str, ...] = ()
    """What is never done; these rules go first."""


class SearchSection(_Section, frozen=True, kw_only=True):
    """Who is asked by `web_search`."""

    kind: Literal["searxng", "brave"]
    """What it speaks."""
    endpoint: str
    """The URL that is asked."""
    key: str = ""
    """The key, as `$NAME` for an environment variable."""


class WebSection(_Section, frozen=True, kw_only=True):
    """What the web tools may reach."""

    allowed_networks: tuple[str, ...] = ()
    """Private networks that may be fetched from all the same, such as `"10.1.0.0/16"`."""
    search: SearchSection | None = None
    """Who is asked by `web_search`."""


class Config(_Section, frozen=True, kw_only=True, rename={"schema_": "$schema"}):
    """`longboat.json`."""

    schema_: str | None = None
    """For your editor; not looked at."""
    providers: dict[str, ProviderSection] = {}
    """Your own providers, or changes to known ones, by name."""
    models: ModelsSection = ModelsSection()
    """Which model plays which role."""
    permissions: PermissionsSection = PermissionsSection()
    """What need not be asked, and what is never done."""
    mcp: dict[str, Any] = {}
    """MCP servers, by name."""
    lsp: dict[str, Any] = {}
    """Language servers, by name."""
    hooks: dict[str, Any] = {}
    """Programs that are told and asked, by event."""
    web: WebSection = WebSection()
    """What the web tools may reach."""
    sandbox: Literal["off", "auto", "required"] = "off"
    """Whether shell commands run in a box that writes only to the workspace and temp, and has no network."""
    titles: bool = True
    """Let the small model find titles for sessions."""
    retry: RetrySection = RetrySection()
    """How failed model requests are tried again."""
    on_restart: OnRestart = OnRestart.INTERRUPT
    """A run that was active when the server crashed: `"interrupt"` ends it, `"resume"` goes on with it, three times at
    most."""
    server: ServerSection = ServerSection()
    """The server itself."""


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
