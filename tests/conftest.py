"""What every test gets: no real model is reached, no user's files are read."""

import signal
from pathlib import Path

import pytest

# A shell that runs us in the background has SIGINT ignored, and every process we start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

KEYS = (
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENROUTER_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
)


@pytest.fixture(autouse=True)
def a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tests never see the keys, the configuration or the server of whoever runs them."""
    home = tmp_path_factory.mktemp("home")
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    for name in ("LONGBOAT_URL", "LONGBOAT_TOKEN", "LONGBOAT_SOCKET", "LONGBOAT_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("LONGBOAT_RUNTIME_DIR", str(home / "run"))
    return home
