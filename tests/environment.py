"""Which of a developer's environment variables tests must not see."""

PROVIDERS = (
    *("ANTHROPIC_", "AWS_", "AZURE_", "BEDROCK_", "CLAUDE_CODE_", "GEMINI_", "GOOGLE_", "GROQ_"),
    *("MISTRAL_", "OLLAMA_", "OPENAI_", "OPENROUTER_", "VERTEX_"),
)
"""How the names of variables begin that lead to a real provider: its keys, addresses, regions, profiles, projects."""


NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
"""Keys that tests store go into files of their own, never into the keyring of whoever runs them."""


def is_hidden(name: str) -> bool:
    """Whether tests are to run as if this variable were not set."""
    return name.startswith((*PROVIDERS, "LONGBOAT_")) or name.endswith("_API_KEY")
