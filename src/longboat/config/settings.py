"""The settings of a server process, and the schema of `longboat.json`."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]
Days = Annotated[float, msgspec.Meta(ge=0, le=36_500)]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]
Dollars = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections: unknown keys are errors."""


class OnRestart(StrEnum):
    """What happens to a run that was active when the server crashed."""

    INTERRUPT = "interrupt"
    RESUME = "resume"


class PriceSection(_Section, frozen=True, kw_only=True):
    """What a model costs, in dollars per million tokens."""

    input: Dollars
    """For tokens that the model reads."""
    output: Dollars
    """For tokens that the model writes."""
    cached_input: Dollars | None = None
    """For tokens that the provider reads from its cache. Default: as `input`."""


class ModelEntry(_Section, frozen=True, kw_only=True):
    """A model of a configured provider. Missing values are looked up in the catalogue."""

    id: str
    """The model's name at the provider."""
    context_window: Tokens | None = None
    """In tokens. A conversation that comes close to it is summarized. Default: from the catalogue, otherwise 128000."""
    max_output_tokens: Tokens | None = None
    """The longest answer to request, in tokens. Default: the provider's limit."""
    effort: Literal["low", "medium", "high"] | None = None
    """Reasoning effort for prompts that do not set one."""
    images: bool | None = None
    """Whether the model accepts images."""
    tools: Literal["native", "steps", "text", "none"] | None = None
    """How the model uses tools. Default: detected and remembered. [More](models.md#models-without-native-tools)."""
    reasoning: bool | None = None
    """Whether the reasoning effort can be set."""
    first_token_s: Seconds | None = None
    """How many seconds the answer may take to begin. Default: 600 for servers on this machine or in a private network,
    300 for Anthropic, OpenAI, Google and Mistral, otherwise 120."""
    idle_s: Seconds | None = None
    """How many seconds the answer may pause between two pieces. Default: the same as `first_token_s`."""
    send_reasoning: Literal["turn", "always", "never"] | None = None
    """Which reasoning Longboat sends back to the server: that of the current turn (`turn`), all of it, or none.
    Default: `turn`; if a server refuses this, Longboat tries the others and remembers what worked."""
    json_schema: bool | None = None
    """Whether the provider accepts an answer schema together with tools."""
    price: PriceSection | None = None
    """What it costs, for example `{"input": 3, "output": 15}`; zeros for a model that is free. Default: from the
    catalogue, otherwise the cost is shown as unknown."""
    path: str | None = None
    """Only for `local`: the model's GGUF file, as an absolute path or with `~/`."""
    threads: Annotated[int, msgspec.Meta(ge=1, le=1024)] | None = None
    """Only for `local`: processor threads to use. Default: half the processors, at most 8."""


class ProviderSection(_Section, frozen=True, kw_only=True):
    """A provider of your own, or changes to a known one.

    In `base_url`, `api_key` and `headers`, `$NAME` and `${NAME}` stand for environment variables and `$$` for a dollar
    sign. Variables whose names begin with `LONGBOAT_` are reserved and cannot be used there. Keys found in the
    environment are sent only to the provider's own address: if you set `base_url`, set `api_key` too.
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
    """The known provider, or the API it is compatible with."""
    base_url: str | None = None
    """The API's URL; required for `openai-compatible` and `anthropic-compatible`. Default: the provider's own."""
    api_key: str | None = None
    """The key, or `$NAME` for an environment variable. Default: the provider's usual variable."""
    headers: dict[str, str] = {}
    """Sent with every request."""
    models: tuple[ModelEntry, ...] = ()
    """The provider's models; the first is the default."""


ModelNames = str | Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=20)]


