"""The environment variables that hold providers' keys, in order of preference when several are set."""

from collections.abc import Mapping

PROVIDER_KEYS: dict[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "azure": ("AZURE_OPENAI_API_KEY",),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
}


def keys_set(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The names, never the values, of the keys that are there."""
    return tuple(name for names in PROVIDER_KEYS.values() for name in names if environ.get(name))
