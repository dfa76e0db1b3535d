"""What is known of models without any configuration (A6)."""

from pathlib import Path

import pytest

from longboat.models.catalogue import Counted, Facts, facts_of, families, family_of, plain_name, tariff_of
from longboat.models.refreshed_catalogue import Listed


def window(kind: str, model: str, base_url: str | None = None) -> int | None:
    return facts_of(kind, model, base_url=base_url, listed={}).context_window


@pytest.mark.parametrize(
    ("kind", "model", "tokens"),
    [
        ("anthropic", "claude-haiku-4-5", 200_000),
        ("anthropic", "claude-sonnet-5-5", 1_000_000),
        ("openai", "gpt-4o", 128_000),
        ("google", "gemini-2.5-pro", 1_048_576),
        ("mistral", "mistral-large-latest", 262_144),
        ("groq", "llama-3.3-70b-versatile", 131_072),
        ("openrouter", "anthropic/claude-sonnet-4.5", 1_000_000),
        ("azure", "gpt-5.4", 1_050_000),
        ("bedrock", "openai.gpt-oss-120b-1:0", 128_000),
        ("openai-compatible", "unheard-of", None),
    ],
)
def test_the_window_of_a_known_model_needs_no_configuration(kind: str, model: str, tokens: int | None):
    assert window(kind, model) == tokens


def test_a_provider_behind_an_address_is_known_by_the_address():
    assert window("openai-compatible", "deepseek-chat", "https://api.deepseek.com/v1") is not None
    assert window("openai-compatible", "deepseek-chat", "http://127.0.0.1:1/v1") is None


def test_what_the_provider_lists_itself_comes_first():
    listed = {"claude-haiku-4-5": Listed(context_window=7, max_output_tokens=3, images=False)}
    assert facts_of("anthropic", "claude-haiku-4-5", base_url=None, listed=listed) == Facts(
        context_window=7, max_output_tokens=3, images=False, tools=True, effort=True
    )


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4-5",
        "anthropic/claude-sonnet-4.5",
        "us.anthropic.claude-sonnet-4-5",
        "anthropic.claude-sonnet-4-5",
    ],
)
def test_a_family_is_found_under_every_spelling(name: str):
    assert plain_name(name) == "claude-sonnet-4-5"
    family = family_of(name)
    assert family is not None
    assert (family.output, family.images, family.effort) == (64_000, True, True)


def test_every_family_is_reached_by_each_of_its_patterns():
    for family in families():
        for pattern in family.match:
            assert family_of(pattern.replace("*", "-x")) is family, pattern


def test_a_step_is_priced_and_cached_tokens_cost_less():
    cost = tariff_of("groq", "openai/gpt-oss-120b", base_url=None)
    assert cost is not None
    plain = cost(Counted(input_tokens=1000, output_tokens=100))
    cached = cost(Counted(input_tokens=1000, output_tokens=100, cache_read_tokens=900))
    assert cached is not None
    assert plain is not None
    assert 0 < cached < plain
    assert cost(Counted(input_tokens=1, output_tokens=1, cache_read_tokens=5)) is None, "nonsense"


def test_what_has_no_price_costs_nothing_known(tmp_path: Path):
    assert tariff_of("openai-compatible", "m", base_url="http://127.0.0.1:9/v1") is None
    assert tariff_of("openai-compatible", "m", base_url="https://models.example/v1") is None
    assert tariff_of("groq", "unheard-of", base_url=None) is None