class ModelsSection(_Section, frozen=True, kw_only=True):
    """Which model has which role, as `provider/model`."""

    large: ModelNames | None = None
    """The model that answers prompts. With a list, the next one continues when a provider is down, busy or out of
    quota."""
    small: ModelNames | None = None
    """The model that writes session titles, or a list of them."""
    detect: bool = True
    """If no model is configured, look for an Ollama or llama.cpp server on this machine."""

    def names(self, role: Literal["large", "small"]) -> tuple[str, ...]:
        """The models of a role, the preferred one first; empty if none is configured."""
        given = self.large if role == "large" else self.small
        return () if given is None else (given,) if isinstance(given, str) else given


class RetrySection(_Section, frozen=True, kw_only=True):
    """How failed model requests are retried."""

    attempts: Annotated[int, msgspec.Meta(ge=1, le=20)] = 5
    """Maximum number of attempts for one request."""
    base_s: Seconds = 1.0
    """Seconds before the first retry; doubled each time."""
    max_s: Seconds = 30.0
    """The longest wait between attempts, in seconds."""


class LimitsSection(_Section, frozen=True, kw_only=True):
    """How far one turn may go. At a limit, Longboat asks whether to continue if a client is attached where someone can
    answer; otherwise the run ends. 0 means no limit. Each sub-agent has the same limits, and ends there.
    """

    steps: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 40
    """Model requests."""
    failures: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 8
    """Model requests in a row whose tool calls all failed; a command that ran and failed does not count."""
    minutes: Annotated[float, msgspec.Meta(ge=0, le=10_080)] = 30.0
    """Working time; waiting for people's answers does not count."""
    approved_steps: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 200
    """Instead of `steps` for runs that approve all (`--yolo`), which end there without asking."""
    approved_minutes: Annotated[float, msgspec.Meta(ge=0, le=10_080)] = 240.0
    """Instead of `minutes` for runs that approve all."""


class PushSection(_Section, frozen=True, kw_only=True):
    """Notifications that the server sends to browsers by Web Push."""

    contact: str = "mailto:longboat@example.com"
    """Whom a push service may contact about this server: a `mailto:` or `https:` address. Some services check it."""
    allowed_networks: tuple[str, ...] = ()
    """Private networks with push services of your own, such as `10.1.0.0/16`. There, endpoints need no https."""


class OtelSection(_Section, frozen=True, kw_only=True):
    """Traces of runs for OpenTelemetry. Needs the extra `otel`."""

    enabled: bool = False
    """Send traces."""
    endpoint: str = ""
    """The URL of an OTLP/HTTP receiver, such as `http://localhost:4318`. Default: `OTEL_EXPORTER_OTLP_ENDPOINT` or this
    example. Headers come from `OTEL_EXPORTER_OTLP_HEADERS`."""
    content: bool = False
    """Also send prompts, answers, and the arguments and results of tool calls. Otherwise only names, counts, times and
    outcomes are sent."""


class ServerSection(_Section, frozen=True, kw_only=True):
    """Server settings. Read once when the server starts, and only from your own file, never from a project's."""

    drain_s: Seconds = 10.0
    """How many seconds active runs may continue after the server is asked to stop."""
    keep_events_days: Days = 7.0
    """How many days the event log is kept for clients that reconnect. Transcripts are kept forever."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names under which a reverse proxy reaches the server."""
    heartbeat_s: Annotated[float, msgspec.Meta(ge=1, le=15)] = 15.0
    """Seconds between heartbeats on a silent event stream. Use less if a proxy closes silent connections."""
    max_body_mb: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 16
    """The largest request body, except for an import."""
    max_import_mb: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 512
    """The largest export that can be imported. An import briefly needs about five times as much memory."""
    max_output_mb: Annotated[int, msgspec.Meta(ge=1, le=1_048_576)] = 512
    """Disk space for the full output of commands in all workspaces. The oldest output is deleted first."""
    max_workspace_output_mb: Annotated[int, msgspec.Meta(ge=1, le=1_048_576)] = 256
    """Disk space for the full output of commands in one workspace."""
    push: PushSection = PushSection()
    """Notifications in browsers."""
    otel: OtelSection = OtelSection()
    """Traces for OpenTelemetry."""
    lease_s: Annotated[float, msgspec.Meta(ge=3, le=300)] = 15.0
    """In a cluster: how many seconds a node may be silent before another one takes over its workspaces."""
    shared_trees: tuple[str, ...] = ()
    """In a cluster: directories that every node sees under the same path, on a network disk for example, such as
    `"/mnt/projects"`."""


