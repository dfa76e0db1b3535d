"""The providers known by name: their keys, addresses and default models. Data; must not know any wire format."""

from collections.abc import Mapping
from dataclasses import dataclass

from longboat import __version__
from longboat.config.keys import PROVIDER_KEYS
from longboat.config.settings import ModelEntry, ProviderSection

LOCAL_TYPE = "local"
USER_AGENT = f"longboat/{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProvider:
    """A provider that needs only a key in the environment. Its name is also its type in `longboat.json`."""

    keys: tuple[str, ...]
    large: ModelEntry
    small: ModelEntry
    chat_url: str | None = None
    """Where it speaks OpenAI's chat wire, if that is how we speak to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """How a provider is called in a list of them, and where its keys are made."""

    label: str
    key_page: str | None = None


LISTINGS: dict[str, Listing] = {
    "anthropic": Listing(label="Anthropic", key_page="https://console.anthropic.com/settings/keys"),
    "openai": Listing(label="OpenAI", key_page="https://platform.openai.com/api-keys"),
    "google": Listing(label="Google Gemini", key_page="https://aistudio.google.com/apikey"),
    "openrouter": Listing(label="OpenRouter", key_page="https://openrouter.ai/settings/keys"),
    "groq": Listing(label="Groq", key_page="https://console.groq.com/keys"),
    "mistral": Listing(label="Mistral", key_page="https://console.mistral.ai/api-keys"),
    "azure": Listing(label="Azure OpenAI", key_page="https://portal.azure.com"),
    "bedrock": Listing(
        label="Amazon Bedrock", key_page="https://console.aws.amazon.com/bedrock/home#/api-keys/long-term/create"
    ),
    "ollama": Listing(label="Ollama on this machine"),
    "llamacpp": Listing(label="llama.cpp on this machine"),
    "local": Listing(label="Local model (a demo: it chats but cannot code)"),
}


KNOWN: dict[str, KnownProvider] = {
    # In order of preference when several keys are set.
    "anthropic": KnownProvider(
        keys=PROVIDER_KEYS["anthropic"],
        large=ModelEntry(id="claude-sonnet-5-5", context_window=1_000_000),
        small=ModelEntry(id="claude-haiku-5-5", context_window=1_000_000),
    ),
    "openai": KnownProvider(
        keys=PROVIDER_KEYS["openai"],
        large=ModelEntry(id="gpt-6.1-sol", context_window=1_050_000),
        small=ModelEntry(id="gpt-6-luna", context_window=1_050_000),
    ),
    "google": KnownProvider(
        keys=PROVIDER_KEYS["google"],
        large=ModelEntry(id="gemini-4-argon", context_window=1_048_576),
        small=ModelEntry(id="gemini-3.5-flash-lite", context_window=1_000_000),
    ),
    "openrouter": KnownProvider(
        keys=PROVIDER_KEYS["openrouter"],
        large=ModelEntry(id="anthropic/claude-sonnet-5.5", context_window=1_000_000),
        small=ModelEntry(id="anthropic/claude-haiku-5.5", context_window=1_000_000),
        chat_url="https://openrouter.ai/api/v1",
    ),
    "groq": KnownProvider(
        keys=PROVIDER_KEYS["groq"],
        large=ModelEntry(id="openai/gpt-oss-120b", context_window=131_072),
        small=ModelEntry(id="openai/gpt-oss-20b", context_window=131_072),
        chat_url="https://api.groq.com/openai/v1",
    ),
    "mistral": KnownProvider(
        keys=PROVIDER_KEYS["mistral"],
        large=ModelEntry(id="mistral-large-latest", context_window=262_144),
        small=ModelEntry(id="mistral-small-latest", context_window=262_144),
    ),
}

AZURE_ADDRESS = "AZURE_OPENAI_ENDPOINT"
AWS_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")

CLOUDS = ("azure", "bedrock")
"""Known by name and key, but what models an account has there, only its owner knows: they are named or listed."""


def cloud_address(kind: str, environ: Mapping[str, str]) -> str | None:
    """Where the account's cloud answers, as the usual variables say."""
    if kind == "azure":
        return environ.get(AZURE_ADDRESS) or None
    region = next((environ[name] for name in AWS_REGIONS if environ.get(name)), None)
    # The same host that Amazon's own key for Bedrock is made for; a region is letters, digits and dashes.
    plain = region is not None and region.replace("-", "").isalnum()
    return f"https://bedrock-mantle.{region}.api.aws" if plain else None


def cloud_wants(kind: str) -> str:
    """The variable that `cloud_address` misses."""
    return AZURE_ADDRESS if kind == "azure" else " or ".join(AWS_REGIONS)


def keys_of(kind: str) -> tuple[str, ...]:
    return PROVIDER_KEYS.get(kind, ())


def named_section(name: str, environ: Mapping[str, str]) -> ProviderSection | None:
    """The section of a provider that longboat.json does not have, as its name and the environment make it."""
    if name in KNOWN or name in CLOUDS or name == LOCAL_TYPE:
        # A name from our own tables is one of the types.
        return ProviderSection(type=name, base_url=_moved_to(name, environ))  # type: ignore[arg-type]
    return None


def _moved_to(name: str, environ: Mapping[str, str]) -> str | None:
    """Where the usual variable has moved a provider to. Servers like OpenAI's often want no key, and an address makes
    them ready. Of Anthropic's the address alone says nothing: other programs set it beside a token of their own."""
    if name == "openai":
        return environ.get("OPENAI_BASE_URL") or None
    if name == "anthropic" and any(environ.get(key) for key in keys_of(name)):
        return environ.get("ANTHROPIC_BASE_URL") or None
    return None


def endpoint_url(base_url: str, path: str) -> str:
    """The address of a part of an OpenAI-compatible API. Some addresses at Azure have a query."""
    address, mark, query = base_url.partition("?")
    return f"{without_chat_path(address)}/{path}{mark}{query}"


def without_chat_path(base_url: str) -> str:
    """Documentation often shows the address of the chat itself, and people copy it."""
    return base_url.rstrip("/").removesuffix("/chat/completions")