class PermissionsSection(_Section, frozen=True, kw_only=True):
    """Permission rules, such as `view`, `bash(git status)`, `bash(npm test *)`, `edit(src/**)`."""

    allow: tuple[str, ...] = ()
    """What Longboat may do without asking."""
    deny: tuple[str, ...] = ()
    """What Longboat never does. Deny rules come first."""


class SearchSection(_Section, frozen=True, kw_only=True):
    """The search service that `web_search` uses."""

    kind: Literal["searxng", "brave"]
    """The kind of search service."""
    endpoint: str
    """The service's URL."""
    key: str = ""
    """The key, as `$NAME` for an environment variable."""


class WebSection(_Section, frozen=True, kw_only=True):
    """What the web tools may reach."""

    allowed_networks: tuple[str, ...] = ()
    """Private networks that the web tools may reach, such as `"10.1.0.0/16"`."""
    search: SearchSection | None = None
    """The search service that `web_search` uses."""


class Config(_Section, frozen=True, kw_only=True, rename={"schema_": "$schema"}):
    """`longboat.json`."""

    schema_: str | None = None
    """For your editor; Longboat ignores it."""
    providers: dict[str, ProviderSection] = {}
    """Your own providers, or changes to known ones, by name."""
    models: ModelsSection = ModelsSection()
    """Which model has which role."""
    permissions: PermissionsSection = PermissionsSection()
    """What Longboat may do without asking, and what it never does."""
    mcp: dict[str, Any] = {}
    """MCP servers, by name."""
    lsp: dict[str, Any] = {}
    """Language servers, by name."""
    hooks: dict[str, Any] = {}
    """Programs to run on events, by event."""
    web: WebSection = WebSection()
    """What the web tools may reach."""
    sandbox: Literal["off", "auto", "required"] = "off"
    """Whether shell commands run in a sandbox: no network, and writes only to the workspace and the temp directory."""
    titles: bool = True
    """Let the small model write session titles."""
    retry: RetrySection = RetrySection()
    """How failed model requests are retried."""
    limits: LimitsSection = LimitsSection()
    """How far one turn may go before Longboat asks whether to continue, or ends the run."""
    on_restart: OnRestart = OnRestart.INTERRUPT
    """What happens to a run that was active when the server crashed: `"interrupt"` ends it, `"resume"` continues it, at
    most three times. In a cluster, this also applies to a run that is still active when its node stops. A run that
    has not produced anything yet always starts again."""
    server: ServerSection = ServerSection()
    """The server itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one server process, from command-line flags, the environment and the user's config."""

    data_dir: Path
    runtime_dir: Path
    socket: Path | None
    host: str | None = None
    port: int = 0
    token: str
    """What clients show over TCP. Empty: the one in the database that the servers of a cluster share."""
    store: str | None = None
    """The address of a PostgreSQL database; None: SQLite in the data directory."""
    node: str = ""
    """The name of this server among those that share the database."""
    advertise: str | None = None
    """Where the other nodes reach this one; None: where it listens."""
    cluster_secret: str = field(default="", repr=False)
    """What the servers that share a database trust each other by; empty: this one has it to itself."""
    idle_exit_s: float | None = None
    """How long a server started in the background keeps running without a workspace (B3)."""
    server: ServerSection = field(default_factory=ServerSection)
    heartbeat_s: float = 15.0
    create_hold_s: float = 30.0
    """How long a created workspace waits for its first stream (B3)."""
    detach_grace_s: float = 10.0
    """How long a dropped stream keeps its claim (B3)."""
